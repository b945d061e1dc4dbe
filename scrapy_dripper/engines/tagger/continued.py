"""Continue a run of paragraphs to its end.

The probabilities of a long text sink towards its end, where there is less and less around a paragraph that speaks for
it. The labels of largest expected F1 then stop in the middle of the text. A text rarely stops between two paragraphs of
the same shape and parent without a sharp fall of the probability.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.whole import ELSEWHERE, UNSEEN, parent_of
from scrapy_dripper.page.page import Page

Bools = npt.NDArray[np.bool_]

PARAGRAPH_WORDS = 8
"""Minimum size of a paragraph. Shorter blocks between two paragraphs are passed over."""
LEAST_PROBABILITY = 0.3
SHARPEST_FALL = 0.15
"""Maximum fall of the probability from one paragraph to the next."""


def with_continued(
    page: Page, probabilities: npt.NDArray[np.float32], size: npt.NDArray[np.float32], main: Bools
) -> Bools:
    """Return the labels with each paragraph added that continues a main one.

    All arrays have shape (n,) for the page's n blocks; ``size`` is in words.
    """
    inner = page.blocks.context
    flags = page.tree.flags[inner] | page.tree.flags[page.blocks.leaf]
    paragraphs = np.flatnonzero((size >= PARAGRAPH_WORDS) & (flags & (UNSEEN | ELSEWHERE) == 0))
    before, after = paragraphs[:-1], paragraphs[1:]
    shape = page.tree.signature[inner]
    may_follow = (
        ~main[after]
        & (probabilities[after] >= LEAST_PROBABILITY)
        & (probabilities[before] - probabilities[after] < SHARPEST_FALL)
        & (shape[before] == shape[after])
    )
    labels: Bools = main.copy()
    for a, b in zip(before[may_follow].tolist(), after[may_follow].tolist(), strict=True):
        labels[b] = labels[a] and parent_of(page, a) == parent_of(page, b)
    return labels
