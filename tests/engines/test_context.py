"""Features of the second stage."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.engines.tagger.features import features
from scrapy_dripper.engines.tagger.later_stages import (
    LEAST_WEIGHT,
    PAGE_TYPES,
    context,
)
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.parse import parse

PAGE = (
    "<nav><a href=/>Home page</a></nav>"
    "<div><p>One two three four.</p><p>Five six seven eight.</p></div>"
    "<footer><p>Nine ten.</p></footer>"
)


def page(html: str) -> Page:
    return cut(parse(html))


def kinds(pages: int) -> np.ndarray:
    """Return page types that differ from page to page."""
    return np.linspace(0, 1, pages * len(PAGE_TYPES), dtype=np.float32).reshape(pages, -1)


@given(st.sampled_from([0.0, 1.0]))
def test_probabilities_at_the_ends(p: float) -> None:
    """The features are finite even if all probabilities are 0 or 1."""
    batch = features([page(PAGE)])

    assert np.isfinite(context(batch, np.full(len(batch.size), p, dtype=np.float32), kinds(1)).matrix()).all()


def test_what_some_features_say() -> None:
    batch = features([page(PAGE)])
    x = context(batch, np.array([0.1, 0.9, 0.5, 0.2], dtype=np.float32), kinds(1))
    least = LEAST_WEIGHT

    assert np.allclose(x["p-1"], [-1, 0.1, 0.9, 0.5])
    assert np.allclose(x["p+2"][[1, 2, 3]], [(0.5 * (4 + least) + 0.2 * (2 + least)) / (6 + 2 * least), 0.2, 0])
    assert x["since_main"].tolist() == [-1, 0, np.log1p(1), np.log1p(2)]
    assert x["until_main"].tolist() == [np.log1p(1), 0, -1, -1]
    assert np.allclose(x["up1_p"][1:3], 0.7)  # both paragraphs in their container
    assert np.allclose(x["up1_others_p"][1:3], [0.5, 0.9])
    assert np.allclose(x["rank_p"][1], 0.9 * (4 + least) / (np.array([0.1, 0.9, 0.5, 0.2]) @ (batch.size + least)))
    assert x["rank_words"].argsort().tolist() == [1, 2, 3, 0]  # by probability, the surest first
    assert len(set(x["page_p"].tolist())) == 1
