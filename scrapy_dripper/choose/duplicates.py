"""Remove duplicates: content that is in the source of a page twice, although a reader sees it once.

Text that is repeated on purpose is kept, such as a refrain, a closing clause, steps, code, or quotes in a forum. A text
is only a duplicate if one copy is hidden, or if one is for other screens, by attributes or by class.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from scrapy_dripper.choose.scored import UNSEEN, ScoredPage
from scrapy_dripper.page.page import Bools, Flag
from scrapy_dripper.page.vocabulary import (
    CLONES,
    FOR_SCREENS,
    PUT_AWAY,
    SCREENS,
    SHOWING,
    NamePattern,
    either,
    found_in,
)
from scrapy_dripper.structures import NEAR

SHORTEST_COPY = 20
"""Minimum length of the text in a copy, in characters. Shorter ones are options to choose."""
SHARED_TEXT = 0.6
"""Minimum share of the text of a copy that also occurs elsewhere."""

_size, _show = (rf"(?:{either(group)})" for group in (SCREENS, SHOWING))
_copied = NamePattern(
    re.compile(
        rf"[\s_-](?:{_show}[-_:]+(?:[a-z]+[-_:]+)?{_size}|{_size}[-_:]+(?:[a-z]+[-_:]+)?{_show}"
        rf"|{either(FOR_SCREENS, CLONES)})(?=[\s_-]|$)"
        rf"|(?<!overflow)(?<!overflow-[xy])(?<!backface)[\s_-](?:{either(PUT_AWAY)})(?=\s|$)"
    ),
    (*("hid", "show", "visible", "only", "none"), *("mobile", "desktop"), *("clone", "duplicate")),
)
"""Matches the class of an element that is for some screens only, that a carousel has cloned, or that is put away."""


def without_duplicates(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels without duplicates.

    If only a hidden one was main, the one that is seen becomes main instead.
    """
    kept, texts = main.tolist(), scored.page.blocks.text
    often = Counter(texts)
    if not any(keep and often[text] > 1 for keep, text in zip(kept, texts, strict=True)):
        return main
    instead: dict[int, int] = {}  # duplicate to the block that represents it
    for duplicate, other in _copies(scored, main):
        other = instead.get(other, other)
        if duplicate not in instead and other not in instead and duplicate != other:
            instead[duplicate] = other
            if kept[duplicate]:
                kept[duplicate], kept[other] = False, True
    return np.array(kept, dtype=np.bool_)


def _copies(scored: ScoredPage, main: Bools) -> Iterator[tuple[int, int]]:
    """Yield the blocks of copies, each with the block that represents both: the one that is seen, else the one that is
    main, or else the first."""
    tree, texts = scored.page.tree, scored.page.blocks.text
    heads, unseen = ((scored.flags & flags != 0).tolist() for flags in (Flag.HEADING, UNSEEN))
    places: dict[tuple[str, bool], list[int]] = {}  # a heading is no duplicate of its entry in the table of contents
    for i, key in enumerate(zip(texts, heads, strict=True)):
        places.setdefault(key, []).append(i)
    done = 0
    around: list[int] = []  # the ends of the processed elements around the current one
    for node in _may_be_copies(scored):
        a, b = int(tree.block_start[node]), int(tree.block_end[node])
        while around and around[-1] <= a:
            around.pop()
        if a < done or len(around) >= NEAR:
            continue
        around.append(b)
        pairs = []
        for k in range(a, b):
            there = places[texts[k], heads[k]]
            other = there[0] if there[0] < a else there[-1]
            # Where both are hidden, neither is a copy of the other: icons with a text stand in each review.
            if not a <= other < b and not (unseen[k] and unseen[other]):
                pairs.append((k, other))
        if sum(len(texts[k]) for k, _ in pairs) > max(SHORTEST_COPY, SHARED_TEXT * sum(map(len, texts[a:b]))):
            done = b
            for pair in pairs:
                first, then = sorted(pair, key=lambda k: (unseen[k], not main[k], k))
                yield then, first


def _may_be_copies(scored: ScoredPage) -> list[int]:
    """Return the elements that may be copies, by their class or because they are hidden, in document order.

    Ids do not count, because they describe the content. Panels of tabs have their own place on the page.
    """
    tree = scored.page.tree
    named = (i for i in scored.names.matching(_copied) if found_in(tree.nodes[i].get("class") or "", _copied))
    unseen = tree.flags & UNSEEN != 0
    outermost = np.flatnonzero(unseen & ~unseen[np.maximum(tree.parent, 0)]).tolist()
    return sorted({*named, *(i for i in outermost if tree.nodes[i].get("role") != "tabpanel")})
