"""Remove twins: content that is in the source of a page twice, although a reader sees it once.

Text that is repeated on purpose is kept, such as a refrain, a closing clause, steps, code, or quotes in a forum. A text
is only a twin if one copy is hidden, if both are links of the same card, or if a whole section is repeated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.class_names import Names, found_in
from scrapy_dripper.page.page import Flag, Page, Tree
from scrapy_dripper.page.tags import TAGS

Bools = npt.NDArray[np.bool_]
Pair = tuple[int, int]
"""The number of a twin and the number of the block that represents both."""

LEAST_CHARS = 10
"""Minimum length of a hidden text that can be a twin, in characters."""
NEAR = 6
"""Maximum distance between the two texts of a card, in blocks."""
CARD = 10
"""Maximum number of blocks in a card."""
PART = 0.5
"""Minimum share of words that the two texts of a card have in common. Titles occur with and without a price."""
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

_cloned = re.compile(r"[\s_-](?:clone[ds]?|duplicate)(?=[\s_-]|$)")
_quotes = re.compile(r"quot(?:e|ation|ing)")
_unfolds = re.compile(r"(?:^|[\s_-])tab|accordion|collaps|toggle|panel|expand|fold|more|faq", re.I).search
_SIZE = r"(?:mobile|desktop|tablets?|phone|handheld|touch|xs|sm|md|lg|xl|xxl|small|medium|large)"
_SHOW = r"(?:hide|hidden|show|shown|visible|only|none)"
_for_screens = re.compile(
    rf"[\s_-](?:{_SHOW}[-_:]+(?:[a-z]+[-_:]+)?{_SIZE}|{_SIZE}[-_:]+(?:[a-z]+[-_:]+)?{_SHOW}"
    r"|mobile|desktop|d-none|hidden-\w+|hidden\s(?:\S{1,40}\s){0,9}(?:sm|md|lg|xl):(?:block|flex|grid|inline))"
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
    ways = [_cards(page, p, kept)]
    # The other searches are only needed if the text of a main block is repeated, which is rare.
    often = Counter(page.blocks.text)
    repeated = [often[text] > 1 for text in page.blocks.text]
    if any(keep and again for keep, again in zip(kept, repeated, strict=True)):
        names = Names(page.tree.names)
        ways = [_sections(page, p, repeated, names), _other_screens(page, p, names), _hidden(page, p, names), *ways]
    for pairs in ways:
        for twin, other in pairs:
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


# ---------------------------------------------------------------------- links of one card
def _cards(page: Page, p: list[float], kept: Sequence[bool]) -> Iterator[Pair]:
    """Yield pairs of texts of the same card, such as the links of its picture and its title, one containing the other.

    At least one of them is main. Both link to the same target, or one is a link and the other has no link and both are
    in an element with few blocks. The longer text is kept, so that no word is lost. Of equal texts, the heading is
    kept, or else the more likely one. A heading is never removed in favour of a longer text.
    """
    texts = page.blocks.text
    links, chars = page.blocks.links.tolist(), page.blocks.link_chars.tolist()
    linked = [2 * own >= len(text) for own, text in zip(chars, texts, strict=True)]
    mixed = [count > 0 and not link for count, link in zip(links, linked, strict=True)]
    card = _Card(page)
    words: dict[int, int] = {}
    last = -NEAR - 1
    for i in range(len(texts)):
        if linked[i]:
            last = i
        if mixed[i] or i - last > NEAR:
            continue
        for j in range(i - 1, max(-1, i - NEAR - 1), -1):
            if (kept[i] or kept[j]) and not mixed[j] and (linked[i] or linked[j]) and _says_both(texts, words, i, j):
                if not card.holds(i, j, linked[i], linked[j]):
                    continue
                ranks = [(len(texts[k]), card.heading(k), p[k]) for k in (i, j)]
                twin, other = (i, j) if ranks[0] <= ranks[1] else (j, i)
                if texts[i] == texts[j] or not card.heading(twin):
                    yield twin, other


def _says_both(texts: Sequence[str], words: dict[int, int], i: int, j: int) -> bool:
    """Return True if one of two texts contains the other as whole words, and they have most words in common.

    ``words`` caches the number of words of each text.
    """
    short, long = (i, j) if len(texts[i]) <= len(texts[j]) else (j, i)
    if texts[short] not in texts[long]:
        return False
    for k in (i, j):
        if k not in words:
            words[k] = len(_words(texts[k]))
    few, most = sorted((words[i], words[j]))
    return few >= 2 and few >= PART * most and f" {texts[short]} " in f" {texts[long]} "


class _Card:
    """Decides whether two blocks belong to the same card."""

    def __init__(self, page: Page) -> None:
        self._tree, self._blocks = page.tree, page.blocks
        self._flags = _flags(page)

    def heading(self, block: int) -> bool:
        return self._flags[block] & _HEADING != 0

    def holds(self, i: int, j: int, i_linked: bool, j_linked: bool) -> bool:
        """Return True if block i and an earlier block j, at least one of them a link, belong to the same card.

        Siblings of the same kind, rows of a list or table, and links within the page (a table of contents) do not.
        """
        tree, context = self._tree, self._blocks.context
        if (self._flags[i] | self._flags[j]) & _IN_ROWS:
            return False
        targets = {self._target(block) for block, link in ((i, i_linked), (j, j_linked)) if link}
        if len(targets) > 1 or any(not target or "#" in target for target in targets):
            return False
        a, b = int(context[j]), int(context[i])
        if a != b and tree.parent[a] == tree.parent[b] and tree.signature[a] == tree.signature[b]:
            return False
        while b < a or b >= tree.end[a]:
            a = int(tree.parent[a])
        few = (i_linked and j_linked) or tree.block_end[a] - tree.block_start[a] <= CARD
        return bool(few) and int(tree.tag[a]) not in _ROWS

    def _target(self, block: int) -> str | None:
        """Return the target of the link around a block, or of the first link in it."""
        tree = self._tree
        leaf = node = int(self._blocks.leaf[block])
        while node >= 0 and tree.flags[node] & Flag.LINK:
            if tree.tag[node] == _LINK:
                return str(tree.nodes[node].get("href") or "")
            node = int(tree.parent[node])
        for node in range(leaf + 1, min(leaf + NEAR, len(tree.nodes))):
            if tree.tag[node] == _LINK and tree.text_owner[node] == block:
                return str(tree.nodes[node].get("href") or "")
        return None
