"""Footnotes go with their marks: one whose mark is main is main, and one whose mark is not is not.

Only what could be either: the legal notes of a shop and the bibliography of a paper have marks, too, and are unlikely.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scrapy_dripper.output.footnotes import FootnoteMarks
from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.tags import TAGS

Bools = npt.NDArray[np.bool_]

LEAST = 0.2
"""Mean probability of the blocks of a footnote at least, for it to become main."""

_LINK = TAGS["a"]


def with_notes(page: Page, probabilities: npt.NDArray[np.float32], main: Bools) -> Bools:
    """Return the labels with each footnote labelled as its marks. All arrays have shape (n,) for the page's n blocks.

    Which links are marks, and where the notes are, is what the Markdown makes of the page.
    """
    tree = page.tree
    links = [i for i in np.flatnonzero(tree.tag == _LINK).tolist() if (tree.nodes[i].get("href") or "")[:1] == "#"]
    if not links or not main.any():
        return main
    marks = FootnoteMarks(tree.nodes[0])
    kept: dict[object, bool] = {}  # by footnote
    for i in links:
        note = marks.note(tree.nodes[i], tree.nodes[i].get("href"))
        if note is not None:
            owners = tree.text_owner[i : tree.end[i]]
            owner = int(owners.max(initial=-1))
            kept[note] = kept.get(note, False) or (owner >= 0 and bool(main[owner]))
    if not kept:
        return main
    labels: Bools = main.copy()
    for i, node in enumerate(tree.nodes):
        if node in kept:
            a, b = _blocks(page, i)
            if not kept[node]:
                labels[a:b] = False
            elif b > a and not tree.flags[i] & Flag.HIDDEN and probabilities[a:b].mean() >= LEAST:
                labels[a:b] = True
    return labels


def _blocks(page: Page, node: int) -> tuple[int, int]:
    """Return the first block of a footnote and the one behind it. What follows a heading, up to the next, is of it."""
    tree = page.tree
    a, b = int(tree.block_start[node]), int(tree.block_end[node])
    if tree.flags[node] & Flag.HEADING and b > a:
        end = int(tree.block_end[tree.parent[node]])
        while b < end and not tree.flags[page.blocks.context[b]] & Flag.HEADING:
            b += 1
    return a, b
