"""Write labelled pages to a folder for training: ``html/ID.html`` and ``ground-truth/ID.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.output.text import text
from scrapy_dripper.page import PageError, read
from scrapy_dripper.workshop.annotation.pages import PROFILE, Sheet
from scrapy_dripper.workshop.annotation.store import HUMAN, Record

SURE = 0.5
"""Default confidence of a model's labels. That of a person's labels is 1."""


class LabelsError(ValueError):
    """The labels do not match the current page."""


def main_blocks(record: Record, sheet: Sheet) -> npt.NDArray[np.bool_]:
    """Return which of a page's n blocks are labelled as main, of shape (n,).

    Raise :exc:`LabelsError` if the blocks are not those that were labelled. The bytes of the page are not looked at.
    """
    if record.profile != PROFILE:
        raise LabelsError(f"labelled in the profile {record.profile!r}, expected {PROFILE!r}; label it again")
    if record.blocks != sheet.blocks:
        raise LabelsError(
            f"cut into {record.blocks} blocks when it was labelled, into {sheet.blocks} now; label it again"
        )
    if record.cut != sheet.cut:
        raise LabelsError("its blocks have other texts than when it was labelled; label it again")
    main = np.zeros(sheet.blocks, dtype=np.bool_)
    main[[i - 1 for i in record.labels]] = True
    return main


def write_page(folder: Path, record: Record, sheet: Sheet, sure: float = SURE) -> None:
    """Write a page and its labels to a folder. Raise :exc:`LabelsError` if the labels do not match the blocks."""
    if record.sha256 != sheet.sha256:
        raise LabelsError(f"the page has changed since it was labelled: its SHA-256 was {record.sha256[:12]}..., "
                          f"now it is {sheet.sha256[:12]}...; label it again")  # fmt: skip
    main = main_blocks(record, sheet)
    data = sheet.utf8()
    try:
        again = list(read(Document(data), Config()).blocks.text)
    except PageError:
        again = []
    if again != list(sheet.page.blocks.text):
        raise LabelsError("its blocks are not the same when it is written as UTF-8; leave it out")
    truth: dict[str, Any] = {
        "url": record.url,
        "file_id": record.id,
        "source": record.who,
        "sure": 1.0 if record.who == HUMAN else sure,
        "reviewed": False,
        "_internal": {},
        "ground_truth": {"main_content": text(sheet.page, main), "title": record.title, "with": [], "without": []},
        "prompt": record.prompt,
    }
    for name in ("html", "ground-truth"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "html" / f"{record.id}.html").write_bytes(data)
    path = folder / "ground-truth" / f"{record.id}.json"
    path.write_text(json.dumps(truth, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", errors="replace")
