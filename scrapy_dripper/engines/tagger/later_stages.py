"""The features of the stages after the first, which are computed from the first stage's probabilities.

The same structure can be main content on one page and boilerplate on another: cards on a listing and below an article,
or posts of a thread and comments. A single block does not show the type of its page. So the *page stage*, which
predicts the page type and the quality, uses the mean features of the blocks that the first stage takes for main
content, and those of the rest, weighted by words.

A block is more likely to be main if its neighbours, its container, or similar blocks elsewhere on the page are main.
Nearly all features of the *second stage* hold probabilities, positions and sizes. So it learns how main content is
distributed over a page, and does not learn again what it looks like.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import compress, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.columns import (
    BatchTable,
    Columns,
    Doubles,
    Floats,
    Groups,
    Sums,
    distances,
    entropy,
    neighbour,
    on_page,
    pair,
)
from scrapy_dripper.engines.tagger.features import TAG_FEATURES, Features

PAGE_TYPES = ("article", "collection", "documentation", "forum", "listing", "product", "service")
"""The page types, in the order of the page stage's output."""

LEAST_WEIGHT = 0.3
"""Minimum weight of a block in words, so that means are defined around blocks without words."""
PAGE_THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Thresholds: the share of a page's words with a higher probability shows how sure the model is."""
_OF_WHOLE_PAGES = ("page_", "about_", "declares:")
_ONE_THREAD = 4 * 65_536
"""OpenBLAS computes products of at most this size in one thread. For larger ones, its other threads start, and spin for
milliseconds of CPU time after each product (GEMM_MULTITHREAD_THRESHOLD in OpenBLAS)."""
_COLUMNS = 64
"""Products are divided at multiples of this, which changes no bit up to 2,000 blocks."""

LEVELS = 7
"""Number of ancestors of a block to consider."""
REACHES = (2, 5, 15, 40)
"""Sizes of the windows before and after a block, in blocks."""
_NEIGHBOURS = (-3, -2, -1, 1, 2, 3)
FAR_MASS = 300
"""A larger number of expected main words before a block is the same as this one."""
THRESHOLDS = (0.3, 0.5, 0.7)
"""Thresholds: the share of a page's words with a higher probability is a feature."""
EVIDENCE = (
    "declared",
    "root_prose",
    "root_words",
    "root_facts",
    "root_named",
    "root_agree",
    "to_name",
    "name_words",
    "name_around",
    "name_up",
    "nearest_copy",
)
"""The features of a block that this stage sees again: what its page declares, and what a reader view would choose."""


# ---------------------------------------------------------------------- the page stage
def page_features(batch: Features, probabilities: Floats) -> Columns:
    """Return the features of the page stage, a row for each page.

    ``probabilities``, of shape (n blocks,), are those of the first stage.
    """
    p = probabilities.astype(np.float64)
    w = batch.size.astype(np.float64) + LEAST_WEIGHT
    known = _columns(batch.names)
    x = Columns()
    x.add(known.of_page_names, batch.matrix[batch.edges[:-1]][:, known.of_page])
    main, rest = _means(batch, np.stack([p * w, (1 - p) * w]))
    x.add(known.main_names, main[:, known.of_block])
    x.add(known.rest_names, rest[:, known.of_block])
    _own(x, p, w, batch.edges[:-1])
    return x


def quality_features(batch: Features, probabilities: Floats, types: Floats, main: npt.NDArray[np.bool_]) -> Columns:
    """Return the features of the quality stage, which predicts the expected word F1, a row for each page.

    ``probabilities`` and ``main``, of shape (n blocks,), are the model's answer and the chosen blocks. ``types`` are
    the probabilities of the page types, of shape (pages, types).
    """
    p = probabilities.astype(np.float64)
    w = batch.size.astype(np.float64) + LEAST_WEIGHT
    starts = batch.edges[:-1]
    known = _columns(batch.names)
    declared = batch.columns("declared")[:, 0] * w
    sums = (w, p * w, main * w, p * w * main, declared, declared * main, main.astype(np.float64))
    total, mass, taken, right, told, kept, blocks = (np.add.reduceat(values, starts) for values in sums)
    x = Columns()
    x.add(known.of_page_names, batch.matrix[starts][:, known.of_page])
    _own(x, p, w, starts)
    x["expected_f1"] = 2 * right / np.maximum(taken + mass, LEAST_WEIGHT)
    x["expected_precision"] = right / np.maximum(taken, LEAST_WEIGHT)
    x["expected_recall"] = right / np.maximum(mass, LEAST_WEIGHT)
    x["taken_words"] = np.log1p(taken)
    x["taken_share"] = taken / total
    x["taken_blocks"] = np.log1p(blocks)
    x["declared_words"] = np.log1p(told)
    x["declared_kept"] = (kept + LEAST_WEIGHT) / (told + LEAST_WEIGHT)
    for sure in PAGE_THRESHOLDS:
        x[f"over_{sure}"] = np.add.reduceat((p > sure) * w, starts) / total
    x.add([f"type:{name}" for name in PAGE_TYPES], types)
    return x


def of_pages(batch: Features) -> list[Features]:
    """Return for each page of a batch the features that :func:`quality_features` reads, and no others, which would stay
    in memory with them."""
    names = (*_columns(batch.names).of_page_names, "declared")
    told = batch.columns(*names)
    return [
        replace(batch, names=names, matrix=told[a:b], size=batch.size[a:b], edges=np.array([0, b - a]))
        for a, b in pairwise(batch.edges.tolist())
    ]


class _Kinds(NamedTuple):
    """Which columns are equal for all blocks of a page, which other ones hold numbers, and what they are called."""

    of_page: npt.NDArray[np.intp]
    of_block: npt.NDArray[np.intp]
    of_page_names: list[str]
    main_names: list[str]
    rest_names: list[str]


@lru_cache(maxsize=4)
def _columns(names: tuple[str, ...]) -> _Kinds:
    of_page = [name.startswith(_OF_WHOLE_PAGES) for name in names]
    of_block = [not (whole or name in TAG_FEATURES) for whole, name in zip(of_page, names, strict=True)]
    numbers = list(compress(names, of_block))
    main, rest = ([f"{part}:{name}" for name in numbers] for part in ("main", "rest"))
    return _Kinds(np.flatnonzero(of_page), np.flatnonzero(of_block), list(compress(names, of_page)), main, rest)


def _own(x: Columns, p: Doubles, w: Doubles, starts: npt.NDArray[np.int64]) -> None:
    total, mass = np.add.reduceat(w, starts), np.add.reduceat(p * w, starts)
    x["main_words"] = np.log1p(mass)
    x["main_share"] = mass / total
    x["main_blocks"] = np.log1p(np.add.reduceat(p, starts))
    x["most"] = np.maximum.reduceat(p, starts)
    x["entropy"] = np.add.reduceat(entropy(p) * w, starts) / total


def _means(batch: Features, weights: Doubles) -> Floats:
    """Return the weighted means of the features over each page, of shape (weights, pages, features).

    ``weights`` has shape (weights, n blocks).
    """
    edges = batch.edges.tolist()
    totals = np.add.reduceat(weights, edges[:-1], axis=1)
    shares = weights.astype(np.float32)
    out = np.empty((len(weights), len(edges) - 1, batch.matrix.shape[1]), dtype=np.float32)
    width = batch.matrix.shape[1]
    for page, (a, b) in enumerate(pairwise(edges)):
        columns = max(_COLUMNS, _ONE_THREAD // (len(weights) * (b - a)) // _COLUMNS * _COLUMNS)
        for c in range(0, width, columns):
            np.matmul(shares[:, a:b], batch.matrix[a:b, c : c + columns], out=out[:, page, c : c + columns])
    out /= np.maximum(totals, 1e-9)[:, :, None]
    return out


# ---------------------------------------------------------------------- the second stage
def context(batch: Features, probabilities: Floats, types: Floats) -> Columns:
    """Return the features of the second stage for the n blocks of a batch.

    ``probabilities`` are those of the first stage, float32 of shape (n,). ``types``, of shape (pages, types), are the
    probabilities of :data:`PAGE_TYPES`.
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
    x.add([f"type:{name}" for name in PAGE_TYPES], np.repeat(types, np.diff(batch.edges), axis=0))
    return x


def _around(x: Columns, t: BatchTable, p: Doubles, w: Doubles) -> None:
    # The rows of a matrix are computed together: on a small page, calls take longer than numbers.
    n = np.arange(len(p))
    there = neighbour(np.array(_NEIGHBOURS)[:, None], t.first, t.last)
    for by, column in zip(_NEIGHBOURS, np.where(there >= 0, p[there], -1), strict=True):
        x[f"p{by:+}"] = column
    reach = np.array(REACHES)[:, None]
    a, b = np.maximum(n - reach, t.first), np.minimum(n + reach + 1, t.last)
    here = np.broadcast_to(n, a.shape)
    start, end = np.stack((a, a, here + 1), axis=1), np.stack((b, here, b), axis=1)
    mass, words = Sums(np.stack((p * w, w))).over(start.reshape(-1, len(n)), end.reshape(-1, len(n)))
    names = [f"p{sign}{reach}" for reach in REACHES for sign in "~-+"]
    for name, column in zip(names, mass / np.maximum(words, LEAST_WEIGHT), strict=True):
        x[name] = column
    x["since_main"], x["until_main"] = distances(p > 0.5, t.first, t.last)


def _containers(x: Columns, t: BatchTable, p: Doubles, w: Doubles) -> None:
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


def _alike(x: Columns, t: BatchTable, p: Doubles, w: Doubles) -> None:
    own = t.tag_class[t.context]
    places = (
        ("class", own),
        ("class_in_class", pair(own, t.tag_class[t.parent[t.context]])),
        ("path", t.path[t.context]),
        ("leaf", t.tag_class[t.leaf]),
    )
    for name, key in places:
        groups = Groups(key)
        x[f"{name}_p"] = (groups.sums(p * w) / groups.sums(w))[groups.number]
        x[f"{name}_blocks_p"] = (groups.sums(p) / groups.size)[groups.number]


def _rank(x: Columns, t: BatchTable, p: Doubles, w: Doubles) -> None:
    """Add the rank of each block on its page by probability, and the cut that maximises the expected F1."""
    order = np.lexsort((-p, t.first))
    first, last = t.first[order], t.last[order]
    mass, words = Sums((p * w)[order]), Sums(w[order])
    total_p, total_w = mass.over(first, last), words.over(first, last)
    n = np.arange(len(p))
    taken_p, taken_w = mass.over(first, n + 1), words.over(first, n + 1)
    expected = 2 * taken_p / (taken_w + total_p + 1e-9)
    best = on_page(np.maximum, expected, t.first)
    cut = p[order][on_page(np.minimum, np.where(expected == best, n, len(p)), t.first)]
    back = np.empty(len(p), dtype=np.int64)
    back[order] = n
    x["rank_words"] = (taken_w / total_w)[back]
    x["rank_p"] = (taken_p / np.maximum(total_p, 1e-9))[back]
    x["best"] = best[back]
    x["cut"] = cut[back]
    x["over_cut"] = p - cut[back]


def _whole(x: Columns, t: BatchTable, p: Doubles, w: Doubles) -> None:
    over = [(p > sure) * w for sure in THRESHOLDS]
    sums = Sums(np.stack((p * w, w, entropy(p) * w, *over)))
    total_p, total_w, total_entropy, *totals = sums.over(t.first, t.last)
    x["before_p"] = np.log1p(np.minimum(Sums(p * w).over(t.first, np.arange(len(p))), FAR_MASS))
    x["page_p"] = total_p / total_w
    x["page_main"] = np.log1p(total_p)
    x["page_most"] = on_page(np.maximum, p, t.first)
    x["page_entropy"] = total_entropy / total_w
    for sure, total in zip(THRESHOLDS, totals, strict=True):
        x[f"page_over_{sure}"] = total / total_w
