"""Learn from pages of which only some facts are known, such as the ingredients of a recipe.

Blocks with a known or a declared fact are main, and what is surely furniture is not (:mod:`.known`). The rest has the
labels of trees that were fitted on other pages, with a low weight. Without them, a model that has only seen the facts
of such a page takes all of it for main content; with them, it keeps the facts and drops what it would drop anyway.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from scrapy_dripper.workshop.training.prepare import Example, weights

GUESSED = 0.3
"""Weight of the labels of the rest of a page."""


def completed(example: Example, probabilities: npt.NDArray[np.float64]) -> Example:
    """Return an example with labels for all of its n blocks. ``probabilities`` label those that are not known."""
    known = example.weight > 0
    main = np.where(known, example.main, probabilities > 0.5)
    size = example.features.size
    guessed = GUESSED * example.share * weights(size / max(30.0, float(size[main].sum())))
    return replace(
        example,
        main=main,
        weight=np.where(known, example.weight, guessed).astype(np.float32),
        words=np.where(known, example.words, GUESSED * size).astype(np.float32),
    )


def estimated_f1(example: Example, chosen: npt.NDArray[np.bool_]) -> float:
    """Return the word F1 of some blocks of a page, if all blocks of which nothing is known have the right label."""
    size, known = example.features.size, example.weight > 0
    right = float(size[chosen & (example.main | ~known)].sum())
    missed = float(size[~chosen & known & example.main].sum())
    return 2 * right / max(1.0, float(size[chosen].sum()) + right + missed)
