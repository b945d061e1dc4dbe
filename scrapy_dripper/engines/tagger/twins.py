"""What a person sees once although the page's source has it twice: of such twins, one stays main.

Text that stands twice on purpose is kept: a refrain, the clause that ends each section, steps, code, quotes in a forum.
So a text is a twin only by what the page shows of it: one is hidden, both are links of one card, or a whole section is
there once more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Flag, Page, Tree
from scrapy_dripper.page.tags import TAGS

Bools = npt.NDArray[np.bool_]
Pair = tuple[int, int]
"""The number of a block that is a twin, and that of the block that stands for both."""

LEAST_CHARS = 10
"""Characters from which on a text that is hidden here and shown there is a twin."""
NEAR = 6
"""Blocks that the two texts of a card are apart at most."""
CARD = 10
"""Blocks of a card at most."""
PART = 0.5
"""Share of the words of one text of a card that the other has at least: titles come with and without their price."""
SECTION = 3
"""Blocks of a copied section at least, of which two are long."""
LONG = 15
"""Words of a long block."""
COPIES = 3
"""A section that is there more often is there on purpose."""
SHARED = 0.6
"""Share of the text of an element for some screens that stands elsewhere, at least."""
NESTED = 8
"""Elements for some screens that are looked at within each other: each is read as a whole."""
MARGIN = 0.1
"""The first copy of a section is kept, unless the mean probability of another is higher by more than this."""

# Plain integers: the operators of flags are methods in Python, and here they are asked for every block.
_HEADING = int(Flag.HEADING)
_UNSEEN = int(Flag.HIDDEN | Flag.NOSCRIPT)
_PLACED = int(Flag.HEADING | Flag.CODE | Flag.PREFORMATTED | Flag.TABLE | Flag.QUOTE | Flag.DEFINITION)
_IN_PLACE = int(Flag.CODE | Flag.PREFORMATTED | Flag.TABLE | Flag.QUOTE | Flag.LIST)
_IN_ROWS = int(Flag.CODE | Flag.TABLE)
_ITEM, _LINK = TAGS["li"], TAGS["a"]
_CELLS = frozenset((TAGS["td"], TAGS["th"]))
_ROWS = frozenset(TAGS[tag] for tag in "ul ol menu dl table thead tbody tr body html".split())

_cloned = re.compile(r"(?:^|[\s_-])(?:clone[ds]?|duplicate)(?=[\s_-]|$)", re.I).search
_quotes = re.compile(r"quot(?:e|ation|ing)", re.I).search
_unfolds = re.compile(r"(?:^|[\s_-])tab|accordion|collaps|toggle|panel|expand|fold|more|faq", re.I).search
_SIZE = r"(?:mobile|desktop|tablets?|phone|handheld|touch|xs|sm|md|lg|xl|xxl|small|medium|large)"
_SHOW = r"(?:hide|hidden|show|shown|visible|only|none)"
_for_screens = re.compile(
    rf"(?:^|[\s_-])(?:{_SHOW}[-_:]+(?:[a-z]+[-_:]+)?{_SIZE}|{_SIZE}[-_:]+(?:[a-z]+[-_:]+)?{_SHOW}"
    r"|mobile|desktop|d-none|hidden-\w+|hidden\s(?:\S{1,40}\s){0,9}(?:sm|md|lg|xl):(?:block|flex|grid|inline))"
    r"(?=[\s_-]|$)",
    re.I,
).search
_words = re.compile(r"\w+").findall


def without_twins(page: Page, probabilities: npt.NDArray[np.float32], main: Bools) -> Bools:
    """Return the labels with one of the two taken out where twins are main; where the hidden one is, the other becomes.

    All arrays have shape (n,) for the n blocks of the page.
    """
    if not main.any():
        return main
    kept, p = main.tolist(), probabilities.tolist()
    stands_for: dict[int, int] = {}  # by twin
    ways = [_cards(page, p, kept)]
    # On most pages no text of a main block is there twice, and nothing else is to be looked for.
    often = Counter(page.blocks.text)
    repeated = [often[text] > 1 for text in page.blocks.text]
    if any(keep and again for keep, again in zip(kept, repeated, strict=True)):
        ways = [_sections(page, p, repeated), _other_screens(page, p), _hidden(page, p), *ways]
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
def _hidden(page: Page, p: list[float]) -> Iterator[Pair]:
    """Yield each hidden block whose text is shown elsewhere, and the likeliest block that shows it.

    Hidden is what attributes or inline styles hide, what stands in ``<noscript>``, and the clones of a carousel. What
    a script unfolds (tabs, accordions) has a place of its own, as headings, list items, code, cells, quotes and
    definitions have: those are twins only as clones, or next to each other.
    """
    tree, blocks = page.tree, page.blocks
    flags = _flags(page)
    cloned = _within(tree, _classed(tree, _cloned), len(blocks))
    unseen = [flag & _UNSEEN != 0 or clone for flag, clone in zip(flags, cloned, strict=True)]
    if not any(unseen):
        return
    shown: dict[str, int] = {}
    for i, text in enumerate(blocks.text):
        if not unseen[i] and len(text) >= LEAST_CHARS and (text not in shown or p[i] > p[shown[text]]):
            shown[text] = i
    unfolds = _within(
        tree,
        [
            bool(flag & _UNSEEN and name and _unfolds(name[:512])) or node.get("role") == "tabpanel"
            for flag, name, node in zip(tree.flags.tolist(), tree.names, tree.nodes, strict=True)
        ],
        len(blocks),
    )
    tags = tree.tag[blocks.context].tolist()
    for i, text in enumerate(blocks.text):
        if unseen[i] and text in shown:
            other = shown[text]
            placed = flags[i] & _PLACED or tags[i] == _ITEM or unfolds[i]
            if cloned[i] or abs(i - other) == 1 or not placed:
                yield i, other


def _classed(tree: Tree, pattern: Callable[[str], object]) -> list[bool]:
    """Return which nodes have a class that a pattern finds: an id names what is in the element, as that of a heading.

    Cells are left out: what is hidden is their column, and it is not there twice.
    """
    named = {name for name in set(tree.names) if name and pattern(name[:512]) is not None}
    return [
        name in named and pattern((node.get("class") or "")[:512]) is not None and tag not in _CELLS
        for name, node, tag in zip(tree.names, tree.nodes, tree.tag.tolist(), strict=True)
    ]


def _within(tree: Tree, marked: list[bool], n: int) -> list[bool]:
    """Return which of the n blocks stand in a marked node."""
    change = [0] * (n + 1)
    for i, mark in enumerate(marked):
        if mark:
            change[int(tree.block_start[i])] += 1
            change[int(tree.block_end[i])] -= 1
    return [count > 0 for count in accumulate(change[:n])]


def _other_screens(page: Page, p: list[float]) -> Iterator[Pair]:
    """Yield the blocks of an element whose class says for which screens it is, and that say what stands elsewhere."""
    tree, texts = page.tree, page.blocks.text
    named = [i for i, found in enumerate(_classed(tree, _for_screens)) if found]
    if not named:
        return
    heads = [flag & _HEADING != 0 for flag in _flags(page)]
    places: dict[tuple[str, bool], list[int]] = {}  # a heading is no twin of its line in the table of contents
    for i, key in enumerate(zip(texts, heads, strict=True)):
        places.setdefault(key, []).append(i)
    done = 0
    around: list[int] = []  # where the elements end that were looked at and hold the next one
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
    """Yield the blocks of one of two copies, each with its like in the other, which is kept: the first, mostly."""
    gain = sum(p[j] - p[i] for i, j in pairs) * (1 if pairs[0][0] < pairs[0][1] else -1)
    later = gain > MARGIN * len(pairs)
    for i, j in pairs:
        yield (min(i, j), max(i, j)) if later else (max(i, j), min(i, j))


# ---------------------------------------------------------------------- whole sections
class _Texts:
    """Sums over the texts of blocks by which sequences of them are compared in constant time."""

    _PRIME, _BASE = (1 << 61) - 1, 1_000_003

    def __init__(self, texts: list[str]) -> None:
        numbers: dict[str, int] = {}
        self._sum, self._power = [0], [1]
        for text in texts:
            number = numbers.setdefault(text, len(numbers) + 1)
            self._sum.append((self._sum[-1] * self._BASE + number) % self._PRIME)
            self._power.append(self._power[-1] * self._BASE % self._PRIME)

    def hash(self, a: int, b: int) -> int:
        """Return a number that is the same for the same texts, in the same order, from block a up to b."""
        return (self._sum[b] - self._sum[a] * self._power[b - a]) % self._PRIME


def _sections(page: Page, p: list[float], repeated: Sequence[bool]) -> Iterator[Pair]:
    """Yield the blocks of sections that are there once more, but not as a sibling of the same kind.

    A section has two long texts at least that are neither code nor quoted nor in a list or table, and is there three
    times at most: shorter things, and what comes more often, are repeated on purpose. ``repeated`` says of each block
    if its text is there more than once.
    """
    tree, texts = page.tree, page.blocks.text
    long = [
        again and not flag & _IN_PLACE and len(_words(text)) >= LONG
        for again, flag, text in zip(repeated, _flags(page), texts, strict=True)
    ]
    if sum(long) < 4:  # two of each copy
        return
    quoted = _within(tree, _classed(tree, _quotes), len(texts))
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
    """Yield the text of a card that its other text holds, or is held by: those of its picture's link and its title's.

    One of them at least is main.

    Both lead to the same place; or one leads somewhere and the other holds no link, and both are in an element of a few
    blocks. The longer text is kept, so that no word is lost; of equal ones the heading, else the likelier. A heading
    stays beside a longer text.
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
    """Return True if one of two texts holds the other, from word to word, and that has a good part of its words.

    ``words`` keeps the number of words of each text.
    """
    short, long = sorted((i, j), key=lambda k: len(texts[k]))
    if texts[short] not in texts[long]:
        return False
    for k in (i, j):
        if k not in words:
            words[k] = len(_words(texts[k]))
    few, most = sorted((words[i], words[j]))
    return few >= 2 and few >= PART * most and f" {texts[short]} " in f" {texts[long]} "


class _Card:
    """What decides whether two blocks are of one card."""

    def __init__(self, page: Page) -> None:
        self._tree, self._blocks = page.tree, page.blocks
        self._flags = _flags(page)

    def heading(self, block: int) -> bool:
        return self._flags[block] & _HEADING != 0

    def holds(self, i: int, j: int, i_linked: bool, j_linked: bool) -> bool:
        """Return True if block i and block j before it, one of them a link at least, are of one card.

        Siblings of the same kind are not, nor rows of a list or table, nor links within a page: those of a table of
        contents.
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
        """Return where the first link of a block leads, or the link that it is in."""
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
