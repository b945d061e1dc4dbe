"""Fit the weights of a site to its corrected pages: a regularised logistic regression on top of the model.

The offset is the model's log-odds, reduced by a factor, so the weights only learn where the model is wrong. They are
found by Newton's method, with conjugate gradients for each step. The loss is strictly convex, so the same pages always
give the same weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.columns import Doubles
from scrapy_dripper.engines.tagger.features import features
from scrapy_dripper.engines.tagger.learnt import PLACES, Places, Site, Vocabulary, trusted
from scrapy_dripper.engines.tagger.model import TaggerModel
from scrapy_dripper.page.page import Page
from scrapy_dripper.workshop.learning.corrections import Correction

PAGE = 20.0
"""Total weight of the blocks of a page in the loss, to which the regularisation adds half the squared weights."""
_HEAVIEST = 2.0  # the largest weight of a block for its words, as a multiple of the page's main content
_STEPS, _INNER = 30, 100
_GAIN, _GRADIENT, _RESIDUAL = 1e-9, 1e-5, 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class SiteLesson:
    """The training data of a corrected page of n blocks."""

    places: Places
    odds: Doubles
    """The reduced log-odds of the model, shape (n,)."""
    main: npt.NDArray[np.float64]
    """The right labels, 0 or 1, shape (n,)."""
    weight: Doubles
    """The weight of each block, shape (n,). The sum is :data:`PAGE`."""

    @classmethod
    def of(cls, correction: Correction, page: Page, model: TaggerModel, vocabulary: Vocabulary) -> SiteLesson:
        """Return the training data of a page, and add its names to the vocabulary of its site.

        Long blocks count more, as in the word F1, but only with the square root of their length.
        """
        batch = features([page])
        words = batch.size.astype(np.float64)
        share = words / max(30.0, float(words[correction.main].sum()))
        weight = np.sqrt((np.minimum(_HEAVIEST, share) + 0.5 / max(20, len(words))) * correction.trust)
        return cls(
            Places.of(page, vocabulary, grow=True),
            trusted(model(batch).probabilities),
            correction.main.astype(np.float64),
            PAGE * weight / max(float(weight.sum()), 1e-9),
        )


def fit(lessons: Sequence[SiteLesson], vocabulary: Vocabulary) -> Site:
    """Return the weights that fit the pages of a site. Takes time linear in the size of the pages."""
    places = Places.joined([one.places for one in lessons])
    odds, main, weight = (
        np.concatenate([getattr(one, name) for one in lessons]) for name in ("odds", "main", "weight")
    )
    size = len(vocabulary)
    found = np.zeros(len(PLACES) * size + 1)

    def loss(weights: Doubles) -> float:
        said = odds + places.odds(weights)
        return float(weight @ (np.logaddexp(0, said) - main * said) + weights @ weights / 2)

    now = loss(found)
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(odds + places.odds(found), -500, 500)))
        gradient = places.gathered(weight * (p - main), size) + found
        if np.linalg.norm(gradient) < _GRADIENT:
            break
        step = _solve(places, weight * p * (1 - p), -gradient, size)
        length = 1.0
        while (then := loss(found + length * step)) > now and length > 1e-9:
            length /= 2
        if then > now:
            break
        found, gained, now = found + length * step, now - then, then
        if gained < _GAIN * now:
            break
    return Site(dict(vocabulary), found)


def _solve(places: Places, curvature: Doubles, right: Doubles, size: int) -> Doubles:
    """Return the step of Newton's method, by conjugate gradients.

    ``curvature`` is the second derivative of the loss by the log-odds of each block, shape (n,). ``right`` is the right
    side of the equation: the negative gradient.
    """
    step, residual = np.zeros_like(right), right.copy()
    direction, square = residual.copy(), float(residual @ residual)
    end = _RESIDUAL * square
    for _ in range(_INNER):
        product = places.gathered(curvature * places.odds(direction), size) + direction
        length = square / float(direction @ product)
        step, residual = step + length * direction, residual - length * product
        new = float(residual @ residual)
        if new < end:
            break
        direction, square = residual + new / square * direction, new
    return step
