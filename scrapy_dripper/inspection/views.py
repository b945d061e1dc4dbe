"""Write pages into a folder, with the inspector's view of each beside it: what is corrected there, ``learn`` finds."""

from __future__ import annotations

import hashlib
import re
from codecs import BOM_UTF8
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.inspection.answers import ANSWERS, in_utf8, task_for
from scrapy_dripper.inspection.assets import VIEW
from scrapy_dripper.inspection.look import look, page_file
from scrapy_dripper.paths import portable, replace_file

_LONGEST = 60
_unsafe = re.compile(r"[^A-Za-z0-9.]+").sub
_is_address = re.compile(r"https?://[^\s<>\"\x7f-\uffff]{1,1000}").fullmatch
_is_ours = re.compile(rf"(.+-[0-9a-f]{{8}})(?:{re.escape(VIEW)}|\.html)").fullmatch


class Named(NamedTuple):
    """A document, and the name of its files, which no document of other bytes has."""

    name: str
    document: Document
    """The document in UTF-8."""


def named(document: Document) -> Named:
    """Return a document with the name of its files."""
    data = in_utf8(document)
    if _is_address(document.url):  # as browsers save a page, so that all commands know its URL
        saved = f"<!-- saved from url=({len(document.url):04}){document.url} -->\n"
        data = BOM_UTF8 + saved.encode() + data.removeprefix(BOM_UTF8)
    address = _unsafe("-", document.url.partition("://")[2])[:_LONGEST].strip("-.") or "page"
    name = f"{portable(address)}-{hashlib.sha256(data).hexdigest()[:8]}"
    return Named(name, replace(document, html=data, charset=None))


def write_views(folder: Path, pages: Iterable[Named], config: Config) -> list[Path]:
    """Write pages, and a view of each, and return the files of the views. Raise OSError or ModelError if that fails."""
    folder.mkdir(parents=True, exist_ok=True)
    views = []
    with Extractor(replace(config, sites="off")) as extractor:
        for name, document in pages:
            replace_file(folder / f"{name}.html", document.html)
            view = look(document, extractor, partial(task_for, document, name, name), name)
            views.append(folder / f"{name}{VIEW}")
            replace_file(views[-1], page_file(view))
    return views


def remove_views(folder: Path) -> None:
    """Remove pages and views from a folder, but leave those that have a correction beside them."""
    corrected = {path.name.partition(".answer")[0] for path in folder.glob(ANSWERS)}
    for path in folder.glob("*.html"):
        if (ours := _is_ours(path.name)) and ours[1] not in corrected:
            path.unlink(missing_ok=True)
