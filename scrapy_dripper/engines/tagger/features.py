"""Compute the features of all blocks in a batch of pages, with numpy operations on whole columns.

The columns of all pages are concatenated, so that the overhead of a numpy call is paid once per batch. Features of
neighbours never cross the edge of a page. The features cover the context of a block (sections, roles, class names), its
repetition, the content of its ancestors, its words, and its neighbours.

And they cover what points at the main content: facts that a page declares, and what a reader view would choose.
Declared facts are those of :mod:`scrapy_dripper.declared.schema_org`. Readability, and all reader views after it, give
points to the containers of paragraphs and choose the container with the most as the root of the main content. There are
several candidates, because each fails on other pages: by prose, by words outside of links, by declared facts, and by
names such as ``entry-content``.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from math import log1p
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from scrapy_dripper.declared.schema_org import DETAILS, KINDS, FactIndex, tokens
from scrapy_dripper.engines.tagger.columns import (
    CJK,
    COMMA,
    DIGIT,
    FAR_BLOCKS,
    SENTENCE,
    SEPARATOR,
    UPPER,
    BatchTable,
    Characters,
    Columns,
    Doubles,
    Floats,
    Groups,
    Ints,
    Sums,
    Words,
    batch_table,
    bits,
    count,
    distances,
    last_chosen,
    neighbour,
    on_page,
    pair,
    ratio,
    signed,
    split,
    starts_of,
    word_bits,
    words_in,
)
from scrapy_dripper.engines.tagger.lexicon import KEYWORDS, PAGE_KINDS, SCHEMA_TYPES, WORDS
from scrapy_dripper.page.page import FLAGS, Flag, Page
from scrapy_dripper.page.tags import TAGS

LEVELS = 6
"""Number of ancestors of a block to consider."""
_OF_SOME = frozenset({"images", "from_start", "from_end", "long_blocks", "siblings"})
"""Features of only every second of them."""
LONG_BLOCK = 20
"""Minimum number of words in a long block."""
FAR_WORDS, FAR_HEADINGS, NEAR_BLOCKS = 500, 4, 8
"""Larger numbers of words and headings on the page, and of blocks from the edge of an element, are all the same."""

_SCHEMA_TYPES = {name: frozenset(types.split()) for name, types in SCHEMA_TYPES.items()}
_PAGE_KINDS = {name: frozenset(kinds.split()) for name, kinds in PAGE_KINDS.items()}
_WORD_FEATURES = (*(f"words:{name}" for name in WORDS), "title_words", "url_words")
"""The features of words in the order of their bits: groups of words, and then words of the title and of the URL."""
_IN_TITLE, _IN_URL = 1 << len(WORDS), 2 << len(WORDS)
_FLAGS = [f"flag:{name}" for name in FLAGS]
_NEAR, _FAR = ([f"{place}:{name}" for name in KEYWORDS] for place in ("near", "far"))
_headings = np.array([TAGS[f"h{level}"] for level in range(1, 7)])


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
    table: BatchTable

    def columns(self, *names: str) -> Floats:
        """Return some features, of shape (n, names)."""
        return self.matrix[:, _places(self.names, names)]


@lru_cache(maxsize=16)
def _places(names: tuple[str, ...], wanted: tuple[str, ...]) -> list[int]:
    return [names.index(name) for name in wanted]


def schema_hash(*names: Sequence[str]) -> str:
    """Return a hash of the feature names of all stages and of the tables that define the values of the features.

    Weights only fit the code if their hash is the same. It does not see how pages are cut into blocks: that has a
    version of its own (:data:`~scrapy_dripper.page.blocks.CUT`).
    """
    meaning = [
        *map(list, names),
        KEYWORDS,
        WORDS,
        SCHEMA_TYPES,
        PAGE_KINDS,
        list(TAGS),
        list(FLAGS),
        LEVELS,
        LONG_BLOCK,
    ]
    return hashlib.sha256(json.dumps(meaning, sort_keys=False).encode()).hexdigest()[:16]


def features(pages: Sequence[Page]) -> Features:
    """Return the features of all blocks of the pages. Every page must have at least one block."""
    t = batch_table(pages)
    c = count([text for page in pages for text in page.blocks.text])
    x = Columns()
    _text(x, t, c)
    words = split(c, [page.blocks.text for page in pages])
    _words(x, words, pages)
    _place(x, t, c)
    _structure(x, t)
    _repetition(x, t, c, pages)
    _ancestors(x, t, c)
    _neighbours(x, t)
    _rows(x, t, c)
    edges = np.append(starts_of(t.first), len(t.first))
    _page(x, t, c, edges)
    _about(x, pages)
    names(x, t, c, pages)
    roots(x, t, c, pages, declared(x, t, words, pages))
    return Features(tuple(x), x.matrix(), c.size, edges, t)


def _text(x: Columns, t: BatchTable, c: Characters) -> None:
    x["words"] = np.log1p(c.size)
    x["chars"] = np.log1p(c.chars)
    x["link_density"] = np.minimum(ratio(t.link_chars, c.chars), 1)
    x["sentence_ends"] = np.log1p(c.sentence_ends)
    x["ends_sentence"] = (c.last & SENTENCE) != 0
    x["ends_colon"] = c.colon
    x["links"] = np.log1p(t.links)
    x["link_words"] = np.log1p(ratio(t.link_chars, t.links))
    x["bold"] = np.minimum(ratio(t.bold_chars, c.chars), 1)
    x["images"] = np.log1p(t.images)
    x["word_length"] = ratio(c.word_chars, c.words)
    x["upper"] = ratio(c.upper, c.word_chars)
    x["digits"] = ratio(c.digits, c.chars)
    x["commas"] = ratio(c.commas, c.size)
    x["separators"] = ratio(c.separators, c.size)
    x["currency"] = np.minimum(c.currency, 4)
    x["cjk"] = ratio(c.cjk, c.chars)
    x["symbols"] = 1 - ratio(c.word_chars, c.chars)
    x["lines"] = np.log1p(c.lines)
    x["starts_upper"] = (c.first & UPPER) != 0
    x["starts_digit"] = (c.first & DIGIT) != 0
    x["starts_other"] = (c.first & (SEPARATOR | COMMA | SENTENCE)) != 0
    x["cjk_last"] = (c.last & CJK) != 0


def _words(x: Columns, words: Words, pages: Sequence[Page]) -> None:
    """Add the shares of word groups, and of words shared with the page's title and URL."""
    code = word_bits(words, [_named(page) for page in pages])
    starts = np.concatenate([[0], np.cumsum(words.counts[:-1])])
    hits = np.add.reduceat(bits(code, len(_WORD_FEATURES)), starts, axis=0, dtype=np.int64)
    x.add(_WORD_FEATURES, ratio(hits, words.counts[:, None]))
    x["title_hits"] = np.minimum(hits[:, _WORD_FEATURES.index("title_words")], 10)


def _named(page: Page) -> dict[str, int]:
    """Return the bit sets of the words of a page's title and URL."""
    named = dict.fromkeys(words_in(page.title or ""), _IN_TITLE)
    try:
        path = urlsplit(page.url).path
    except ValueError:  # such as "http://["
        path = ""
    for word in words_in(path.replace("_", "-")):
        if len(word) > 2:
            named[word] = named.get(word, 0) | _IN_URL
    return named


def _place(x: Columns, t: BatchTable, c: Characters) -> None:
    """Add the place of each block on its page. Beyond a few blocks or words, all places are the same, so that the
    hundredth post of a thread looks like the tenth.
    """
    n = np.arange(len(t.first))
    size = Sums(c.size)
    before = size.over(t.first, n)
    after = size.over(t.first, t.last) - before - c.size
    x["index"] = np.log1p(np.minimum(n - t.first, FAR_BLOCKS))
    x["words_before"] = np.log1p(np.minimum(before, FAR_WORDS))
    x["words_after"] = np.log1p(np.clip(after, 0, FAR_WORDS))
    x["depth"] = t.depth[t.context]
    x["leaf_depth"] = t.depth[t.leaf] - t.depth[t.context]

    tag = t.tag[t.context]
    level = np.zeros(len(n), dtype=np.int64)
    for i, heading in enumerate(_headings, start=1):
        level[tag == heading] = i
    x["heading_level"] = level
    last_heading = last_chosen(level > 0)
    seen = last_heading >= t.first
    last_heading = np.where(seen, last_heading, t.first)
    x["since_heading"] = np.where(seen, np.log1p(np.minimum(n - last_heading, FAR_BLOCKS)), -1)
    x["words_since_heading"] = np.where(seen, np.log1p(np.minimum(size.over(last_heading, n), FAR_WORDS)), -1)
    x["last_heading_level"] = np.where(seen, level[last_heading], 0)
    x["headings_before"] = np.log1p(np.minimum(Sums(level > 0).over(t.first, n), FAR_HEADINGS))

    first_h1 = on_page(np.minimum, np.where(level == 1, n, len(n)), t.first)
    has = first_h1 < t.last
    x["to_h1"] = np.where(has, signed(n - first_h1), -9)


def _structure(x: Columns, t: BatchTable) -> None:
    """Add the tags, sections, roles and class names around each block."""
    x["tag"] = t.tag[t.context]
    x["leaf_tag"] = t.tag[t.leaf]
    up = t.context
    for level in range(1, 4):
        up = t.parent[up]
        x[f"parent_tag_{level}"] = t.tag[up]
    x.add(_FLAGS, bits(t.flags[t.context] | t.flags[t.leaf], len(_FLAGS)))
    x.add(_NEAR, bits(t.near[t.context] | t.near[t.leaf], len(_NEAR)))
    x.add(_FAR, bits(t.far[t.leaf], len(_FAR)))
    for name, by in (("before", -1), ("after", 1)):
        there = neighbour(by, t.first, t.last)
        inside, other = there >= 0, t.context[there]
        x[f"parent_as_{name}"] = inside & (t.parent[t.context] == t.parent[other])
        x[f"tag_as_{name}"] = inside & (t.tag_class[t.context] == t.tag_class[other])


def _repetition(x: Columns, t: BatchTable, c: Characters, pages: Sequence[Page]) -> None:
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
        four = pair(four, t.tag_class[node])
    two = pair(t.tag_class[up[0]], t.tag_class[up[1]])
    density = np.minimum(ratio(t.link_chars, c.chars), 1)
    for name, key in (("shape", four), ("class", two), ("path", t.path[t.context])):
        groups = Groups(key)
        x[f"{name}_count"] = np.log1p(groups.size)[groups.number]
        x[f"{name}_words"] = np.log1p(ratio(groups.sums(c.size), groups.size))[groups.number]
        x[f"{name}_links"] = ratio(groups.sums(density), groups.size)[groups.number]
        x[f"{name}_share"] = ratio(groups.size[groups.number], t.last - t.first)


def _ancestors(x: Columns, t: BatchTable, c: Characters) -> None:
    """Add features of the content of the nearest ancestors."""
    is_long, is_paragraph = c.size >= LONG_BLOCK, (t.flags[t.context] & Flag.PARAGRAPH) != 0
    sums = Sums(
        np.stack(
            (
                *(c.size, c.chars, np.minimum(t.link_chars, c.chars), np.where(is_paragraph, c.size, 0)),
                *(np.where(is_long, c.size, 0), c.sentence_ends, is_long, t.images),
            )
        )
    )
    n = np.arange(len(t.first))
    up = [t.outer]
    for _ in range(LEVELS):
        up.append(t.wider[up[-1]])
    nodes = np.stack(up)
    start, end = t.block_start[nodes], t.block_end[nodes]
    a, b = np.minimum(start[:-1], n), np.maximum(end[:-1], n + 1)
    words, chars, links, p_words, long_words, ends, long, images = sums.over(a, b)
    blocks = b - a
    columns = {
        "words": np.log1p(words),
        "blocks": np.log1p(blocks),
        "links": ratio(links, chars),
        "p": ratio(p_words, words),
        "long": ratio(long_words, words),
        "sentences": ratio(ends, words),
        "share": ratio(words, Sums(c.size).over(t.first, t.last)),
        "images": ratio(images, blocks),
        "from_start": np.log1p(np.minimum(n - a, NEAR_BLOCKS)),
        "from_end": np.log1p(np.minimum(b - 1 - n, NEAR_BLOCKS)),
        "long_blocks": ratio(long, blocks),
        "siblings": np.log1p(end[1:] - start[1:] - blocks),
    }
    for level in range(LEVELS):
        for name, column in columns.items():
            if level % 2 == 0 or name not in _OF_SOME:
                x[f"up{level + 1}_{name}"] = column[level]


_NEIGHBOURS = (-2, -1, 1, 2)
AROUND = ("words", "link_density", "ends_sentence", "heading_level")
"""Features that are also added for the neighbours of each block."""


TAG_FEATURES = ("tag", "leaf_tag", "parent_tag_1", "parent_tag_2", "parent_tag_3", "tag-2", "tag-1", "tag+1", "tag+2")
"""Features whose value is the number of a tag, or -1 beyond the edge of the page."""


def _neighbours(x: Columns, t: BatchTable) -> None:
    values = np.stack([x[name].astype(np.float32) for name in (*AROUND, "tag")])
    there = neighbour(np.array(_NEIGHBOURS)[:, None], t.first, t.last)
    found = np.where(there >= 0, values[:, there], -1).swapaxes(0, 1)
    names = [f"{name}{by:+}" for by in _NEIGHBOURS for name in (*AROUND, "tag")]
    x.add(names, found.reshape(len(names), -1).T)
    n = np.arange(len(t.first))
    sums = Sums(values[:-1])
    for reach in (4, 12):
        before, after = np.maximum(n - reach, t.first), np.minimum(n + reach + 1, t.last)
        means = ratio(sums.over(before, n), n - before), ratio(sums.over(n + 1, after), after - n - 1)
        for name, *columns in zip(AROUND, *means, strict=True):
            for sign, column in zip("-+", columns, strict=True):
                x[f"{name}{sign}{reach}"] = column


def _rows(x: Columns, t: BatchTable, c: Characters) -> None:
    """Add what shows the rows of a label and its value: what the neighbours end with, and how long they are short."""
    for name, values in (("colon", c.colon), ("currency", np.minimum(c.currency, 4)), ("digits", x["digits"])):
        for by in (-1, 1):
            there = neighbour(by, t.first, t.last)
            x[f"{name}{by:+}"] = np.where(there >= 0, values[there], -1)
    since, until = distances(c.size >= LONG_BLOCK, t.first, t.last)
    most = np.log1p(FAR_BLOCKS)
    x["since_long"], x["until_long"] = np.minimum(since, most), np.minimum(until, most)


MEANS = (
    *("words", "chars", "link_density", "sentence_ends", "ends_sentence", "ends_colon", "links", "link_words", "bold"),
    *("images", "word_length", "upper", "digits", "commas", "separators", "currency", "cjk", "symbols", "lines"),
    *("starts_upper", "starts_digit", "starts_other", "words:stop", "heading_level", "copies", "shape_count"),
)
"""Features whose mean over the page is also a feature."""
_OF_PAGE = ("MAIN", "ARTICLE", "PARAGRAPH", "NAV", "FORM")
"""Flags whose share of the blocks of the page is also a feature."""


def _page(x: Columns, t: BatchTable, c: Characters, edges: Ints) -> None:
    """Add features of the whole page, which are equal for all its blocks."""
    blocks = np.diff(edges)
    columns = [
        *(x[name] for name in MEANS),
        *((t.flags[t.context] & FLAGS[name]) != 0 for name in _OF_PAGE),
        *(c.size, np.where(c.size >= LONG_BLOCK, c.size, 0)),
    ]
    *sums, size, long = Sums(np.array(columns, dtype=np.float64)).over(edges[:-1], edges[1:])
    means = [ratio(total, blocks) for total in sums]
    rows = dict(zip((f"page_{name}" for name in MEANS), means, strict=False))
    rows |= {"page_size": np.log1p(size), "page_long": ratio(long, size), "page_blocks": np.log1p(blocks)}
    for name, share in zip(_OF_PAGE, means[len(MEANS) :], strict=True):
        rows[f"page_{name.lower()}"] = share
    x.add(list(rows), np.repeat(np.array(list(rows.values())).T, blocks, axis=0))


def _about(x: Columns, pages: Sequence[Page]) -> None:
    """Add features from the page's head and scripts, which are equal for all its blocks."""
    blocks = [len(page.blocks) for page in pages]
    told = [page.declared for page in pages]

    def add(name: str, values: Sequence[float]) -> None:
        x[f"about_{name}"] = np.repeat(np.array(values, dtype=np.float32), blocks)

    for name, types in _SCHEMA_TYPES.items():
        add(name, [not types.isdisjoint(about.types) for about in told])
    for name, kinds in _PAGE_KINDS.items():
        add(f"kind_{name}", [about.kind in kinds for about in told])
    known = frozenset().union(*_PAGE_KINDS.values())
    add("kind_other", [bool(about.kind) and about.kind not in known for about in told])
    add("types", [log1p(len(about.types)) for about in told])
    add("description", [log1p(max(map(len, about.descriptions), default=0)) for about in told])
    add("dated", [about.dated for about in told])
    add("script_chars", [log1p(about.script_chars) for about in told])


MOSTLY = 0.5
"""Share of its words from which a block counts as declared."""
_CONTENT = [i for i, kind in enumerate(KINDS) if kind not in (*DETAILS, "description")]
"""The kinds whose texts are main content on most pages."""

NAMED, NOT_NAMED = 1.2, 0.4
"""Weights of the words outside of links in an element with such a name, and in one that is ``main`` by tag or role."""
ROOT_SHARE = 0.6
"""Share of the page's words outside of links that the deepest such element holds."""

NAME_SHARE = 0.5
"""Minimum share of the words of a block that are in the title, for it to be the page's name."""
FAR_NAME_WORDS = 300
"""A larger number of words between a block and the name is the same as this one."""
_NO_NAME = Flag.NAV | Flag.FOOTER | Flag.HIDDEN | Flag.DIALOG | Flag.NOSCRIPT

NO_ROOT = {"": 0.0, "_start": -9.0, "_end": -9.0, "_share": -1.0, "_links": -1.0}
"""The features of a candidate, by the end of their names, with their values on a page that has none."""

ABSENT: Mapping[str, float] = {
    **dict.fromkeys((f"declared:{kind}" for kind in KINDS), 0.0),
    **dict.fromkeys((f"declares:{kind}" for kind in KINDS), 0.0),
    "declared": 0.0,
    "declared_before": -1.0,
    "declared_after": -1.0,
    **{f"root_facts{part}": value for part, value in NO_ROOT.items()},
}
"""The features of declared facts, with their values on a page that declares none. In training, they are dropped from
some pages, so that the model also finds facts that no page declares."""


def declared(x: Columns, t: BatchTable, words: Words, pages: Sequence[Page]) -> Floats:
    """Add the features, and return the share of each block's words that facts cover, of shape (n,)."""
    n = len(t.first)
    share = np.zeros((n, len(KINDS)), dtype=np.float32)
    of_page = np.zeros((n, len(KINDS)), dtype=np.float32)
    start = 0
    for page, (first, last) in zip(pages, pairwise(words.edges), strict=True):
        end = start + len(page.blocks)
        if page.facts:
            index = FactIndex(page.facts)
            if index.cjk:
                found = [tokens(text) for text in page.blocks.text]
                share[start:end] = index.cover(list(chain.from_iterable(found)), np.array(list(map(len, found))))
            else:
                share[start:end] = index.cover(words.words[first:last], words.counts[start:end])
            of_page[start:end] = share[start:end].max(axis=0)
        start = end
    x.add([f"declared:{kind}" for kind in KINDS], share)
    x.add([f"declares:{kind}" for kind in KINDS], of_page)
    content: Floats = share[:, _CONTENT].max(axis=1)
    x["declared"] = content
    x["declared_before"], x["declared_after"] = distances(content >= MOSTLY, t.first, t.last)
    return content


def names(x: Columns, t: BatchTable, c: Characters, pages: Sequence[Page]) -> None:
    """Add the distances from the block with the page's name, which is the one that holds most of the title.

    The price of a product and the address of a flat stand beside its name. If they stand on the page more than once,
    the nearest are those of the page's subject.
    """
    n = np.arange(len(t.first))
    level = x["heading_level"].astype(np.int64)
    is_heading, is_h1 = level > 0, level == 1
    share, hits = x["title_words"].astype(np.float64), x["title_hits"].astype(np.float64)
    score = np.where(share >= NAME_SHARE, share * hits, 0) * (1 + is_heading + is_h1) + 0.5 * is_h1
    score *= (t.flags[t.context] & _NO_NAME) == 0
    best = on_page(np.maximum, score, t.first)
    at = on_page(np.minimum, np.where(score == best, n, len(n)), t.first)
    has = best > 0
    at = np.where(has, at, t.first)
    low, high = np.minimum(at, n), np.maximum(at, n)
    between = Sums(c.size).over(low, high)
    x["to_name"] = np.where(has, signed(n - at), -9)
    x["name_words"] = np.where(has, np.log1p(np.minimum(between, FAR_NAME_WORDS)), -1)
    x["name_score"] = np.where(has, np.log1p(best), -1)
    # The smallest element that holds the block and the name: the elements around the name are nested.
    around, up = np.full(len(n), -1.0), np.full(len(n), -1.0)
    starts = np.append(starts_of(t.first), len(n))
    for a, b in pairwise(starts.tolist()):
        if not has[a]:
            continue
        chain = [int(t.context[at[a]])]
        while (parent := int(t.parent[chain[-1]])) != chain[-1]:
            chain.append(parent)
        first, last = t.block_start[chain], t.block_end[chain]
        # Both grow along the chain: the number of elements that do not reach the block is its level.
        mine = np.arange(a, b)
        level = np.maximum(np.searchsorted(-first, -mine), np.searchsorted(last, mine, side="right"))
        level = np.minimum(level, len(chain) - 1)
        around[a:b] = np.log1p((last - first)[level])
        up[a:b] = level
    x["name_around"], x["name_up"] = around, up
    nearest: list[bool] = []
    distance = np.abs(n - at)
    start = 0
    for page in pages:
        least: dict[str, int] = {}
        texts = page.blocks.text
        mine = distance[start : start + len(texts)].tolist()
        for text, far in zip(texts, mine, strict=True):
            if least.setdefault(text, far) > far:
                least[text] = far
        nearest += [least[text] == far for text, far in zip(texts, mine, strict=True)]
        start += len(texts)
    x["nearest_copy"] = np.array(nearest)


def roots(x: Columns, t: BatchTable, c: Characters, pages: Sequence[Page], covered: Floats) -> None:
    """Add the features of all candidates. ``covered``, of shape (n,), is the share of each block's words that the page
    declares."""
    n = np.arange(len(t.first))
    words, inner = c.size.astype(np.float64), np.minimum(t.link_chars, c.chars)
    density = ratio(inner, c.chars)
    up = [t.context, t.parent[t.context], t.parent[t.parent[t.context]], t.parent[t.parent[t.parent[t.context]]]]
    flags = t.flags[t.context]
    open_ = (flags & (Flag.NAV | Flag.FOOTER | Flag.HIDDEN | Flag.DIALOG)) == 0
    prose = np.where((words >= 5) & (density < 0.5), 1 + c.commas + np.minimum(c.chars / 100, 3), 0)
    points = {
        "prose": prose * open_,
        "words": np.where(density < 0.3, words, 0) * open_,
        "facts": np.where(covered >= MOSTLY, np.minimum(words, 20), 0),
    }
    sums = Sums(np.stack((words, inner, c.chars)))
    page_words, _, _ = sums.over(t.first, t.last)
    size, links, chars = sums.over(t.block_start, t.block_end)
    node_links = np.minimum(1, links / np.maximum(chars, 1))
    page_of_node = np.repeat(np.arange(len(pages)), [len(page.tree.nodes) for page in pages])
    starts = np.searchsorted(page_of_node, np.arange(len(pages)))
    blocks = np.array([len(page.blocks) for page in pages])
    m = len(t.parent)
    found: list[tuple[str, Ints, npt.NDArray[np.bool_]]] = []
    for name, value in points.items():
        score = np.zeros(m)
        for node, share in zip(up, (1, 1, 0.5, 1 / 3), strict=True):
            score += np.bincount(node, value * share, minlength=m)
        score *= 1 - node_links
        if name == "words":
            # The deepest element with most of the words outside of links.
            inside = Sums(value).over(t.block_start, t.block_end)
            total = inside[starts].repeat(np.diff(np.append(starts, m)))  # that of the page's first node, the root
            score = np.where(inside >= ROOT_SHARE * total, t.depth + 1, 0) * (total > 0)
        best, has = _best(score, starts)
        found.append((name, best, has))
        if name == "prose":
            top = np.repeat(np.maximum.reduceat(score, starts), blocks)
            for i, node in enumerate(up[1:3]):
                x[f"root_score_{i + 1}"] = score[node] / np.maximum(top, 1e-9)
            x["root_top"] = np.log1p(top)
    is_main = ((t.flags & Flag.MAIN) != 0) & ((t.flags[t.parent] & Flag.MAIN) == 0)
    text = 1 + size * (1 - node_links)
    main, has_main = _best(np.where(t.named, text * NAMED, np.where(is_main, text * NOT_NAMED, 0)), starts)
    found.append(("named", main, has_main))
    for name, chosen, exists in found:
        node = np.repeat(chosen, blocks)
        there = np.repeat(exists, blocks)
        a, b = t.block_start[node], t.block_end[node]
        features = {
            "": np.where((n >= a) & (n < b), 1, -1),
            "_start": signed(n - a),
            "_end": signed(b - 1 - n),
            "_share": ratio(size[node], page_words),
            "_links": node_links[node],
        }
        for part, column in features.items():
            x[f"root_{name}{part}"] = np.where(there, column, NO_ROOT[part])
    x["root_agree"] = sum((x[f"root_{name}"].astype(np.float32) for name, _, _ in found), np.zeros(len(n), np.float32))


def _best(score: Doubles, starts: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the node of each page with the highest score, the first of equals, and whether it has one at all."""
    best = []
    for a, b in zip(starts.tolist(), [*starts[1:].tolist(), len(score)], strict=True):
        best.append(a + int(np.argmax(score[a:b])))
    at = np.array(best, dtype=np.int64)
    return at, score[at] > 0
