"""Remove duplicates: content that is in the source of a page twice, although a reader sees it once.

Text that is repeated on purpose is kept, such as a refrain, a closing clause, steps, code, or quotes in a forum. A text
is only a duplicate if one copy is hidden, or if one is for other screens, by attributes or by class.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain

import numpy as np

from scrapy_dripper.choose.scored import UNSEEN, Bools, ScoredPage
from scrapy_dripper.page.names import found_in
from scrapy_dripper.page.page import Flag, Tree
from scrapy_dripper.page.tags import LONGEST_CLASS, TAGS
from scrapy_dripper.page.vocabulary import CLONES, FOR_SCREENS, PUT_AWAY, SCREENS, SHOWING, UNFOLDING, either

Pair = tuple[int, int]
"""The number of a duplicate and the number of the block that represents both."""

SHORTEST_HIDDEN = 10
"""Minimum length of a hidden text that can be a duplicate, in characters."""
SHORTEST_PUT_AWAY = 60
"""The same of all text in an element whose class says only that it is hidden. Shorter ones are options to choose."""
SHARED_TEXT = 0.6
"""Minimum share of the text of a screen-specific element that also occurs elsewhere."""
MOST_NESTED = 8
"""Maximum nesting of screen-specific elements to process, since each one is read as a whole."""
LATER_COPY_MARGIN = 0.1
"""The first copy of an element is kept, unless the mean probability of another copy is higher by more than this."""

# Plain integers, because the operators of IntFlag are slow Python methods.
_HEADING = int(Flag.HEADING)
_PLACED = int(Flag.HEADING | Flag.CODE | Flag.PREFORMATTED | Flag.TABLE | Flag.QUOTE | Flag.DEFINITION)
_ITEM = TAGS["li"]
_CELLS = frozenset((TAGS["td"], TAGS["th"]))

_cloned = re.compile(rf"[\s_-](?:{either(CLONES)})(?=[\s_-]|$)")
_unfolds = re.compile(rf"(?:^|[\s_-])tab|{either(UNFOLDING)}", re.I).search
_size, _show = (rf"(?:{either(group)})" for group in (SCREENS, SHOWING))
_for_screens = re.compile(
    rf"[\s_-](?:{_show}[-_:]+(?:[a-z]+[-_:]+)?{_size}|{_size}[-_:]+(?:[a-z]+[-_:]+)?{_show}|{either(FOR_SCREENS)})"
    r"(?=[\s_-]|$)"
)
_put_away = re.compile(rf"\s(?:{either(PUT_AWAY)})(?=\s|$)")


def without_duplicates(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels without duplicates.

    If only the duplicate was main, the block that represents both becomes main instead.
    """
    kept, p, texts = main.tolist(), scored.probabilities.tolist(), scored.page.blocks.text
    often = Counter(texts)
    if not any(keep and often[text] > 1 for keep, text in zip(kept, texts, strict=True)):
        return main
    instead: dict[int, int] = {}  # duplicate to the block that represents it
    for duplicate, other in chain(_other_screens(scored, p), _hidden(scored, p)):
        other = instead.get(other, other)
        if duplicate not in instead and other not in instead and duplicate != other:
            instead[duplicate] = other
            if kept[duplicate]:
                kept[duplicate], kept[other] = False, True
    return np.array(kept, dtype=np.bool_)


def _hidden(scored: ScoredPage, p: list[float]) -> Iterator[Pair]:
    """Yield each hidden block whose text is visible elsewhere, with the most likely block that shows it.

    A block is hidden by attributes, by inline styles, in ``<noscript>``, or as a clone in a carousel. Content that a
    script unfolds (tabs, accordions) has its own place on the page, as have headings, list items, code, cells, quotes
    and definitions. These are duplicates only if they are clones or adjacent.
    """
    tree, blocks = scored.page.tree, scored.page.blocks
    flags = scored.flags.tolist()
    cloned = within(tree, _classed(scored, _cloned, "clone", "duplicate"), len(blocks))
    unseen = [flag & UNSEEN != 0 or clone for flag, clone in zip(flags, cloned, strict=True)]
    if not any(unseen):
        return
    shown: dict[str, int] = {}
    for i, text in enumerate(blocks.text):
        if not unseen[i] and len(text) >= SHORTEST_HIDDEN and (text not in shown or p[i] > p[shown[text]]):
            shown[text] = i
    again = [i for i, text in enumerate(blocks.text) if unseen[i] and text in shown]
    own = [i for i in again if not (cloned[i] or abs(i - shown[blocks.text[i]]) == 1)]
    tags = tree.tag[blocks.context].tolist()
    placed = {i for i in own if flags[i] & _PLACED or tags[i] == _ITEM}
    left = [i for i in own if i not in placed]
    if left:
        unfolds = within(tree, _unfolding(tree, left), len(blocks))
        placed.update(i for i in left if unfolds[i])
    for i in again:
        if i not in placed:
            yield i, shown[blocks.text[i]]


def _unfolding(tree: Tree, blocks: Sequence[int]) -> list[int]:
    """Return the nodes with some of the blocks that a script unfolds."""
    found = []
    before = np.searchsorted(blocks, tree.block_start), np.searchsorted(blocks, tree.block_end)
    for i in np.flatnonzero(before[1] > before[0]).tolist():
        name = tree.names[i][:LONGEST_CLASS]
        if (name and tree.flags[i] & UNSEEN and _unfolds(name)) or tree.nodes[i].get("role") == "tabpanel":
            found.append(i)
    return found


def _classed(scored: ScoredPage, pattern: re.Pattern[str], *parts: str) -> list[int]:
    """Return the nodes whose class a pattern matches. Ids do not count, because they describe the content.

    Cells never match: they are hidden together with their column, which is not repeated.
    """
    tree = scored.page.tree
    return [
        i
        for i in scored.names.matching(pattern, *parts)
        if found_in(tree.nodes[i].get("class") or "", pattern) and tree.tag[i] not in _CELLS
    ]


def within(tree: Tree, nodes: Sequence[int], n: int) -> list[bool]:
    """Return for each of the n blocks whether it is inside one of the nodes."""
    change = [0] * (n + 1)
    for i in nodes:
        change[int(tree.block_start[i])] += 1
        change[int(tree.block_end[i])] -= 1
    return [count > 0 for count in accumulate(change[:n])]


def _other_screens(scored: ScoredPage, p: list[float]) -> Iterator[Pair]:
    """Yield the blocks of screen-specific elements, according to their class, whose text also occurs elsewhere."""
    tree, texts = scored.page.tree, scored.page.blocks.text
    for_screens, put_away = set(_classed(scored, _for_screens)), _classed(scored, _put_away)
    named = sorted(for_screens.union(put_away))
    if not named:
        return
    heads = [flag & _HEADING != 0 for flag in scored.flags.tolist()]
    places: dict[tuple[str, bool], list[int]] = {}  # a heading is no duplicate of its entry in the table of contents
    for i, key in enumerate(zip(texts, heads, strict=True)):
        places.setdefault(key, []).append(i)
    done = 0
    around: list[int] = []  # the ends of the processed elements around the current one
    for node in named:
        a, b = int(tree.block_start[node]), int(tree.block_end[node])
        while around and around[-1] <= a:
            around.pop()
        if a < done or len(around) >= MOST_NESTED:
            continue
        around.append(b)
        pairs = []
        for k in range(a, b):
            there = places[texts[k], heads[k]]
            if not (a <= there[0] and there[-1] < b):
                pairs.append((there[0] if there[0] < a else there[-1], k))
        least = SHORTEST_HIDDEN if node in for_screens else SHORTEST_PUT_AWAY
        if sum(len(texts[k]) for _, k in pairs) > max(least, SHARED_TEXT * sum(map(len, texts[a:b]))):
            done = b
            yield from _copies(p, pairs)


def _copies(p: list[float], pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Yield the blocks of the copy to remove, each with its counterpart in the copy to keep, usually the first one."""
    gain = sum(p[j] - p[i] for i, j in pairs) * (1 if pairs[0][0] < pairs[0][1] else -1)
    later = gain > LATER_COPY_MARGIN * len(pairs)
    for i, j in pairs:
        yield (min(i, j), max(i, j)) if later else (max(i, j), min(i, j))
