"""Compute the features of all blocks in a batch of pages, with numpy operations on whole columns.

The columns of all pages are concatenated, so that the overhead of a numpy call is paid once per batch. Features of
neighbours never cross the edge of a page. The features cover the context of a block (sections, roles, class names), its
repetition, the content of its ancestors, its words, and its neighbours.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from math import log1p
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.characters import CJK, COMMA, DIGIT, SENTENCE, SEPARATOR, UPPER, Characters, count
from scrapy_dripper.engines.tagger.lexicon import KEYWORDS, PAGE_KINDS, SCHEMA_TYPES, WORD_BITS, WORDS, keywords
from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.tags import TAGS

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

LEVELS = 6
"""Number of ancestors of a block to consider."""
LONG = 20
"""Minimum number of words in a long block."""

_SCHEMA_TYPES = {name: frozenset(types.split()) for name, types in SCHEMA_TYPES.items()}
_PAGE_KINDS = {name: frozenset(kinds.split()) for name, kinds in PAGE_KINDS.items()}
_tokens = re.compile(r"\w+").findall
_headings = np.array([TAGS[f"h{level}"] for level in range(1, 7)])
_PATH = np.int64(1_000_003)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The concatenated columns of a batch of pages with m nodes and n blocks in total."""

    parent: Ints
    """Number of the parent node. A root is its own parent."""
    tag: Ints
    signature: Ints
    flags: Ints
    near: Ints
    """Bit set of the keyword groups of the node and its two nearest ancestors."""
    far: Ints
    """Bit set of the keyword groups of the node and all its ancestors."""
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


def table(pages: Sequence[Page]) -> Table:
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
    own = np.array([keywords(name[:512]) if name else 0 for page in pages for name in page.tree.names], dtype=np.int64)
    up = parent
    near = own | own[up] | own[up[up]]
    far, path = own.copy(), tag.copy()
    start, end = tree("block_start") + to_block, tree("block_end") + to_block
    wider = parent.copy()
    order = np.argsort(depth, kind="stable")
    starts = np.searchsorted(depth[order], np.arange(1, int(depth.max()) + 2))
    for low, high in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        level = order[low:high]
        above = parent[level]
        far[level] |= far[above]
        path[level] += path[above] * _PATH
        same = (start[level] == start[above]) & (end[level] == end[above])
        wider[level] = np.where(same, wider[above], above)
    context = block("context") + of_block
    alone = end[context] - start[context] <= 1
    return Table(
        parent=parent,
        tag=tag,
        signature=tree("signature") * len(pages) + np.repeat(np.arange(len(pages)), nodes),
        flags=tree("flags"),
        near=near,
        far=far,
        depth=depth,
        wider=wider,
        path=path * len(pages) + np.repeat(np.arange(len(pages)), nodes),
        block_start=start,
        block_end=end,
        context=context,
        outer=np.where(alone, wider[context], context),
        leaf=block("leaf") + of_block,
        links=block("links").astype(np.float32),
        link_chars=block("link_chars").astype(np.float32),
        bold_chars=block("bold_chars").astype(np.float32),
        images=block("images").astype(np.float32),
        first=np.repeat(block_at[:-1], blocks),
        last=np.repeat(block_at[1:], blocks),
    )


class Columns(dict[str, npt.NDArray[np.generic]]):
    """Features by name, in insertion order."""

    def matrix(self) -> Floats:
        """Return float32 of shape (n blocks, n features)."""
        out = np.empty((len(next(iter(self.values()))), len(self)), dtype=np.float32)
        for i, column in enumerate(self.values()):
            out[:, i] = column
        return out

    def bits(self, prefix: str, names: Sequence[str], sets: Ints) -> None:
        """Add a feature for each bit of a column of bit sets."""
        for bit, name in enumerate(names):
            self[f"{prefix}:{name}"] = (sets >> bit) & 1


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The features of the n blocks of a batch, page by page."""

    names: tuple[str, ...]
    matrix: Floats
    """Shape (n, features)."""
    size: Floats
    """Words of each block plus half a word for each CJK character, shape (n,)."""
    edges: Ints
    """The first block of each page, followed by n: shape (pages + 1,)."""
    table: Table


def schema_hash(*names: Sequence[str]) -> str:
    """Return a hash of the feature names of all stages and of the tables that define the values of the features.

    Weights only fit the code if their hash is the same.
    """
    meaning = [
        *map(list, names),
        KEYWORDS,
        WORDS,
        SCHEMA_TYPES,
        PAGE_KINDS,
        list(TAGS),
        [flag.name for flag in Flag],
        LEVELS,
        LONG,
    ]
    return hashlib.sha256(json.dumps(meaning, sort_keys=False).encode()).hexdigest()[:16]


def features(pages: Sequence[Page]) -> Features:
    """Return the features of all blocks of the pages. Every page must have at least one block."""
    t = table(pages)
    c = count([text for page in pages for text in page.blocks.text])
    x = Columns()
    _text(x, t, c)
    _words(x, c, pages)
    _place(x, t, c)
    _structure(x, t)
    _repetition(x, t, c, pages)
    _ancestors(x, t, c)
    _neighbours(x, t)
    _page(x, t, c)
    _about(x, pages)
    edges = np.append(np.unique(t.first), len(t.first))
    return Features(tuple(x), x.matrix(), c.size, edges, t)


def _per(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> Floats:
    """Return ``a / max(b, 1)``: a ratio that is 0 if both counts are 0."""
    result: Floats = np.divide(a, np.maximum(b, 1), dtype=np.float32)
    return result


def running(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """Return running totals, so that ``running(v)[b] - running(v)[a]`` is the sum of ``v[a:b]``."""
    return np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])


def _text(x: Columns, t: Table, c: Characters) -> None:
    x["words"] = np.log1p(c.size)
    x["chars"] = np.log1p(c.chars)
    x["link_density"] = np.minimum(_per(t.link_chars, c.chars), 1)
    x["sentence_ends"] = np.log1p(c.sentence_ends)
    x["ends_sentence"] = (c.last & SENTENCE) != 0
    x["ends_colon"] = c.colon
    x["links"] = np.log1p(t.links)
    x["link_words"] = np.log1p(_per(t.link_chars, t.links))
    x["bold"] = np.minimum(_per(t.bold_chars, c.chars), 1)
    x["images"] = np.log1p(t.images)
    x["word_length"] = _per(c.word_chars, c.words)
    x["upper"] = _per(c.upper, c.word_chars)
    x["digits"] = _per(c.digits, c.chars)
    x["commas"] = _per(c.commas, c.size)
    x["separators"] = _per(c.separators, c.size)
    x["currency"] = np.minimum(c.currency, 4)
    x["cjk"] = _per(c.cjk, c.chars)
    x["symbols"] = 1 - _per(c.word_chars, c.chars)
    x["lines"] = np.log1p(c.lines)
    x["starts_upper"] = (c.first & UPPER) != 0
    x["starts_digit"] = (c.first & DIGIT) != 0
    x["starts_other"] = (c.first & (SEPARATOR | COMMA | SENTENCE)) != 0
    x["cjk_last"] = (c.last & CJK) != 0


def _words(x: Columns, c: Characters, pages: Sequence[Page]) -> None:
    """Add the shares of word groups, and of words shared with the page's title and URL."""
    get = WORD_BITS.get
    codes: list[int] = []
    shared: list[int] = []
    for page in pages:
        tokens = _tokens("\n".join(page.blocks.text).lower())
        title = dict.fromkeys(_tokens((page.title or "").lower()), 1)
        try:
            path = urlsplit(page.url).path.lower()
        except ValueError:  # such as "http://["
            path = ""
        for word in _tokens(path.replace("_", "-")):
            if len(word) > 2:
                title[word] = title.get(word, 0) | 2
        codes.extend(map(get, tokens, repeat(0)))
        shared.extend(map(title.get, tokens, repeat(0)) if title else repeat(0, len(tokens)))
    starts = np.concatenate([[0], np.cumsum(c.words[:-1])])
    words = c.words
    if int(words.sum()) != len(codes):  # lower-casing has split a word, so count again
        words = np.array([len(_tokens(text.lower())) for page in pages for text in page.blocks.text])
        starts = np.concatenate([[0], np.cumsum(words[:-1])])
    code, share = np.array(codes, dtype=np.int64), np.array(shared, dtype=np.int64)
    for bit, name in enumerate(WORDS):
        hits = np.add.reduceat((code >> bit) & 1, starts)
        x[f"words:{name}"] = _per(hits, words)
    hits = np.add.reduceat(share & 1, starts)
    x["title_words"] = _per(hits, words)
    x["url_words"] = _per(np.add.reduceat(share >> 1, starts), words)
    x["title_hits"] = np.minimum(hits, 10)


def _place(x: Columns, t: Table, c: Characters) -> None:
    n = np.arange(len(t.first))
    index, blocks = n - t.first, t.last - t.first
    sums = running(c.size)
    before = sums[n] - sums[t.first]
    total = sums[t.last] - sums[t.first]
    x["index"] = np.log1p(index)
    x["index_share"] = _per(index, blocks)
    x["words_before"] = np.log1p(before)
    x["words_before_share"] = _per(before, total)
    x["words_after"] = np.log1p(np.maximum(total - before - c.size, 0))
    x["depth"] = t.depth[t.context]
    x["leaf_depth"] = t.depth[t.leaf] - t.depth[t.context]

    tag = t.tag[t.context]
    level = np.zeros(len(n), dtype=np.int64)
    for i, heading in enumerate(_headings, start=1):
        level[tag == heading] = i
    x["heading_level"] = level
    last_heading = np.maximum.accumulate(np.where(level > 0, n, -1))
    seen = last_heading >= t.first
    last_heading = np.where(seen, last_heading, t.first)
    x["since_heading"] = np.where(seen, np.log1p(n - last_heading), -1)
    x["words_since_heading"] = np.where(seen, np.log1p(sums[n] - sums[last_heading]), -1)
    x["last_heading_level"] = np.where(seen, level[last_heading], 0)
    x["headings_before"] = np.log1p(running(level > 0)[n] - running(level > 0)[t.first])

    h1 = np.where(level == 1, n, len(n))
    first_h1 = np.minimum.reduceat(h1, np.unique(t.first))[np.unique(t.first, return_inverse=True)[1]]
    has = first_h1 < t.last
    x["to_h1"] = np.where(has, np.sign(n - first_h1) * np.log1p(np.abs(n - first_h1)), -9)


def _structure(x: Columns, t: Table) -> None:
    """Add the tags, sections, roles and class names around each block."""
    x["tag"] = t.tag[t.context]
    x["leaf_tag"] = t.tag[t.leaf]
    up = t.context
    for level in range(1, 4):
        up = t.parent[up]
        x[f"parent_tag_{level}"] = t.tag[up]
    x.bits("flag", [flag.name or "" for flag in Flag], t.flags[t.context] | t.flags[t.leaf])
    x.bits("near", list(KEYWORDS), t.near[t.context] | t.near[t.leaf])
    x.bits("far", list(KEYWORDS), t.far[t.leaf])
    for name, by in (("before", -1), ("after", 1)):
        there = _shift(t, by)
        inside, other = there >= 0, t.context[there]
        x[f"parent_as_{name}"] = inside & (t.parent[t.context] == t.parent[other])
        x[f"tag_as_{name}"] = inside & (t.signature[t.context] == t.signature[other])


def _groups(key: Ints) -> tuple[Ints, Ints]:
    """Group equal keys. Return the group number of each row and the size of each group."""
    _, inverse, sizes = np.unique(key, return_inverse=True, return_counts=True)
    return inverse.astype(np.int64), sizes.astype(np.int64)


def _repetition(x: Columns, t: Table, c: Characters, pages: Sequence[Page]) -> None:
    """Add how often the text of each block, and the shape of its context, occur on the page."""
    copies: list[int] = []
    for page in pages:
        texts = page.blocks.text
        counts = Counter(texts)
        copies.extend([counts[text] for text in texts])
    x["copies"] = np.log1p(np.array(copies))

    n = len(t.first)
    up = [t.context]
    for _ in range(3):
        up.append(t.parent[up[-1]])
    four = np.zeros(n, dtype=np.int64)
    for node in up:
        four = four * _PATH + t.signature[node]
    two = t.signature[up[0]] * _PATH + t.signature[up[1]]
    density = np.minimum(_per(t.link_chars, c.chars), 1)
    for name, key in (("shape", four), ("class", two), ("path", t.path[t.context])):
        group, size = _groups(key)
        x[f"{name}_count"] = np.log1p(size)[group]
        x[f"{name}_words"] = np.log1p(_per(np.bincount(group, c.size), size))[group]
        x[f"{name}_links"] = _per(np.bincount(group, density), size)[group]
        x[f"{name}_share"] = _per(size[group], t.last - t.first)


def _ancestors(x: Columns, t: Table, c: Characters) -> None:
    """Add features of the content of the nearest ancestors."""
    size, chars, links = running(c.size), running(c.chars), running(np.minimum(t.link_chars, c.chars))
    long, long_words = running(c.size >= LONG), running(np.where(c.size >= LONG, c.size, 0))
    paragraph = (t.flags[t.context] & Flag.PARAGRAPH) != 0
    p_words = running(np.where(paragraph, c.size, 0))
    ends, images = running(c.sentence_ends), running(t.images)
    n = np.arange(len(t.first))
    total = size[t.last] - size[t.first]
    up = t.outer
    for level in range(1, LEVELS + 1):
        a, b = t.block_start[up], t.block_end[up]
        a, b = np.minimum(a, n), np.maximum(b, n + 1)
        words, blocks = size[b] - size[a], b - a
        x[f"up{level}_words"] = np.log1p(words)
        x[f"up{level}_blocks"] = np.log1p(blocks)
        x[f"up{level}_links"] = _per(links[b] - links[a], chars[b] - chars[a])
        x[f"up{level}_p"] = _per(p_words[b] - p_words[a], words)
        x[f"up{level}_long"] = _per(long_words[b] - long_words[a], words)
        x[f"up{level}_sentences"] = _per(ends[b] - ends[a], words)
        x[f"up{level}_share"] = _per(words, total)
        if level in (1, 3, 5):
            x[f"up{level}_images"] = _per(images[b] - images[a], blocks)
            x[f"up{level}_place"] = _per(n - a, blocks)
            x[f"up{level}_long_blocks"] = _per(long[b] - long[a], blocks)
            above = t.wider[up]
            x[f"up{level}_siblings"] = np.log1p(t.block_end[above] - t.block_start[above] - blocks)
        up = t.wider[up]


def _shift(t: Table, by: int) -> Ints:
    """Return the number of each block's neighbour, or -1 beyond the edge of the page."""
    n = np.arange(len(t.first)) + by
    return np.where((n >= t.first) & (n < t.last), n, -1)


AROUND = ("words", "link_density", "ends_sentence", "heading_level")
"""Features that are also added for the neighbours of each block."""


TAG_FEATURES = ("tag", "leaf_tag", "parent_tag_1", "parent_tag_2", "parent_tag_3", "tag-2", "tag-1", "tag+1", "tag+2")
"""Features whose value is the number of a tag, or -1 beyond the edge of the page."""


def _neighbours(x: Columns, t: Table) -> None:
    for by in (-2, -1, 1, 2):
        there = _shift(t, by)
        inside = there >= 0
        for name in (*AROUND, "tag"):
            x[f"{name}{by:+}"] = np.where(inside, x[name][there], -1)
    n = np.arange(len(t.first))
    sums = {name: running(x[name]) for name in AROUND}
    for reach in (4, 12):
        before, after = np.maximum(n - reach, t.first), np.minimum(n + reach + 1, t.last)
        for name in AROUND:
            total = sums[name]
            x[f"{name}-{reach}"] = _per(total[n] - total[before], n - before)
            x[f"{name}+{reach}"] = _per(total[after] - total[n + 1], after - n - 1)


MEANS = (
    *("words", "chars", "link_density", "sentence_ends", "ends_sentence", "ends_colon", "links", "link_words", "bold"),
    *("images", "word_length", "upper", "digits", "commas", "separators", "currency", "cjk", "symbols", "lines"),
    *("starts_upper", "starts_digit", "starts_other", "words:stop", "heading_level", "copies", "shape_count"),
)
"""Features whose mean over the page is also a feature."""


def _page(x: Columns, t: Table, c: Characters) -> None:
    """Add features of the whole page, which are equal for all its blocks."""
    blocks = t.last - t.first
    for name in MEANS:
        sums = running(x[name])
        x[f"page_{name}"] = _per(sums[t.last] - sums[t.first], blocks)
    sums, long = running(c.size), running(np.where(c.size >= LONG, c.size, 0))
    x["page_size"] = np.log1p(sums[t.last] - sums[t.first])
    x["page_long"] = _per(long[t.last] - long[t.first], sums[t.last] - sums[t.first])
    x["page_blocks"] = np.log1p(blocks)
    for flag in (Flag.MAIN, Flag.ARTICLE, Flag.PARAGRAPH, Flag.NAV, Flag.FORM):
        sums = running((t.flags[t.context] & flag) != 0)
        x[f"page_{(flag.name or '').lower()}"] = _per(sums[t.last] - sums[t.first], blocks)


def _about(x: Columns, pages: Sequence[Page]) -> None:
    """Add features from the page's head and scripts, which are equal for all its blocks."""
    blocks = [len(page.blocks) for page in pages]
    told = [page.about for page in pages]

    def add(name: str, values: Sequence[float]) -> None:
        x[f"about_{name}"] = np.repeat(np.array(values, dtype=np.float32), blocks)

    for name, types in _SCHEMA_TYPES.items():
        add(name, [not types.isdisjoint(about.types) for about in told])
    for name, kinds in _PAGE_KINDS.items():
        add(f"kind_{name}", [about.kind in kinds for about in told])
    known = frozenset().union(*_PAGE_KINDS.values())
    add("kind_other", [bool(about.kind) and about.kind not in known for about in told])
    add("types", [log1p(len(about.types)) for about in told])
    add("description", [log1p(about.description) for about in told])
    add("dated", [about.dated for about in told])
    add("script_chars", [log1p(about.script_chars) for about in told])
