"""The features of the model's second stage, which are computed from the first stage's probabilities.

A block is more likely to be main if its neighbours, its container, or similar blocks elsewhere on the page are main.
These features only hold probabilities, positions and sizes. So the second stage learns how main content is distributed
over a page, and does not learn again what it looks like.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.features import Columns, Features, Floats, Table, running
from scrapy_dripper.engines.tagger.page_stage import PAGE_TYPES

_PAIR = np.int64(1_000_003)
_Doubles = npt.NDArray[np.float64]

LEVELS = 7
"""Number of ancestors of a block to consider."""
REACHES = (2, 5, 15, 40)
"""Sizes of the windows before and after a block, in blocks."""
SURE = (0.3, 0.5, 0.7)
"""Thresholds: the share of a page's words with a higher probability is a feature."""
LEAST = 0.3
"""Minimum weight of a block in words, so that means are defined around blocks without words."""


def context(batch: Features, probabilities: Floats, types: Floats) -> Columns:
    """Return the features of the second stage for the n blocks of a batch.

    ``probabilities`` are those of the first stage, float32 of shape (n,). ``types``, of shape (pages, types), are the
    probabilities of :data:`~scrapy_dripper.engines.tagger.page_stage.PAGE_TYPES`.
    """
    t = batch.table
    p = probabilities.astype(np.float64)
    w = batch.size.astype(np.float64) + LEAST
    x = Columns()
    x["p"] = p
    _around(x, t, p, w)
    _containers(x, t, p, w)
    _alike(x, t, p, w)
    _rank(x, t, p, w)
    _whole(x, t, p, w)
    blocks = np.diff(batch.edges)
    for i, name in enumerate(PAGE_TYPES):
        x[f"type:{name}"] = np.repeat(types[:, i], blocks)
    return x


def _around(x: Columns, t: Table, p: _Doubles, w: _Doubles) -> None:
    n = np.arange(len(p))
    for by in (-3, -2, -1, 1, 2, 3):
        there = n + by
        inside = (there >= t.first) & (there < t.last)
        x[f"p{by:+}"] = np.where(inside, p[np.where(inside, there, 0)], -1)
    pw, ww = running(p * w), running(w)
    for reach in REACHES:
        a, b = np.maximum(n - reach, t.first), np.minimum(n + reach + 1, t.last)
        x[f"p~{reach}"] = (pw[b] - pw[a]) / (ww[b] - ww[a])
        x[f"p-{reach}"] = (pw[n] - pw[a]) / np.maximum(ww[n] - ww[a], LEAST)
        x[f"p+{reach}"] = (pw[b] - pw[n + 1]) / np.maximum(ww[b] - ww[n + 1], LEAST)
    main = p > 0.5
    before = np.maximum.accumulate(np.where(main, n, -1))
    after = np.minimum.accumulate(np.where(main, n, len(p))[::-1])[::-1]
    x["since_main"] = np.where(before >= t.first, np.log1p(np.maximum(n - before, 0)), -1)
    x["until_main"] = np.where(after < t.last, np.log1p(np.maximum(after - n, 0)), -1)


def _containers(x: Columns, t: Table, p: _Doubles, w: _Doubles) -> None:
    n = np.arange(len(p))
    pw, ww, pp = running(p * w), running(w), running(p)
    total = pw[t.last] - pw[t.first]
    up = t.outer
    for level in range(1, LEVELS + 1):
        a, b = np.minimum(t.block_start[up], n), np.maximum(t.block_end[up], n + 1)
        words, mass = ww[b] - ww[a], pw[b] - pw[a]
        x[f"up{level}_p"] = mass / words
        x[f"up{level}_blocks_p"] = (pp[b] - pp[a]) / (b - a)
        x[f"up{level}_others_p"] = (mass - p * w) / np.maximum(words - w, LEAST)
        x[f"up{level}_share"] = mass / np.maximum(total, 1e-9)
        up = t.wider[up]


def _alike(x: Columns, t: Table, p: _Doubles, w: _Doubles) -> None:
    own = t.signature[t.context]
    places = (
        ("class", own),
        ("class_in_class", own * _PAIR + t.signature[t.parent[t.context]]),
        ("path", t.path[t.context]),
        ("leaf", t.signature[t.leaf]),
    )
    for name, key in places:
        _, group = np.unique(key, return_inverse=True)
        x[f"{name}_p"] = (np.bincount(group, p * w) / np.bincount(group, w))[group]
        x[f"{name}_blocks_p"] = (np.bincount(group, p) / np.bincount(group))[group]


def _rank(x: Columns, t: Table, p: _Doubles, w: _Doubles) -> None:
    """Add the rank of each block on its page by probability, and the cut that maximises the expected F1."""
    order = np.lexsort((-p, t.first))
    first, last = t.first[order], t.last[order]
    mass, words = (p * w)[order], w[order]
    pw, ww = running(mass), running(words)
    total_p, total_w = pw[last] - pw[first], ww[last] - ww[first]
    n = np.arange(len(p))
    taken_p, taken_w = pw[n + 1] - pw[first], ww[n + 1] - ww[first]
    expected = 2 * taken_p / (taken_w + total_p + 1e-9)
    starts = np.unique(t.first)
    page = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(p))))
    best = np.maximum.reduceat(expected, starts)[page]
    at = np.where(expected == best, n, len(p))
    cut = p[order][np.minimum.reduceat(at, starts)][page]
    back = np.empty(len(p), dtype=np.int64)
    back[order] = n
    x["rank_words"] = (taken_w / total_w)[back]
    x["rank_p"] = (taken_p / np.maximum(total_p, 1e-9))[back]
    x["best"] = best[back]
    x["cut"] = cut[back]
    x["over_cut"] = p - cut[back]


def _whole(x: Columns, t: Table, p: _Doubles, w: _Doubles) -> None:
    n = np.arange(len(p))
    pw, ww = running(p * w), running(w)
    total_p, total_w = pw[t.last] - pw[t.first], ww[t.last] - ww[t.first]
    x["before_p"] = (pw[n] - pw[t.first]) / np.maximum(total_p, 1e-9)
    x["page_p"] = total_p / total_w
    x["page_main"] = np.log1p(total_p)
    starts = np.unique(t.first)
    page = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(p))))
    x["page_most"] = np.maximum.reduceat(p, starts)[page]
    entropy = running(-(p * np.log(p + 1e-6) + (1 - p) * np.log(1 - p + 1e-6)) * w)
    x["page_entropy"] = (entropy[t.last] - entropy[t.first]) / total_w
    for sure in SURE:
        over = running((p > sure) * w)
        x[f"page_over_{sure}"] = (over[t.last] - over[t.first]) / total_w
