"""A footnote has the label of its mark, in the markup of each generator in tests/structured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scrapy_dripper.choose import mask_of
from scrapy_dripper.choose.footnotes import with_footnotes
from scrapy_dripper.choose.scored import Labels, ScoredPage
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.output import write
from scrapy_dripper.page import Page, read
from scrapy_dripper.structures.footnotes import FootnoteMarks

PAGES = sorted((Path(__file__).parents[1] / "structured" / "text").glob("footnotes-*.html"))
INSIDE = {"footnotes-latexml"}
"""Generators that write a footnote where its mark stands, so that both are in one block."""


def cut(path: Path) -> Page:
    return read(Document(f"<body><article>{path.read_text(encoding='utf-8')}</article></body>"), Config())


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


def test_there_are_pages_of_all_the_generators() -> None:
    names = " ".join(path.stem for path in PAGES)

    for generator in ("texinfo", "mdbook", "zola", "asciidoctor", "sphinx", "wordpress", "substack", "quarto"):
        assert generator in names


@pytest.mark.parametrize("path", [path for path in PAGES if path.stem not in INSIDE], ids=lambda path: path.stem)
def test_a_footnote_is_kept_if_its_mark_is_and_only_then(path: Path) -> None:
    page = cut(path)
    found = marks_and_notes(page)
    assert found

    unlikely = np.full(len(page.blocks), 0.05, dtype=np.float32)
    for mark, notes in found.items():
        others = set().union(*(other for block, other in found.items() if block != mark))
        own = notes - others - {mark}
        p = np.full(len(page.blocks), 0.5, dtype=np.float32)
        with_mark = np.arange(len(page.blocks)) == mark
        kept, dropped = (with_footnotes(ScoredPage(page, Labels(p)), main) for main in (with_mark, ~with_mark))

        assert own
        assert all(kept[block] for block in notes)
        assert not any(dropped[block] for block in own)
        assert not with_footnotes(ScoredPage(page, Labels(unlikely)), with_mark)[list(own)].any()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_markdown_has_no_mark_without_its_footnote_and_no_footnote_without_its_mark(path: Path) -> None:
    page = cut(path)
    for mark in marks_and_notes(page):
        p = np.full(len(page.blocks), 0.5, dtype=np.float32)
        for main in (np.arange(len(page.blocks)) == mark, np.arange(len(page.blocks)) != mark):
            mask = mask_of(page, with_footnotes(ScoredPage(page, Labels(p)), main))
            lines = write(page, mask, Config()).markdown.split("\n")
            notes = {line.partition("]")[0] for line in lines if line.startswith("[^")}
            text = "\n".join(line for line in lines if not line.startswith("[^"))

            assert all(f"{note}]" in text for note in notes)
            assert text.count("[^") >= len(notes)
