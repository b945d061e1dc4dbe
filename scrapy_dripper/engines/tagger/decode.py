"""Probabilities to labels, for a page as a whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Decoding:
    """How probabilities become labels; tuned on held folds and kept in the model's manifest."""

    recall_weight: float = 0.8
    """Weight of the words expected to be main in the denominator of the expected F1: the more, the more is kept."""
    favor_precision: float = 0.3
    """The same under ``DRIPPER_FAVOR = "precision"``."""
    favor_recall: float = 1.6
    """The same under ``DRIPPER_FAVOR = "recall"``."""
    min_words: float = 10.0
    """Of a page on which fewer words than this are expected to be main, no block is: the page is little, or empty."""

    def favoring(self, favor: str) -> Decoding:
        """Return this with the weight of recall that an answer to ``DRIPPER_FAVOR`` asks for."""
        weights = {"precision": self.favor_precision, "recall": self.favor_recall}
        return replace(self, recall_weight=weights.get(favor, self.recall_weight))


def decode(probabilities: npt.NDArray[np.float32], size: npt.NDArray[np.float32], decoding: Decoding) -> Bools:
    """Return which blocks of a page are main: the cut that maximises the expected word F1.

    All arrays have shape (n,); ``size`` is in words. The blocks are ranked by probability, and for every cut the
    expected F1 is ``2 S(p w) / (S(w) + recall_weight * T)`` with the sums over the blocks above it and T the sum of
    ``p w`` over the page (the optimal decision under F1 takes this form: Nan et al. 2012). As the weight is the square
    of beta in the F-beta measure, one under 1 favors precision, one over 1 recall.
    """
    p, weight = probabilities.astype(np.float64), size.astype(np.float64)
    main: Bools = np.zeros(len(p), dtype=np.bool_)
    expected = float(np.dot(p, weight))
    if expected < decoding.min_words:
        return main
    order = np.argsort(-p, kind="stable")
    gained, taken = np.cumsum((p * weight)[order]), np.cumsum(weight[order])
    best = int(np.argmax(gained / (taken + decoding.recall_weight * expected)))
    main[order[: best + 1]] = True
    return main
