"""Probabilities to labels, for a page as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Decoding:
    """How probabilities become labels; tuned on held folds and kept in the model's manifest."""

    recall_weight: float = 0.8
    """Weight of the words expected to be main in the denominator of the expected F1: the more, the more is kept."""
    min_words: float = 10.0
    """A page on which fewer words than this are expected to be main has no main content."""
    copy_words: float = 6.0
    """Of blocks with the same text and at least so many words, only the first can be main."""


def decode(
    probabilities: npt.NDArray[np.float32], size: npt.NDArray[np.float32], texts: Sequence[str], decoding: Decoding
) -> npt.NDArray[np.bool_]:
    """Return which blocks of a page are main: the cut that maximises the expected word F1.

    All arrays have shape (n,); ``size`` is in words. The blocks are ranked by probability, and for every cut the
    expected F1 is ``2 S(p w) / (S(w) + recall_weight * T)`` with the sums over the blocks above it and T the sum of
    ``p w`` over the page (the optimal decision under F1 takes this form: Nan et al. 2012).
    """
    n = len(probabilities)
    p = probabilities.astype(np.float64)
    candidate = np.ones(n, dtype=np.bool_)
    first: dict[str, int] = {}
    for i in np.flatnonzero(size >= decoding.copy_words).tolist():
        original = first.setdefault(texts[i], i)
        if original != i:
            candidate[i] = False
            p[original] = max(p[original], p[i])
    main = np.zeros(n, dtype=np.bool_)
    weight = np.where(candidate, size, 0.0).astype(np.float64)
    expected = float(np.dot(p, weight))
    if expected < decoding.min_words:
        return main
    order = np.argsort(-p, kind="stable")
    order = order[candidate[order]]
    gained, taken = np.cumsum((p * weight)[order]), np.cumsum(weight[order])
    best = int(np.argmax(gained / (taken + decoding.recall_weight * expected)))
    main[order[: best + 1]] = True
    return main
