"""Remove twins: content that is in the source of a page twice, although a reader sees it once.

Text that is repeated on purpose is kept, such as a refrain, a closing clause, steps, code, or quotes in a forum. A text
is only a twin if one copy is hidden, if one is for other screens, or if a whole section is repeated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.class_names import Names, found_in
from scrapy_dripper.page.page import Flag, Page, Tree
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.page.vocabulary import CLONES, FOR_SCREENS, QUOTES, SCREENS, SHOWING, UNFOLDING, either

Bools = npt.NDArray[np.bool_]
Pair = tuple[int, int]
"""The number of a twin and the number of the block that represents both."""

LEAST_CHARS = 10
"""Minimum length of a hidden text that can be a twin, in characters."""
SECTION = 3
"""Minimum number of blocks in a repeated section, two of which must be long."""
LONG = 15
"""Minimum number of words in a long block."""
COPIES = 3
"""A section with more copies than this is repeated on purpose."""
SHARED = 0.6
"""Minimum share of the text of a screen-specific element that also occurs elsewhere."""
NESTED = 8
"""Maximum nesting of screen-specific elements to process, since each one is read as a whole."""
MARGIN = 0.1
"""The first copy of a section is kept, unless the mean probability of another copy is higher by more than this."""

# Plain integers, because the operators of IntFlag are slow Python methods.
_HEADING = int(Flag.HEADING)
_UNSEEN = int(Flag.HIDDEN | Flag.NOSCRIPT)
_PLACED = int(Flag.HEADING | Flag.CODE | Flag.PREFORMATTED | Flag.TABLE | Flag.QUOTE | Flag.DEFINITION)
_IN_PLACE = int(Flag.CODE | Flag.PREFORMATTED | Flag.TABLE | Flag.QUOTE | Flag.LIST)
_IN_ROWS = int(Flag.CODE | Flag.TABLE)
_ITEM, _LINK = TAGS["li"], TAGS["a"]
_CELLS = frozenset((TAGS["td"], TAGS["th"]))
_ROWS = frozenset(TAGS[tag] for tag in "ul ol menu dl table thead tbody tr body html".split())

_cloned = re.compile(rf"[\s_-](?:{either(CLONES)})(?=[\s_-]|$)")
_quotes = re.compile(either(QUOTES))
_unfolds = re.compile(rf"(?:^|[\s_-])tab|{either(UNFOLDING)}", re.I).search
_size, _show = (rf"(?:{either(group)})" for group in (SCREENS, SHOWING))
_for_screens = re.compile(
    rf"[\s_-](?:{_show}[-_:]+(?:[a-z]+[-_:]+)?{_size}|{_size}[-_:]+(?:[a-z]+[-_:]+)?{_show}|{either(FOR_SCREENS)})"
    r"(?=[\s_-]|$)"
)
_words = re.compile(r"\w+").findall


def without_twins(page: Page, probabilities: npt.NDArray[np.float32], main: Bools) -> Bools:
    """Return the labels without twins. If only the twin was main, the block that represents both becomes main instead.

    All arrays have shape (n,) for the n blocks of the page.
    """
    if not main.any():
        return main
    kept, p = main.tolist(), probabilities.tolist()
    stands_for: dict[int, int] = {}  # twin to the block that represents it
    often = Counter(page.blocks.text)
    repeated = [often[text] > 1 for text in page.blocks.text]
    if not any(keep and again for keep, again in zip(kept, repeated, strict=True)):
        return main
    names = Names(page.tree.names)
    for twin, other in chain(
        _sections(page, p, repeated, names), _other_screens(page, p, names), _hidden(page, p, names)
    ):
        other = stands_for.get(other, other)
        if twin not in stands_for and other not in stands_for and twin != other:
            stands_for[twin] = other
            if kept[twin]:
                kept[twin], kept[other] = False, True
    return np.array(kept, dtype=np.bool_)


def _flags(page: Page) -> list[int]:
    flags: list[int] = (page.tree.flags[page.blocks.context] | page.tree.flags[page.blocks.leaf]).tolist()
    return flags


# ---------------------------------------------------------------------- one is hidden
def _hidden(page: Page, p: list[float], names: Names) -> Iterator[Pair]:
    """Yield each hidden block whose text is visible elsewhere, with the most likely block that shows it.

    A block is hidden by attributes, by inline styles, in ``<noscript>``, or as a clone in a carousel. Content that a
    script unfolds (tabs, accordions) has its own place on the page, as have headings, list items, code, cells, quotes
    and definitions. These are twins only if they are clones or adjacent.
    """
    tree, blocks = page.tree, page.blocks
    flags = _flags(page)
    cloned = _within(tree, _classed(tree, names, _cloned), len(blocks))
    unseen = [flag & _UNSEEN != 0 or clone for flag, clone in zip(flags, cloned, strict=True)]
    if not any(unseen):
        return
    shown: dict[str, int] = {}
    for i, text in enumerate(blocks.text):
        if not unseen[i] and len(text) >= LEAST_CHARS and (text not in shown or p[i] > p[shown[text]]):
            shown[text] = i
    again = [i for i, text in enumerate(blocks.text) if unseen[i] and text in shown]
    own = [i for i in again if not (cloned[i] or abs(i - shown[blocks.text[i]]) == 1)]
    tags = tree.tag[blocks.context].tolist()
    placed = {i for i in own if flags[i] & _PLACED or tags[i] == _ITEM}
    left = [i for i in own if i not in placed]
    if left:
        unfolds = _within(tree, _unfolding(tree, left), len(blocks))
        placed.update(i for i in left if unfolds[i])
    for i in again:
        if i not in placed:
            yield i, shown[blocks.text[i]]


def _unfolding(tree: Tree, blocks: Sequence[int]) -> list[int]:
    """Return the nodes with some of the blocks that a script unfolds."""
    found = []
    before = np.searchsorted(blocks, tree.block_start), np.searchsorted(blocks, tree.block_end)
    for i in np.flatnonzero(before[1] > before[0]).tolist():
        name = tree.names[i]
        if (name and tree.flags[i] & _UNSEEN and _unfolds(name[:512])) or tree.nodes[i].get("role") == "tabpanel":
            found.append(i)
    return found


def _classed(tree: Tree, names: Names, pattern: re.Pattern[str]) -> list[int]:
    """Return the nodes whose class a pattern matches. Ids do not count, because they describe the content.

    Cells never match: they are hidden together with their column, which is not repeated.
    """
    named = names.matching(pattern)
    return [
        i
        for i, name in enumerate(tree.names if named else ())
        if name in named and found_in(tree.nodes[i].get("class") or "", pattern) and tree.tag[i] not in _CELLS
    ]


def _within(tree: Tree, nodes: Sequence[int], n: int) -> list[bool]:
    """Return for each of the n blocks whether it is inside one of the nodes."""
    change = [0] * (n + 1)
    for i in nodes:
        change[int(tree.block_start[i])] += 1
        change[int(tree.block_end[i])] -= 1
    return [count > 0 for count in accumulate(change[:n])]


def _other_screens(page: Page, p: list[float], names: Names) -> Iterator[Pair]:
    """Yield the blocks of screen-specific elements, according to their class, whose text also occurs elsewhere."""
    tree, texts = page.tree, page.blocks.text
    named = _classed(tree, names, _for_screens)
    if not named:
        return
    heads = [flag & _HEADING != 0 for flag in _flags(page)]
    places: dict[tuple[str, bool], list[int]] = {}  # a heading is not a twin of its entry in the table of contents
    for i, key in enumerate(zip(texts, heads, strict=True)):
        places.setdefault(key, []).append(i)
    done = 0
    around: list[int] = []  # the ends of the processed elements around the current one
    for node in named:
        a, b = int(tree.block_start[node]), int(tree.block_end[node])
        while around and around[-1] <= a:
            around.pop()
        if a < done or len(around) >= NESTED:
            continue
        around.append(b)
        pairs = []
        for k in range(a, b):
            there = places[texts[k], heads[k]]
            if not (a <= there[0] and there[-1] < b):
                pairs.append((there[0] if there[0] < a else there[-1], k))
        if sum(len(texts[k]) for _, k in pairs) > max(LEAST_CHARS, SHARED * sum(map(len, texts[a:b]))):
            done = b
            yield from _copies(p, pairs)


def _copies(p: list[float], pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Yield the blocks of the copy to remove, each with its counterpart in the copy to keep, usually the first one."""
    gain = sum(p[j] - p[i] for i, j in pairs) * (1 if pairs[0][0] < pairs[0][1] else -1)
    later = gain > MARGIN * len(pairs)
    for i, j in pairs:
        yield (min(i, j), max(i, j)) if later else (max(i, j), min(i, j))


# ---------------------------------------------------------------------- whole sections
class _Texts:
    """Rolling hashes over the texts of blocks, to compare sequences of blocks in constant time."""

    _PRIME, _BASE = (1 << 61) - 1, 1_000_003

    def __init__(self, texts: list[str]) -> None:
        numbers: dict[str, int] = {}
        self._sum, self._power = [0], [1]
        for text in texts:
            number = numbers.setdefault(text, len(numbers) + 1)
            self._sum.append((self._sum[-1] * self._BASE + number) % self._PRIME)
            self._power.append(self._power[-1] * self._BASE % self._PRIME)

    def hash(self, a: int, b: int) -> int:
        """Return a hash of the texts of the blocks a to b - 1, in order."""
        return (self._sum[b] - self._sum[a] * self._power[b - a]) % self._PRIME


def _sections(page: Page, p: list[float], repeated: Sequence[bool], names: Names) -> Iterator[Pair]:
    """Yield the blocks of repeated sections, except siblings of the same kind.

    A section has at least two long texts that are not code, quotes, list items or cells, and has at most three copies.
    Shorter sections, and sections with more copies, are repeated on purpose. ``repeated`` holds for each block whether
    its text occurs more than once.
    """
    tree, texts = page.tree, page.blocks.text
    long = [
        again and not flag & _IN_PLACE and len(_words(text)) >= LONG
        for again, flag, text in zip(repeated, _flags(page), texts, strict=True)
    ]
    if sum(long) < 4:  # two for each copy
        return
    quoted = _within(tree, _classed(tree, names, _quotes), len(texts))
    many = [0, *accumulate(own and not quote for own, quote in zip(long, quoted, strict=True))]
    same = _Texts(texts)
    start, end = tree.block_start.tolist(), tree.block_end.tolist()
    parent, signature = tree.parent.tolist(), tree.signature.tolist()
    found: dict[int, list[int]] = {}  # the outermost elements with the same texts
    for i, (a, b) in enumerate(zip(start, end, strict=True)):
        if b - a >= SECTION and many[b] - many[a] >= 2:
            up = parent[i]
            if up < 0 or (start[up], end[up]) != (a, b):
                found.setdefault(same.hash(a, b), []).append(i)
    done = [False] * len(texts)
    for nodes in found.values():
        if not 2 <= len(nodes) <= COPIES or len({(parent[i], signature[i]) for i in nodes}) < len(nodes):
            continue
        first = nodes[0]
        for i in nodes[1:]:
            if not any(done[start[i] : end[i]]):
                done[start[i] : end[i]] = [True] * (end[i] - start[i])
                blocks = range(start[first], end[first]), range(start[i], end[i])
                yield from _copies(p, list(zip(*blocks, strict=True)))
