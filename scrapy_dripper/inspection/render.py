"""Write a view as one self-contained HTML file, in which the content of the page is isolated."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, fields
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from scrapy_dripper.inspection.rows import Row, Sample
from scrapy_dripper.inspection.summary import Summary

if TYPE_CHECKING:
    from scrapy_dripper.inspection.look import PageView


def page_file(view: PageView) -> str:
    """Return the inspector of a page."""
    values = asdict(view)
    values["blocks"] = [  # by position, because there can be thousands
        [b.probability, int(b.main), b.flags, b.reasons, b.rule] for b in view.blocks
    ]
    title = view.title or view.url or view.name or "a page"
    return _file("page", f"{title[:200]} · inspector", values | {"reader": _part("reader.css")}, ["reader.css"])


def index_file(name: str, sample: Sample, summary: Summary, notes: Sequence[str] = ()) -> str:
    """Return the index of a crawl: its summary, and a table of its pages. ``notes`` are shown above the table."""
    if sample.seen > len(sample.rows):
        notes = [*notes, f"The table has a random sample of {len(sample.rows):,} pages; the summary covers all."]
    values = {
        "name": name,
        "pages": summary.pages,
        "lines": summary.lines(),
        "columns": [field.name for field in fields(Row)],
        "rows": [astuple(row) for row in sample.rows],
        "notes": list(notes),
    }
    return _file("index", f"{name} · pages", values, [])


def _file(kind: str, title: str, values: dict[str, Any], framed: list[str]) -> str:
    """Return a file of a kind (``page`` or ``index``) with values that its script reads.

    ``framed`` are the style sheets of frames, to which the policy of the file applies as well.
    """
    style, script = _part("common.css") + _part(f"{kind}.css"), _part("common.js") + _part(f"{kind}.js")
    styles = " ".join(f"'{_hash(text)}'" for text in (style, *map(_part, framed)))
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src {styles}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return Template(_part("file.html")).substitute(
        kind=kind,
        policy=escape(policy),
        title=escape(title),
        style=style,
        body=_part(f"{kind}.html"),
        data=_data(values),
        script=script,
    )


def _data(values: dict[str, Any]) -> str:
    """Return JSON that cannot end the element that holds it, nor begin a comment there."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    # In JSON, these characters only occur in strings. Escaping every "<" would add hundreds of kB for a page's tags.
    return text.replace("</", "<\\/").replace("<!", "\\u003c!").replace("<s", "\\u003cs").replace("<S", "\\u003cS")


@cache
def _part(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
