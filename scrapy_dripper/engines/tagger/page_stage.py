"""What a page is as a whole: the features of the model's page stage, which tells page types apart, and of its quality.

The same shape is main content on one page and furniture on another: cards on a listing and below an article, posts of
a thread and comments. A page's type cannot be seen from one block. So the page stage looks at what the first stage
takes for main content and at the rest, each as a mean over its words.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.features import TAG_FEATURES, Features, Floats

PAGE_TYPES = ("article", "collection", "documentation", "forum", "listing", "product", "service")
"""The types that a page can have, in the order of the page stage's answers."""

LEAST = 0.3
"""Words that every block weighs at least."""
SURE = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Probabilities over which the share of a page's words says how sure the model is."""
_WHOLE = ("page_", "about_")
_Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PageFeatures:
    """Features of pages, a row a page."""

    names: tuple[str, ...]
    matrix: Floats
    """Shape (pages, features)."""


def page_features(batch: Features, probabilities: Floats) -> PageFeatures:
    """Return what the page stage looks at; ``probabilities``, of shape (n blocks,), come from the first stage."""
    p = probabilities.astype(np.float64)
    w = batch.size.astype(np.float64) + LEAST
    starts = batch.edges[:-1]
    of_page = [i for i, name in enumerate(batch.names) if name.startswith(_WHOLE)]
    of_block = [i for i, name in enumerate(batch.names) if not name.startswith(_WHOLE) and name not in TAG_FEATURES]
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
    """Return what the expected word F1 of pages is told from: how sure the model is, and of what.

    ``probabilities`` and ``main``, of shape (n blocks,), are the answer of the model and the blocks that were chosen;
    ``types`` has shape (pages, types).
    """
    p = probabilities.astype(np.float64)
    w = batch.size.astype(np.float64) + LEAST
    starts = batch.edges[:-1]
    total, mass, taken = (np.add.reduceat(x, starts) for x in (w, p * w, main * w))
    right = np.add.reduceat(p * w * main, starts)
    own = _own(p, w, starts)
    own |= {
        "expected_f1": 2 * right / np.maximum(taken + mass, LEAST),
        "expected_precision": right / np.maximum(taken, LEAST),
        "expected_recall": right / np.maximum(mass, LEAST),
        "taken_words": np.log1p(taken),
        "taken_share": taken / total,
        "taken_blocks": np.log1p(np.add.reduceat(main.astype(np.float64), starts)),
    }
    own |= {f"over_{sure}": np.add.reduceat((p > sure) * w, starts) / total for sure in SURE}
    own |= {f"type:{name}": types[:, i].astype(np.float64) for i, name in enumerate(PAGE_TYPES)}
    of_page = [i for i, name in enumerate(batch.names) if name.startswith(_WHOLE)]
    names = (*(batch.names[i] for i in of_page), *own)
    return PageFeatures(names, _joined(batch.matrix[starts][:, of_page], *own.values()))


def _own(p: _Doubles, w: _Doubles, starts: npt.NDArray[np.int64]) -> dict[str, _Doubles]:
    total, mass = np.add.reduceat(w, starts), np.add.reduceat(p * w, starts)
    entropy = -(p * np.log(p + 1e-6) + (1 - p) * np.log(1 - p + 1e-6))
    return {
        "main_words": np.log1p(mass),
        "main_share": mass / total,
        "main_blocks": np.log1p(np.add.reduceat(p, starts)),
        "most": np.maximum.reduceat(p, starts),
        "entropy": np.add.reduceat(entropy * w, starts) / total,
    }


def _joined(*columns: npt.NDArray[np.floating]) -> Floats:
    """Return matrices and columns of as many rows side by side."""
    return np.column_stack(columns).astype(np.float32)


def _means(batch: Features, weights: _Doubles) -> Floats:
    """Return the weighted means of the features over each page: shape (weights, pages, features).

    ``weights`` has shape (weights, n blocks).
    """
    edges = batch.edges.tolist()
    totals = np.add.reduceat(weights, edges[:-1], axis=1)
    shares = weights.astype(np.float32)
    out = np.empty((len(weights), len(edges) - 1, batch.matrix.shape[1]), dtype=np.float32)
    for page, (a, b) in enumerate(pairwise(edges)):
        np.matmul(shares[:, a:b], batch.matrix[a:b], out=out[:, page])
    out /= np.maximum(totals, 1e-9)[:, :, None]
    return out
