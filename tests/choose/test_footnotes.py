"""A footnote goes with its mark, in the markup of each generator in tests/structured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scrapy_dripper.choose import Labels, ScoredPage, choose
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.page import Page, read
from scrapy_dripper.structures.footnotes import FootnoteMarks

PAGES = sorted((Path(__file__).parents[1] / "structured" / "text").glob("footnotes-*.html"))
INSIDE = {"footnotes-latexml"}
"""Generators that write a footnote where its mark stands, so that both are in one block."""


def cut(path: Path) -> Page:
    more = "<p>The text goes on for some more words, so that it is no fragment.</p>"
    return read(Document(f"<body><article>{path.read_text(encoding='utf-8')}{more}</article></body>"), Config())


def marks_and_notes(page: Page) -> dict[int, set[int]]:
    """Return the blocks of the footnotes of each block with marks."""
    tree, marks = page.tree, FootnoteMarks(page.tree.nodes[0])
    number = {node: i for i, node in enumerate(tree.nodes)}
    found: dict[int, set[int]] = {}
    for i, node in enumerate(tree.nodes):
        href = str(node.get("href") or "") if node.tag == "a" else ""
        note = marks.note(node, href) if href.startswith("#") else None
        if note is not None:
            owner = int(tree.text_owner[i : tree.end[i]].max())
            a = number[note]
            found.setdefault(owner, set()).update(range(int(tree.block_start[a]), int(tree.block_end[a])))
    return found


@pytest.mark.parametrize("path", [path for path in PAGES if path.stem not in INSIDE], ids=lambda path: path.stem)
def test_a_footnote_need_not_be_as_likely_as_its_text(path: Path) -> None:
    page = cut(path)
    found = marks_and_notes(page)
    notes = set().union(*found.values()) - {min(found)}  # which the notes lead back to
    p = np.array([0.3 if block in notes else 0.9 for block in range(len(page.blocks))], dtype=np.float32)

    assert notes
    assert choose(ScoredPage(page, Labels(p))).main[list(notes)].all()
