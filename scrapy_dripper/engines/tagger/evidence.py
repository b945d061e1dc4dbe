"""Features of what points at the main content: facts that a page declares, and what a reader view would choose.

Declared facts are those of :mod:`scrapy_dripper.declared.facts`. Readability, and all reader views after it, give
points to the containers of paragraphs and choose the container with the most as the root of the main content. There are
several candidates, because each fails on other pages: by prose, by words outside of links, by declared facts, and by
names such as ``entry-content``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from scrapy_dripper.declared.facts import DETAILS, KINDS, FactIndex, tokens
from scrapy_dripper.engines.tagger.columns import (
    BatchTable,
    Columns,
    Doubles,
    Floats,
    Ints,
    Sums,
    distances,
    on_page,
    ratio,
    signed,
    starts_of,
)
from scrapy_dripper.engines.tagger.text import Characters, Words
from scrapy_dripper.page.page import Flag, Page

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
