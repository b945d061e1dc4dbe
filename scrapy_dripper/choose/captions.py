"""Keep or drop the captions of figures in the main content, as configured. No model is involved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from scrapy_dripper.choose.given import UNSEEN, Bools, Given
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.recognise import caption_of, is_figure
from scrapy_dripper.page.tags import MEDIA, PLAYERS

_PICTURES = PLAYERS.union(MEDIA, ("iframe", "svg"))


@dataclass(frozen=True, slots=True)
class Caption:
    """The blocks a to b - 1 of a caption, and the blocks ``first`` to ``last`` - 1 of the figure around it."""

    a: int
    b: int
    first: int
    last: int
    pictured: bool
    """True if the figure has an image or a player, and not only a table or code."""


def with_captions(given: Given, main: Bools) -> Bools:
    """Return the labels with captions added (``keep``) or removed (``drop``). ``auto`` leaves them unchanged.

    A caption is added if its figure is between two main blocks, or
    beside other captions between them. Captions of tables and code are not removed, and neither is all main content.
    """
    if given.captions == "auto" or not main.any():
        return main
    found = list(_captions(given.page))
    labels: Bools = main.copy()
    if given.captions == "drop":
        for one in found:
            if one.pictured:
                labels[one.a : one.b] = False
        return labels if labels.any() else main
    unseen = given.page.tree.flags[given.page.blocks.context] & UNSEEN != 0
    skipped = unseen.copy()
    for one in found:
        skipped[one.a : one.b] = True
    before, after = _neighbours(main, skipped)
    for one in found:
        if before[one.first] and after[one.last]:
            labels[one.a : one.b] |= ~unseen[one.a : one.b]
    return labels


def _captions(page: Page) -> Iterator[Caption]:
    """Yield the captions of a page that have blocks, in the order of their figures."""
    tree = page.tree
    figures = [i for i, node in enumerate(tree.nodes) if is_figure(node)]
    number = {node: i for i, node in enumerate(tree.nodes)} if figures else {}
    pictures = list(accumulate((node.tag in _PICTURES for node in tree.nodes), initial=0)) if figures else []
    done: set[int] = set()
    for i in figures:
        caption = caption_of(tree.nodes[i])
        j = -1 if caption is None else number[caption]
        if j < 0 or j in done or tree.block_start[j] == tree.block_end[j]:
            continue
        done.add(j)
        yield Caption(
            a=int(tree.block_start[j]),
            b=int(tree.block_end[j]),
            first=int(tree.block_start[i]),
            last=int(tree.block_end[i]),
            pictured=bool(pictures[tree.end[i]] > pictures[i]),
        )


def _neighbours(main: Bools, skipped: Bools) -> tuple[list[bool], list[bool]]:
    """Return for each gap whether the nearest blocks before and after it that are not skipped are main.

    Both lists have n + 1 values for n blocks: the gap before block 0 is the first one.
    """
    n = len(main)
    before, after = [False] * (n + 1), [False] * (n + 1)
    for i in range(n):
        before[i + 1] = before[i] if skipped[i] else bool(main[i])
    for i in range(n - 1, -1, -1):
        after[i] = after[i + 1] if skipped[i] else bool(main[i])
    return before, after
