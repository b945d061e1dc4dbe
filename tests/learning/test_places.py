"""Sums of the weights of names around blocks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.engines.tagger.learnt import Places, Vocabulary, names
from scrapy_dripper.page import Page
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.parse import parse
from tests.html_strategies import documents


def weights_of(vocabulary: Vocabulary, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=3 * len(vocabulary) + 1)


def one_by_one(page: Page, vocabulary: Vocabulary, weights: np.ndarray) -> list[float]:
    """Return the sums by their definition: for each block, over each ancestor."""
    tree, size = page.tree, len(vocabulary)

    def names_of(node: int) -> list[str]:
        return names(str(tree.nodes[node].tag), tree.names[node])

    sums = []
    for context, leaf in zip(page.blocks.context.tolist(), page.blocks.leaf.tolist(), strict=True):
        around, node = set(), leaf
        while node >= 0:
            around |= {name for name in names_of(node) if name.startswith(".")}
            node = int(tree.parent[node])
        total = weights[-1] + sum(weights[vocabulary[name]] for name in around)
        total += sum(weights[size + vocabulary[name]] for name in names_of(context))
        sums.append(total + sum(weights[2 * size + vocabulary[name]] for name in names_of(leaf)))
    return sums


@given(st.lists(documents(), min_size=1, max_size=3), st.integers(0, 9))
def test_property_sums_are_those_of_the_elements_around(sources: list[str], seed: int) -> None:
    """This also holds for several pages at once."""
    pages = [cut(parse(source)) for source in sources]
    vocabulary: Vocabulary = {}
    parts = [Places.of(page, vocabulary, grow=True) for page in pages]
    weights = weights_of(vocabulary, seed)

    expected = [value for page in pages for value in one_by_one(page, vocabulary, weights)]

    # Those of earlier pages, whose names were fewer, hold for the whole vocabulary.
    np.testing.assert_allclose(Places.joined(parts).odds(weights), expected, atol=1e-9)


@given(documents(), st.integers(0, 9))
def test_property_gathering_is_the_transpose(source: str, seed: int) -> None:
    """The gradient of the loss is thus right: <values, odds(weights)> = <gathered(values), weights>."""
    page = cut(parse(source))
    vocabulary: Vocabulary = {}
    places = Places.of(page, vocabulary, grow=True)
    weights = weights_of(vocabulary, seed)
    values = np.random.default_rng(seed + 1).normal(size=len(page.blocks))

    np.testing.assert_allclose(values @ places.odds(weights), places.gathered(values, len(vocabulary)) @ weights)


def test_names_are_bounded_and_without_numbers() -> None:
    """A number identifies a single post. The number and length of names are limited on any page."""
    assert names("p", "price post-1234 price") == ["p", ".price", ".post-0"]
    assert len(names("p", " ".join(f"{chr(97 + i)}x" for i in range(26)))) == 13
    assert max(map(len, names("x" * 1_000_000, "y" * 1_000_000))) == 61


def test_names_that_are_not_known_weigh_nothing() -> None:
    page = cut(parse("<div class=other><p>A line of text.</p></div>"))
    places = Places.of(page, {".known": 0})

    assert places.odds(np.array([5.0, 5.0, 5.0, 0.25])).tolist() == [0.25]
