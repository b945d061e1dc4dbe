"""Give each footnote the label of its marks."""

from __future__ import annotations

from scrapy_dripper.choose.scored import Bools, ScoredPage
from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.structures.footnotes import FootnoteMarks

NOTE_PROBABILITY = 0.2
"""Minimum mean probability of the blocks of a footnote for it to become main."""

_LINK, _HEADING = TAGS["a"], int(Flag.HEADING)


def with_footnotes(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with each footnote labelled like its marks.

    Marks and footnotes are recognised in the same way as for Markdown.
    """
    page, tree = scored.page, scored.page.tree
    links = [i for i in tree.refers if tree.tag[i] == _LINK and (tree.nodes[i].get("href") or "")[:1] == "#"]
    if not links or not main.any():
        return main
    marks = FootnoteMarks(tree.nodes[0])
    kept: dict[object, bool] = {}  # footnote to whether one of its marks is main
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
            elif b > a and not tree.flags[i] & Flag.HIDDEN and scored.probabilities[a:b].mean() >= NOTE_PROBABILITY:
                labels[a:b] = True
    return labels


def _blocks(page: Page, node: int) -> tuple[int, int]:
    """Return the range of blocks of a footnote. If it is a heading, this includes everything up to the next heading."""
    tree = page.tree
    a, b = int(tree.block_start[node]), int(tree.block_end[node])
    if tree.flags[node] & _HEADING and b > a:
        end = int(tree.block_end[tree.parent[node]])
        while b < end and not tree.flags[page.blocks.context[b]] & _HEADING:
            b += 1
    return a, b
