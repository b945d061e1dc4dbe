"""The pages of a batch as one table: columns of nodes and blocks, with the kinds of characters and the words of blocks.

Operations on columns work page by page, or on all blocks at once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, compress, pairwise, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.lexicon import CONTENT, WORD_BITS, content_bit, keywords
from scrapy_dripper.page.page import Page

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Column = npt.NDArray[np.generic]

GRID = 2.0**30
"""Sums of fractions are exact in units of its inverse."""
PRIME = np.int64(1_000_003)
"""The factor of :func:`pair`."""


FAR_BLOCKS = 40
"""A larger distance in blocks is the same as this one."""


class Columns(dict[str, Column]):
    """Features by name, in insertion order. A column can be replaced, but not one that was added in a matrix."""

    def __init__(self) -> None:
        self._parts: dict[str, Column] = {}  # columns and matrices, by the name of their first feature

    def __setitem__(self, name: str, column: Column) -> None:
        super().__setitem__(name, column)
        self._parts[name] = column

    def add(self, names: Sequence[str], columns: Column) -> None:
        """Add the columns of a matrix of shape (n blocks, n names)."""
        self.update(zip(names, columns.T, strict=True))
        self._parts[names[0]] = columns

    def matrix(self) -> Floats:
        """Return float32 of shape (n blocks, n features)."""
        out = np.empty((len(next(iter(self.values()))), len(self)), dtype=np.float32)
        i = 0
        for part in self._parts.values():  # copying matrices as a whole is faster than column by column
            end = i + (part.shape[1] if part.ndim > 1 else 1)
            out[:, i:end] = part if part.ndim > 1 else part[:, None]
            i = end
        return out


class Sums:
    """The sums of a column over any slices of it, in constant time for each. Several columns are the rows of a matrix.

    One call of numpy for a matrix is faster than one for each column. Values are rounded to multiples of 2 ** -30, and
    totals stay below 2 ** 23. So all sums are exact, and the sum over a slice does not depend on what is before it.
    """

    def __init__(self, values: Column) -> None:
        self._totals = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
        exact = np.rint(np.multiply(values, GRID, dtype=np.float64)) / GRID if values.dtype.kind == "f" else values
        np.cumsum(exact, axis=-1, dtype=np.float64, out=self._totals[..., 1:])

    def over(self, start: Ints, end: Ints) -> Doubles:
        """Return the sum of ``values[..., start:end]`` for each pair of indexes."""
        sums: Doubles = self._totals.take(end, axis=-1) - self._totals.take(start, axis=-1)
        return sums


class Groups:
    """The rows with equal keys."""

    def __init__(self, key: Ints) -> None:
        _, number, size = np.unique(key, return_inverse=True, return_counts=True)
        self.number: Ints = number.astype(np.int64)
        """The group of each row."""
        self.size: Ints = size.astype(np.int64)
        """The number of rows of each group."""

    def sums(self, values: npt.NDArray[Any]) -> Doubles:
        """Return the sum of a column over each group."""
        sums: Doubles = np.bincount(self.number, values).astype(np.float64, copy=False)
        return sums


def ratio(a: Column, b: Column) -> Floats:
    """Return ``a / max(b, 1)``: a ratio that is 0 if both counts are 0."""
    result: Floats = np.divide(a, np.maximum(b, 1), dtype=np.float32)
    return result


def bits(sets: Ints, count: int) -> npt.NDArray[np.uint8]:
    """Return the first bits of each bit set, 0 or 1, as a matrix of shape (n, count)."""
    octets = np.ascontiguousarray(sets, dtype="<i8").view(np.uint8).reshape(len(sets), 8)
    return np.unpackbits(octets, axis=1, count=count, bitorder="little")


def pair(a: Ints, b: Ints) -> Ints:
    """Return a key for each pair of keys."""
    key: Ints = a * PRIME + b
    return key


def starts_of(first: Ints) -> Ints:
    """Return the first block of each page."""
    return np.flatnonzero(first == np.arange(len(first)))  # np.unique would import numpy.ma


def on_page(reduce: np.ufunc, values: npt.NDArray[Any], first: Ints) -> npt.NDArray[Any]:
    """Return for each block the maximum or minimum over its page, whose first block is ``first``."""
    starts = starts_of(first)
    found: npt.NDArray[Any] = np.repeat(reduce.reduceat(values, starts), np.diff(starts, append=len(first)))
    return found


def neighbour(by: int | Ints, first: Ints, last: Ints) -> Ints:
    """Return the number of the block that is ``by`` blocks after each, or -1 beyond the edge of the page.

    Several distances are a column of shape (distances, 1).
    """
    n = np.arange(len(first)) + by
    return np.where((n >= first) & (n < last), n, -1)


def last_chosen(chosen: Bools) -> Ints:
    """Return for each block the last chosen one up to it, or -1 if there is none. Edges of pages are ignored."""
    found: Ints = np.maximum.accumulate(np.where(chosen, np.arange(len(chosen)), -1))
    return found


def distances(chosen: Bools, first: Ints, last: Ints) -> tuple[Doubles, Doubles]:
    """Return the logarithm of 1 + the distance of each block from the last chosen one up to it, and from the first one
    from it on. It is -1 if there is none on the page.
    """
    n = np.arange(len(chosen))
    before, after = last_chosen(chosen), len(n) - 1 - last_chosen(chosen[::-1])[::-1]
    return (
        np.where(before >= first, np.log1p(np.maximum(n - before, 0)), -1),
        np.where(after < last, np.log1p(np.maximum(after - n, 0)), -1),
    )


def signed(distance: Ints) -> Doubles:
    """Return the logarithm of 1 + each distance, with its sign. Larger distances than :data:`FAR_BLOCKS` are equal."""
    return np.sign(distance) * np.log1p(np.minimum(np.abs(distance), FAR_BLOCKS))


def entropy(p: Doubles) -> Doubles:
    """Return the entropy of probabilities, in nats."""
    return -(p * np.log(p + 1e-6) + (1 - p) * np.log(1 - p + 1e-6))


@dataclass(frozen=True, slots=True, eq=False)
class BatchTable:
    """The concatenated columns of a batch of pages with m nodes and n blocks in total."""

    parent: Ints
    """Number of the parent node. A root is its own parent."""
    tag: Ints
    tag_class: Ints
    flags: Ints
    near: Ints
    """Bit set of the keyword groups of the node and its two nearest ancestors."""
    far: Ints
    """Bit set of the keyword groups of the node and all its ancestors."""
    named: Bools
    """True for a node whose class or id names the main content."""
    depth: Ints
    wider: Ints
    """Number of the nearest ancestor with more blocks than the node. This skips wrappers around the same blocks."""
    path: Ints
    """Hash of the tags from the root down."""
    block_start: Ints
    block_end: Ints
    context: Ints
    outer: Ints
    """Number of the innermost node that holds more than the block. If the block is an inline run among other blocks,
    this is ``context``."""
    leaf: Ints
    links: Floats
    link_chars: Floats
    bold_chars: Floats
    images: Floats
    first: Ints
    """Number of the first block of the block's page."""
    last: Ints
    """One past the last block of the block's page."""


def batch_table(pages: Sequence[Page]) -> BatchTable:
    """Concatenate the columns of pages."""
    nodes = np.array([len(page.tree.nodes) for page in pages], dtype=np.int64)
    blocks = np.array([len(page.blocks) for page in pages], dtype=np.int64)
    node_at = np.concatenate([[0], np.cumsum(nodes)])
    block_at = np.concatenate([[0], np.cumsum(blocks)])
    to_node, to_block = np.repeat(node_at[:-1], nodes), np.repeat(block_at[:-1], nodes)
    of_block = np.repeat(node_at[:-1], blocks)

    def tree(name: str) -> Ints:
        return np.concatenate([getattr(page.tree, name) for page in pages]).astype(np.int64)

    def block(name: str) -> Ints:
        return np.concatenate([getattr(page.blocks, name) for page in pages]).astype(np.int64)

    parent = np.maximum(tree("parent"), 0) + to_node
    tag, depth = tree("tag"), tree("depth")
    start, end = tree("block_start") + to_block, tree("block_end") + to_block
    context, leaf = block("context") + of_block, block("leaf") + of_block
    has_text, up = end > start, leaf
    while len(up := up[~has_text[up]]):  # elements within a line, each once
        has_text[up] = True
        up = parent[up]
    names = list(chain.from_iterable(page.tree.names for page in pages))
    told = set(compress(names, has_text.tolist()))  # a third of the names are only of elements without text
    known = {name: keywords(name[:512]) if name in told else content_bit(name[:512]) for name in set(names)}
    own = np.fromiter(map(known.__getitem__, names), dtype=np.int64, count=len(names))
    up = parent
    near = own | own[up] | own[up[up]]
    same = (start == start[parent]) & (end == end[parent])
    far, path, top = own, tag, np.where(same, parent, np.arange(len(parent)))
    # Each step doubles the number of ancestors that the columns cover.
    reach, factor = 1, np.array([PRIME])
    while reach <= depth.max(initial=0):
        far = far | far[up]
        path = np.where(depth >= reach, path[up] * factor + path, path)
        top, up = top[top], up[up]
        reach, factor = 2 * reach, factor * factor
    page = np.repeat(np.arange(len(pages)), nodes)
    alone = end[context] - start[context] <= 1
    return BatchTable(
        parent=parent,
        tag=tag,
        tag_class=tree("tag_class") * len(pages) + page,
        flags=tree("flags"),
        near=near,
        far=far,
        named=own & CONTENT != 0,
        depth=depth,
        wider=parent[top],
        path=path * len(pages) + page,
        block_start=start,
        block_end=end,
        context=context,
        outer=np.where(alone, parent[top[context]], context),
        leaf=leaf,
        links=block("links").astype(np.float32),
        link_chars=block("link_chars").astype(np.float32),
        bold_chars=block("bold_chars").astype(np.float32),
        images=block("images").astype(np.float32),
        first=np.repeat(block_at[:-1], blocks),
        last=np.repeat(block_at[1:], blocks),
    )


WORD, UPPER, DIGIT, SENTENCE, COMMA, CJK, SEPARATOR, CURRENCY = (1 << i for i in range(8))

_SENTENCE = ".!?。！？…؟।"
_COMMA = ",;，、；،"
_SEPARATOR = "|•·»›/>→←«‹–—-:"
_CJK = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))

Codes = npt.NDArray[np.uint32]


@lru_cache(maxsize=1)
def _plane() -> npt.NDArray[np.uint8]:
    """Return the kinds of the characters of the Basic Multilingual Plane."""
    result = _classify(np.arange(0x10000, dtype=np.uint32))
    for bit, members in ((WORD, "_"), (SENTENCE, _SENTENCE), (COMMA, _COMMA), (SEPARATOR, _SEPARATOR)):
        result[[ord(member) for member in members]] |= bit
    return result


def _classify(codes: Codes) -> npt.NDArray[np.uint8]:
    """Return the kinds of each character that its Unicode properties decide.

    Each worker process classifies a whole plane when it starts, so the loops are those of functions in C.
    """
    chars = codes.view("U1")
    result = np.zeros(len(codes), dtype=np.uint8)
    for bit, test in ((WORD, np.char.isalnum), (UPPER, np.char.isupper), (DIGIT, np.char.isdigit)):
        result[test(chars)] |= bit
    for low, high in _CJK:
        result[(codes >= low) & (codes <= high)] |= CJK
    others = np.flatnonzero(result & WORD == 0)
    # numpy returns NUL as an empty text.
    signs = [i for i, char in zip(others, chars[others], strict=True) if char and unicodedata.category(char) == "Sc"]
    result[signs] |= CURRENCY
    return result


def kinds(codes: Codes) -> npt.NDArray[np.uint8]:
    """Return the kinds of each character as a bit set."""
    result: npt.NDArray[np.uint8] = _plane()[np.minimum(codes, 0xFFFF)]
    beyond = np.flatnonzero(codes > 0xFFFF)
    if beyond.size:
        unique, inverse = np.unique(codes[beyond], return_inverse=True)
        result[beyond] = _classify(unique)[inverse]
    return result


@dataclass(frozen=True, slots=True, eq=False)
class Characters:
    """Character counts of n texts. Every column has shape (n,) and holds counts, unless documented otherwise."""

    chars: npt.NDArray[np.float32]
    words: npt.NDArray[np.int64]
    """Words, as defined by the metric: runs of ``\\w``."""
    size: npt.NDArray[np.float32]
    """Words plus half a word for each CJK character, because these scripts have no spaces."""
    word_chars: npt.NDArray[np.float32]
    upper: npt.NDArray[np.float32]
    digits: npt.NDArray[np.float32]
    sentence_ends: npt.NDArray[np.float32]
    commas: npt.NDArray[np.float32]
    separators: npt.NDArray[np.float32]
    currency: npt.NDArray[np.float32]
    cjk: npt.NDArray[np.float32]
    lines: npt.NDArray[np.float32]
    first: npt.NDArray[np.uint8]
    """Kind of the first character."""
    last: npt.NDArray[np.uint8]
    """Kind of the last character."""
    colon: npt.NDArray[np.bool_]
    """True if the text ends with a colon."""
    text: str
    """The texts, each with a line feed after it."""
    is_word: npt.NDArray[np.bool_]
    """True for the characters of ``text`` that belong to words."""


def count(texts: list[str]) -> Characters:
    """Count the characters of non-empty texts."""
    joined = "\n".join(texts) + "\n"
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    starts = np.concatenate([[0], np.cumsum(lengths[:-1] + 1)])
    kind = kinds(codes)
    is_word = (kind & WORD) != 0
    begins = is_word.copy()
    begins[1:] &= ~is_word[:-1]

    def total(marks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        sums: npt.NDArray[np.int64] = np.add.reduceat(marks, starts, dtype=np.int64)
        return sums

    def share(bit: int) -> npt.NDArray[np.float32]:
        return total((kind & bit) != 0).astype(np.float32)

    words, cjk = total(begins), share(CJK)
    ends = starts + lengths - 1
    return Characters(
        chars=lengths.astype(np.float32),
        words=words,
        size=words.astype(np.float32) + 0.5 * cjk,
        word_chars=total(is_word).astype(np.float32),
        upper=share(UPPER),
        digits=share(DIGIT),
        sentence_ends=share(SENTENCE),
        commas=share(COMMA),
        separators=share(SEPARATOR),
        currency=share(CURRENCY),
        cjk=cjk,
        lines=total(codes == 10).astype(np.float32),
        first=kind[starts],
        last=kind[ends],
        colon=np.isin(codes[ends], [ord(":"), ord("：")]),
        text=joined,
        is_word=is_word,
    )


_SPACE = np.uint32(ord(" "))

_tokens = re.compile(r"\w+").findall


def words_in(text: str) -> list[str]:
    """Return the words of a text: runs of ``\\w`` in lower case."""
    return _tokens(text.lower())


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The words of all blocks of a batch in lower case."""

    words: list[str]
    counts: Ints
    """Number of words of each block."""
    edges: list[int]
    """The first word of each page, followed by the number of words."""


def split(c: Characters, texts: Sequence[Sequence[str]]) -> Words:
    """Return the words of texts. ``c`` are the characters of all texts; ``texts`` are by page."""
    lower = c.text.lower()
    if len(lower) == len(c.text):
        counts, words = c.words, _split(lower, c.is_word)
    else:  # U+0130 becomes two characters, of which the second is not part of a word
        found = [words_in(text) for of_page in texts for text in of_page]
        counts = np.array([len(words) for words in found], dtype=np.int64)
        words = [word for words in found for word in words]
    ends = np.cumsum(counts)[np.cumsum([len(of_page) for of_page in texts]) - 1].tolist()
    return Words(words, counts, [0, *ends])


def word_bits(w: Words, named: Sequence[Mapping[str, int]]) -> Ints:
    """Return a bit set for each word: that of the lexicon, and that of the word among those that its page names."""
    bits = []
    for known, (a, b) in zip(named, pairwise(w.edges), strict=True):
        get = (WORD_BITS | {word: bit | WORD_BITS.get(word, 0) for word, bit in known.items()}).get
        bits.append(np.fromiter(map(get, w.words[a:b], repeat(0)), dtype=np.int64, count=b - a))
    return np.concatenate(bits)


def _split(lower: str, is_word: npt.NDArray[np.bool_]) -> list[str]:
    """Return the words of a text in half the time that a regular expression takes."""
    codes = np.frombuffer(lower.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return np.where(is_word, codes, _SPACE).tobytes().decode("utf-32-le").split()
