"""Probabilities to labels, for a page as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.files import finite
from scrapy_dripper.engines.tagger.page_stage import PAGE_TYPES

Bools = npt.NDArray[np.bool_]

GAP = 6
"""Blocks between two main ones at most, for what is likely there to be main with them."""
LIKELY, LEAST = 0.5, 0.4
"""Their mean probability at least, and that of each of them."""

RECALL_WEIGHTS: Mapping[str, float] = {
    "article": 0.4,
    "collection": 0.5,
    "documentation": 1.0,
    "forum": 0.45,
    "listing": 0.6,
    "product": 0.4,
    "service": 1.0,
}
"""Of each page type, what :func:`decode` weighs recall with. What stands around an article is seldom part of it; on a
page of a service it often is."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """How probabilities become labels; tuned on held folds and kept in the model's manifest."""

    recall_weights: Mapping[str, float] = field(default_factory=lambda: dict(RECALL_WEIGHTS))
    """By page type, the weight of the words expected to be main in the denominator of the expected F1: the more, the
    more is kept."""
    favor_precision: float = 0.4
    """What they are multiplied with under ``DRIPPER_FAVOR = "precision"``."""
    favor_recall: float = 2.5
    """The same under ``DRIPPER_FAVOR = "recall"``."""
    min_words: float = 10.0
    """Of a page on which fewer words than this are expected to be main, no block is: the page is little, or empty."""

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Decoding:
        """Return what a manifest says. Raise KeyError, TypeError or ValueError if it is damaged."""
        weights = values["recall_weights"]
        return cls(
            recall_weights={name: finite(weights[name]) for name in PAGE_TYPES},
            **{name: finite(values[name]) for name in ("favor_precision", "favor_recall", "min_words")},
        )

    def recall_of(self, types: npt.NDArray[np.float32], favor: str = "balanced") -> float:
        """Return the recall weight of a page whose types have these probabilities, of shape (types,).

        ``favor`` is an answer to ``DRIPPER_FAVOR``.
        """
        factor = {"precision": self.favor_precision, "recall": self.favor_recall}.get(favor, 1.0)
        return factor * float(types @ np.array([self.recall_weights[name] for name in PAGE_TYPES]))


def decode(
    probabilities: npt.NDArray[np.float32], size: npt.NDArray[np.float32], recall_weight: float, min_words: float
) -> Bools:
    """Return which blocks of a page are main: the cut that maximises the expected word F1.

    All arrays have shape (n,); ``size`` is in words. The blocks are ranked by probability, and for every cut the
    expected F1 is ``2 S(p w) / (S(w) + recall_weight * T)`` with the sums over the blocks above it and T the sum of
    ``p w`` over the page (the optimal decision under F1 takes this form: Nan et al. 2012). As the weight is the square
    of beta in the F-beta measure, one under 1 favors precision, one over 1 recall.
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


def without_gaps(probabilities: npt.NDArray[np.float32], main: Bools) -> Bools:
    """Return the labels with a few blocks between main ones main, too, if they are likelier so than not.

    Where recall weighs little, the best cut leaves out a line of code or a formula of which the model is fairly sure.
    What stands in the midst of a text is missed more than what stands at its end. All arrays have shape (n,).
    """
    labels: Bools = main.copy()
    places = np.flatnonzero(main)
    for a, b in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
        between = probabilities[a + 1 : b]
        if 0 < len(between) <= GAP and between.mean() >= LIKELY and between.min() >= LEAST:
            labels[a + 1 : b] = True
    return labels
