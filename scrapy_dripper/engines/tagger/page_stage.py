"""The features of whole pages, from which the model predicts the page type and the quality.

The same structure can be main content on one page and boilerplate on another: cards on a listing and below an article,
or posts of a thread and comments. A single block does not show the type of its page. So the page stage uses the mean
features of the blocks that the first stage takes for main content, and those of the rest, weighted by words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.columns import Doubles, Floats, entropy
from scrapy_dripper.engines.tagger.features import TAG_FEATURES, Features

PAGE_TYPES = ("article", "collection", "documentation", "forum", "listing", "product", "service")
"""The page types, in the order of the page stage's output."""

LEAST_WEIGHT = 0.3
"""Minimum weight of a block in words, so that means are defined around blocks without words."""
THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Thresholds: the share of a page's words with a higher probability shows how sure the model is."""
_WHOLE = ("page_", "about_", "declares:")
_ONE_THREAD = 4 * 65_536
"""OpenBLAS computes products of at most this size in one thread. For larger ones, its other threads start, and spin for
milliseconds of CPU time after each product (GEMM_MULTITHREAD_THRESHOLD in OpenBLAS)."""
_COLUMNS = 64
"""Products are divided at multiples of this, which changes no bit up to 2,000 blocks."""


@dataclass(frozen=True, slots=True, eq=False)
class PageFeatures:
    """Features of pages, one row per page."""

    names: tuple[str, ...]
    matrix: Floats
    """Shape (pages, features)."""


def page_features(batch: Features, probabilities: Floats) -> PageFeatures:
    """Return the features of the page stage. ``probabilities``, of shape (n blocks,), are those of the first stage."""
    p = probabilities.astype(np.float64)
    w = batch.size.astype(np.float64) + LEAST_WEIGHT
    starts = batch.edges[:-1]
    of_page, of_block = _columns(batch.names)
    main, rest = (means[:, of_block] for means in _means(batch, np.stack([p * w, (1 - p) * w])))
    own = _own(p, w, starts)
    names = (
        *(batch.names[i] for i in of_page),
        *(f"main:{batch.names[i]}" for i in of_block),
        *(f"rest:{batch.names[i]}" for i in of_block),
        *own,
    )
    return PageFeatures(names, _joined(batch.matrix[starts][:, of_page], main, rest, *own.values()))


def quality_features(
    batch: Features, probabilities: Floats, types: Floats, main: npt.NDArray[np.bool_]
) -> PageFeatures:
    """Return the features of the quality stage, which predicts the expected word F1.

    ``probabilities`` and ``main``, of shape (n blocks,), are the model's answer and the chosen blocks. ``types`` are
    the probabilities of the page types, of shape (pages, types).
    """
    p = probabilities.astype(np.float64)
    w = batch.size.astype(np.float64) + LEAST_WEIGHT
    starts = batch.edges[:-1]
    total, mass, taken = (np.add.reduceat(x, starts) for x in (w, p * w, main * w))
    right = np.add.reduceat(p * w * main, starts)
    own = _own(p, w, starts)
    own |= {
        "expected_f1": 2 * right / np.maximum(taken + mass, LEAST_WEIGHT),
        "expected_precision": right / np.maximum(taken, LEAST_WEIGHT),
        "expected_recall": right / np.maximum(mass, LEAST_WEIGHT),
        "taken_words": np.log1p(taken),
        "taken_share": taken / total,
        "taken_blocks": np.log1p(np.add.reduceat(main.astype(np.float64), starts)),
    }
    declared = batch.columns("declared")[:, 0] * w
    own["declared_words"] = np.log1p(np.add.reduceat(declared, starts))
    own["declared_kept"] = (np.add.reduceat(declared * main, starts) + LEAST_WEIGHT) / (
        np.add.reduceat(declared, starts) + LEAST_WEIGHT
    )
    own |= {f"over_{sure}": np.add.reduceat((p > sure) * w, starts) / total for sure in THRESHOLDS}
    own |= {f"type:{name}": types[:, i].astype(np.float64) for i, name in enumerate(PAGE_TYPES)}
    of_page, _ = _columns(batch.names)
    names = (*(batch.names[i] for i in of_page), *own)
    return PageFeatures(names, _joined(batch.matrix[starts][:, of_page], *own.values()))


@lru_cache(maxsize=4)
def _columns(names: tuple[str, ...]) -> tuple[list[int], list[int]]:
    """Return the columns that are equal for all blocks of a page, and the other ones that hold numbers."""
    of_page = [i for i, name in enumerate(names) if name.startswith(_WHOLE)]
    tags = [i for i, name in enumerate(names) if name in TAG_FEATURES]
    return of_page, sorted(set(range(len(names))).difference(of_page, tags))


def _own(p: Doubles, w: Doubles, starts: npt.NDArray[np.int64]) -> dict[str, Doubles]:
    total, mass = np.add.reduceat(w, starts), np.add.reduceat(p * w, starts)
    return {
        "main_words": np.log1p(mass),
        "main_share": mass / total,
        "main_blocks": np.log1p(np.add.reduceat(p, starts)),
        "most": np.maximum.reduceat(p, starts),
        "entropy": np.add.reduceat(entropy(p) * w, starts) / total,
    }


def _joined(*columns: npt.NDArray[np.floating]) -> Floats:
    """Join matrices and columns with the same number of rows."""
    return np.column_stack(columns).astype(np.float32)


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
