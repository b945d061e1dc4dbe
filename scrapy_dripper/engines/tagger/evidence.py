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

from scrapy_dripper.declared.facts import KINDS, FactIndex, tokens
from scrapy_dripper.engines.tagger.columns import (
    BatchTable,
    Columns,
    Doubles,
    Floats,
    Ints,
    Sums,
    distances,
    ratio,
)
from scrapy_dripper.engines.tagger.text import Characters, Words
from scrapy_dripper.page.page import Flag, Page

MOSTLY = 0.5
"""Share of its words from which a block counts as declared."""
_CONTENT = [i for i, kind in enumerate(KINDS) if kind not in ("detail", "description")]
"""The kinds whose texts are main content on most pages."""

NAMED, NOT_NAMED = 1.2, 0.4
"""Weights of the words outside of links in an element with such a name, and in one that is ``main`` by tag or role."""
ROOT_SHARE = 0.6
"""Share of the page's words outside of links that the deepest such element holds."""

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
            "_start": _signed(n - a),
            "_end": _signed(b - 1 - n),
            "_share": ratio(size[node], page_words),
            "_links": node_links[node],
        }
        for part, column in features.items():
            x[f"root_{name}{part}"] = np.where(there, column, NO_ROOT[part])
    x["root_agree"] = sum((x[f"root_{name}"].astype(np.float32) for name, _, _ in found), np.zeros(len(n), np.float32))


def _signed(distance: Ints) -> Doubles:
    return np.sign(distance) * np.log1p(np.abs(distance))


def _best(score: Doubles, starts: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the node of each page with the highest score, the first of equals, and whether it has one at all."""
    best = []
    for a, b in zip(starts.tolist(), [*starts[1:].tolist(), len(score)], strict=True):
        best.append(a + int(np.argmax(score[a:b])))
    at = np.array(best, dtype=np.int64)
    return at, score[at] > 0
