"""Choose the labels of a page as a whole from the probabilities of its blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]

RECALL_WEIGHTS: Mapping[str, float] = {
    "article": 0.4,
    "collection": 0.5,
    "documentation": 1.0,
    "forum": 0.45,
    "listing": 0.6,
    "product": 0.4,
    "service": 1.0,
}
"""The recall weight for :func:`decide` by page type. Content around an article is rarely part of it; content around the
text of a service page often is."""


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """The parameters for choosing labels. They are tuned on held-out folds and stored in the model's manifest, under
    ``decoding``."""

    recall_weights: Mapping[str, float] = field(default_factory=lambda: dict(RECALL_WEIGHTS))
    """The weight of the expected main words in the denominator of the expected F1, by page type. A higher weight keeps
    more blocks."""
    favor_precision: float = 0.4
    """Factor for the recall weights with ``DRIPPER_FAVOR = "precision"``."""
    favor_recall: float = 2.5
    """Factor for the recall weights with ``DRIPPER_FAVOR = "recall"``."""
    min_words: float = 10.0
    """If fewer words than this are expected to be main, no block is."""

    def recall_of(self, types: Mapping[str, float], favor: str = "balanced") -> float:
        """Return the recall weight of a page: 1 if its type is unknown.

        ``types`` are the probabilities of the page types. ``favor`` is a value of ``DRIPPER_FAVOR``.
        """
        factor = {"precision": self.favor_precision, "recall": self.favor_recall}.get(favor, 1.0)
        weights = np.array([self.recall_weights.get(name, 1.0) for name in types])
        return factor * (float(np.array([*types.values()]) @ weights) if types else 1.0)


BALANCED = DecisionRule()
"""The rule for engines that bring none."""


def decide(
    probabilities: npt.NDArray[np.float32], size: npt.NDArray[np.float32], recall_weight: float, min_words: float
) -> Bools:
    """Return which blocks of a page are main: those that maximise the expected word F1.

    All arrays have shape (n,); ``size`` is in words. The blocks are ranked by probability and cut off at some rank. The
    expected F1 of a cut is ``2 S(p w) / (S(w) + recall_weight * T)``, where the sums S are over the blocks above the
    cut and T is the sum of ``p w`` over the page. The optimal decision under F1 has this form (Nan et al. 2012). The
    weight is the square of beta in the F-beta measure: below 1 it favors precision, above 1 recall.
    """
    p, weight = probabilities.astype(np.float64), size.astype(np.float64)
    main: Bools = np.zeros(len(p), dtype=np.bool_)
    expected = float(np.dot(p, weight))
    if expected < min_words:
        return main
    order = np.argsort(-p, kind="stable")
    gained, taken = np.cumsum((p * weight)[order]), np.cumsum(weight[order])
    best = int(np.argmax(gained / (taken + recall_weight * expected)))
    main[order[: best + 1]] = True
    return main
