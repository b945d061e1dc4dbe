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
    page_features,
    quality_features,
)
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.parse import parse
from tests.html_strategies import documents

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


@given(st.lists(documents(), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_a_batch_gives_what_each_page_gives_alone(sources: list[str], random: object) -> None:
    """In all stages, no feature crosses the edge of a page, whatever the probabilities."""
    pages = [found for found in map(page, sources) if len(found.blocks)]
    if not pages:
        return
    batch = features(pages)
    p = np.array([random.random() for _ in batch.size], dtype=np.float32)  # type: ignore[attr-defined]
    types = kinds(len(pages))
    together = context(batch, p, types).matrix()
    whole, quality = page_features(batch, p).matrix, quality_features(batch, p, types, p > 0.5).matrix

    assert np.isfinite(together).all()
    assert np.isfinite(whole).all()
    assert np.isfinite(quality).all()
    for i, (found, a, b) in enumerate(zip(pages, batch.edges[:-1], batch.edges[1:], strict=True)):
        alone, q, kind = features([found]), p[a:b], types[i : i + 1]
        close = {"rtol": 1e-4, "atol": 1e-4}
        np.testing.assert_allclose(together[a:b], context(alone, q, kind).matrix(), **close)
        np.testing.assert_allclose(whole[i : i + 1], page_features(alone, q).matrix, **close)
        np.testing.assert_allclose(quality[i : i + 1], quality_features(alone, q, kind, q > 0.5).matrix, **close)


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
