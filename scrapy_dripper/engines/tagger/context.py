"""The features of the model's second stage, which are computed from the first stage's probabilities.

A block is more likely to be main if its neighbours, its container, or similar blocks elsewhere on the page are main.
Nearly all features hold probabilities, positions and sizes. So the second stage learns how main content is distributed
over a page, and does not learn again what it looks like.
"""

from __future__ import annotations

import numpy as np

from scrapy_dripper.engines.tagger.columns import (
    Columns,
    Doubles,
    Floats,
    Groups,
    Sums,
    Table,
    entropy,
    last_chosen,
    least_on_page,
    most_on_page,
    neighbour,
    next_chosen,
    pair,
)
from scrapy_dripper.engines.tagger.features import Features
from scrapy_dripper.engines.tagger.page_stage import LEAST_WEIGHT, PAGE_TYPES

LEVELS = 7
"""Number of ancestors of a block to consider."""
REACHES = (2, 5, 15, 40)
"""Sizes of the windows before and after a block, in blocks."""
THRESHOLDS = (0.3, 0.5, 0.7)
"""Thresholds: the share of a page's words with a higher probability is a feature."""
EVIDENCE = ("declared", "root_prose", "root_words", "root_facts", "root_named", "root_agree")
"""The features of a block that this stage sees again: what its page declares, and what a reader view would choose."""


def context(batch: Features, probabilities: Floats, types: Floats) -> Columns:
    """Return the features of the second stage for the n blocks of a batch.

    ``probabilities`` are those of the first stage, float32 of shape (n,). ``types``, of shape (pages, types), are the
    probabilities of :data:`~scrapy_dripper.engines.tagger.page_stage.PAGE_TYPES`.
    """
    t = batch.table
    p = probabilities.astype(np.float64)
    w = batch.size.astype(np.float64) + LEAST_WEIGHT
    x = Columns()
    x["p"] = p
    _around(x, t, p, w)
    _containers(x, t, p, w)
    _alike(x, t, p, w)
    _rank(x, t, p, w)
    _whole(x, t, p, w)
    x.add(EVIDENCE, batch.columns(*EVIDENCE))
    blocks = np.diff(batch.edges)
    for i, name in enumerate(PAGE_TYPES):
        x[f"type:{name}"] = np.repeat(types[:, i], blocks)
    return x


def _around(x: Columns, t: Table, p: Doubles, w: Doubles) -> None:
    n = np.arange(len(p))
    for by in (-3, -2, -1, 1, 2, 3):
        there = neighbour(by, t.first, t.last)
        x[f"p{by:+}"] = np.where(there >= 0, p[there], -1)
    sums = Sums(np.stack((p * w, w)))
    for reach in REACHES:
        a, b = np.maximum(n - reach, t.first), np.minimum(n + reach + 1, t.last)
        for sign, start, end in (("~", a, b), ("-", a, n), ("+", n + 1, b)):
            mass, words = sums.over(start, end)
            x[f"p{sign}{reach}"] = mass / np.maximum(words, LEAST_WEIGHT)
    before, after = last_chosen(p > 0.5), next_chosen(p > 0.5)
    x["since_main"] = np.where(before >= t.first, np.log1p(np.maximum(n - before, 0)), -1)
    x["until_main"] = np.where(after < t.last, np.log1p(np.maximum(after - n, 0)), -1)


def _containers(x: Columns, t: Table, p: Doubles, w: Doubles) -> None:
    n = np.arange(len(p))
    sums = Sums(np.stack((p * w, w, p)))
    total, _, _ = sums.over(t.first, t.last)
    up = [t.outer]
    for _ in range(1, LEVELS):
        up.append(t.wider[up[-1]])
    nodes = np.stack(up)
    a, b = np.minimum(t.block_start[nodes], n), np.maximum(t.block_end[nodes], n + 1)
    inside, size, blocks = sums.over(a, b)
    columns = {
        "p": inside / size,
        "blocks_p": blocks / (b - a),
        "others_p": (inside - p * w) / np.maximum(size - w, LEAST_WEIGHT),
        "share": inside / np.maximum(total, 1e-9),
    }
    for level in range(LEVELS):
        for name, column in columns.items():
            x[f"up{level + 1}_{name}"] = column[level]


def _alike(x: Columns, t: Table, p: Doubles, w: Doubles) -> None:
    own = t.signature[t.context]
    places = (
        ("class", own),
        ("class_in_class", pair(own, t.signature[t.parent[t.context]])),
        ("path", t.path[t.context]),
        ("leaf", t.signature[t.leaf]),
    )
    for name, key in places:
        groups = Groups(key)
        x[f"{name}_p"] = (groups.sums(p * w) / groups.sums(w))[groups.number]
        x[f"{name}_blocks_p"] = (groups.sums(p) / groups.size)[groups.number]


def _rank(x: Columns, t: Table, p: Doubles, w: Doubles) -> None:
    """Add the rank of each block on its page by probability, and the cut that maximises the expected F1."""
    order = np.lexsort((-p, t.first))
    first, last = t.first[order], t.last[order]
    mass, words = Sums((p * w)[order]), Sums(w[order])
    total_p, total_w = mass.over(first, last), words.over(first, last)
    n = np.arange(len(p))
    taken_p, taken_w = mass.over(first, n + 1), words.over(first, n + 1)
    expected = 2 * taken_p / (taken_w + total_p + 1e-9)
    best = most_on_page(expected, t.first)
    cut = p[order][least_on_page(np.where(expected == best, n, len(p)), t.first)]
    back = np.empty(len(p), dtype=np.int64)
    back[order] = n
    x["rank_words"] = (taken_w / total_w)[back]
    x["rank_p"] = (taken_p / np.maximum(total_p, 1e-9))[back]
    x["best"] = best[back]
    x["cut"] = cut[back]
    x["over_cut"] = p - cut[back]


def _whole(x: Columns, t: Table, p: Doubles, w: Doubles) -> None:
    over = [(p > sure) * w for sure in THRESHOLDS]
    sums = Sums(np.stack((p * w, w, entropy(p) * w, *over)))
    total_p, total_w, total_entropy, *totals = sums.over(t.first, t.last)
    x["before_p"] = Sums(p * w).over(t.first, np.arange(len(p))) / np.maximum(total_p, 1e-9)
    x["page_p"] = total_p / total_w
    x["page_main"] = np.log1p(total_p)
    x["page_most"] = most_on_page(p, t.first)
    x["page_entropy"] = total_entropy / total_w
    for sure, total in zip(THRESHOLDS, totals, strict=True):
        x[f"page_over_{sure}"] = total / total_w
