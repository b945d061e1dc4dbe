"""Let a heading follow its section: all blocks up to the next heading of its rank or above.

A model decides block by block, so it leaves a heading out above main text, or keeps one such as "Related links" above
nothing.
"""

from __future__ import annotations

import re

import numpy as np

from scrapy_dripper.choose.scored import ELSEWHERE, UNSEEN, Bools, ScoredPage
from scrapy_dripper.page.page import Flag
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.page.vocabulary import REPLIES, either
from scrapy_dripper.structures import NEARLY_ALL

HEADING_PROBABILITY = 0.2
"""Minimum probability for a heading to follow its section into the main content."""
MOST_EMPTY = 3
"""Maximum number of headings without content on a page. More of them are content themselves, such as names on cards."""
LONGEST_HEADING = 12
"""Maximum number of words of a heading. A longer one says something by itself."""

_asks = re.compile(rf"(?:{either(REPLIES)})\W*(?:cancel reply\W*)?", re.I).fullmatch
_RANKS = np.zeros(max(TAGS.values()) + 1, dtype=np.int8)
_RANKS[[TAGS[f"h{rank}"] for rank in range(1, 7)]] = range(1, 7)
_BARRED = int(UNSEEN | ELSEWHERE | Flag.LINK | Flag.BUTTON)


def with_headings(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with headings added of whose section most is main, from its beginning, and without those of
    whose section nothing is.

    The first main block stays, and so do links and the headings of images. Nothing is added above it. A heading that
    ends its element heads nothing, and one that asks for a comment has no content.
    """
    page, tree, blocks = scored.page, scored.page.tree, scored.page.blocks
    ranks = _ranks(scored)
    seen = scored.flags & (UNSEEN | Flag.BUTTON) == 0
    may_be = ~main & (scored.flags & _BARRED == 0) & (scored.probabilities >= HEADING_PROBABILITY)
    total, kept = (np.cumsum([0, *part]) for part in (scored.chars * seen, scored.chars * (seen & main)))
    labels: Bools = main.copy()
    empty: list[int] = []
    ends = [len(main)] * 7  # where a section of each rank ends, if it begins here
    first = int(np.argmax(main)) if main.any() else len(main)
    after = shown = len(main)  # the next main block, of those that stay, and the next one that is no button
    for i in range(len(main) - 1, -1, -1):
        rank, text = ranks[i], blocks.text[i]
        end = ends[rank]
        if rank and i > first and len(text.split()) <= LONGEST_HEADING:
            if main[i] and after >= end and not blocks.links[i]:
                if (shown < min(end, after) or _asks(text)) and not blocks.images[i + 1 : min(end, after) + 1].any():
                    empty.append(i)
            elif may_be[i] and after == shown < end and i + 1 < tree.block_end[page.holder(i)]:
                labels[i] = kept[end] - kept[i] >= NEARLY_ALL * (total[end] - total[i + 1])
        if labels[i] and i not in empty[-1:]:
            after = i
        if seen[i]:
            shown = i
        if rank:
            ends[rank:] = [i] * (7 - rank)
    if len(empty) <= MOST_EMPTY:
        labels[empty] = False
    return labels


def _ranks(scored: ScoredPage) -> list[int]:
    """Return the rank of the heading that each block is in, 1 to 6; 0 for other blocks."""
    tree, inner = scored.page.tree, scored.page.blocks.context
    own, outer = _RANKS[tree.tag[inner]], _RANKS[tree.tag[np.maximum(tree.parent[inner], 0)]]
    ranks: list[int] = np.where(own, own, outer).tolist()
    return ranks
