"""Features of blocks, and those of the second stage."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.engines.tagger.columns import count, split, word_bits
from scrapy_dripper.engines.tagger.features import features
from scrapy_dripper.engines.tagger.later_stages import LEAST_WEIGHT, PAGE_TYPES, context
from scrapy_dripper.engines.tagger.lexicon import KEYWORDS, WORD_BITS, keywords
from scrapy_dripper.page.page import Page
from scrapy_dripper.testing import page


def columns(found: Page) -> dict[str, np.ndarray]:
    batch = features([found])
    return dict(zip(batch.names, batch.matrix.T, strict=True))


@given(
    st.lists(st.text(min_size=1).filter(lambda t: "\n" not in t and not re.search("[\ud800-\udfff]", t)), min_size=1)
)
def test_words_are_those_of_the_metric(texts: list[str]) -> None:
    """Counting in bulk gives the same numbers as the regular expression, for any characters."""
    counted = count(texts)

    assert counted.words.tolist() == [len(re.findall(r"\w+", text)) for text in texts]
    assert counted.chars.tolist() == [len(text) for text in texts]
    assert counted.upper.tolist() == [sum(c.isupper() for c in text) for text in texts]


def test_cjk_characters_count_as_half_words() -> None:
    """These scripts have no spaces, so a run of characters is many words."""
    assert count(["中文字符", "one two"]).size.tolist() == [1 + 2, 2]


_NAMES = st.lists(
    st.sampled_from(
        ["top", "Top", "ad", "ads", "tag", "tags", "listItem", "left-col", "leftCol", "w-1", "post_body", "más"]
    )
    | st.sampled_from(re.findall(r"[a-z-]{2,}", " ".join(KEYWORDS.values())))
    | st.text("aAdst-_9 \t\u00a0", max_size=4),
    max_size=6,
)


@given(_NAMES, st.sampled_from(["", " ", "-", "_"]))
def test_keywords_are_those_that_the_patterns_find(pieces: list[str], between: str) -> None:
    """Skipping patterns for a name does not change the result."""
    names = between.join(pieces)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", names).lower().replace("_", "-")
    found = [group for bit, group in enumerate(KEYWORDS) if keywords(names) >> bit & 1]

    assert found == [group for group, pattern in KEYWORDS.items() if re.search(pattern, text)]


def test_what_some_features_say() -> None:
    """Each family of features is checked on a readable page."""
    found = page(
        "<title>Big fish</title><body><nav class=menu><a href=/>Home</a> <a href=/n>News</a></nav>"
        "<div id=comments><h1>Fish</h1><p>A fish is caught.</p><p>Twice.</p><p>Twice.</p></div>",
        "https://example.org/big-fish",
    )
    x = columns(found)

    assert found.blocks.text == ["Home News", "Fish", "A fish is caught.", "Twice.", "Twice."]
    assert x["link_density"][0] > 0.8
    assert x["link_density"][2] == 0
    assert x["flag:NAV"].tolist() == [1, 0, 0, 0, 0]
    assert x["near:nav"].tolist() == [1, 0, 0, 0, 0]
    assert x["far:comment"].tolist() == [0, 1, 1, 1, 1]
    assert x["heading_level"].tolist() == [0, 1, 0, 0, 0]
    assert x["since_heading"].tolist()[0] == -1
    assert x["title_words"].tolist() == [0, 1, 0.25, 0, 0]
    assert x["url_words"].tolist() == [0, 1, 0.25, 0, 0]
    assert x["ends_sentence"].tolist() == [0, 0, 1, 1, 1]
    assert x["copies"][3] == x["copies"][4] > x["copies"][2]
    assert x["up1_blocks"][1] == np.float32(np.log1p(4))


def test_the_distance_to_the_name_of_the_page() -> None:
    """The block with the title is its name. Of equal texts, the nearest one to it is marked."""
    cut = page(
        "<title>A house by the sea - Homes</title><ul><li><p>490,000 EUR</p><li><p>Flat</p></ul><main><div>"
        "<h1>A house by the sea</h1><p>490,000 EUR</p></div><p>Four rooms.</p></main>"
    )
    x = dict(zip((batch := features([cut])).names, batch.matrix.T, strict=True))

    assert cut.blocks.text[2:] == ["A house by the sea", "490,000 EUR", "Four rooms."]
    assert np.expm1(np.abs(x["to_name"])).round().tolist() == [2, 1, 0, 1, 2]
    assert x["nearest_copy"].tolist() == [0, 1, 1, 1, 1]
    assert x["name_up"][2:].tolist() == [0, 1, 2]
    assert np.expm1(x["name_around"][2:]).round().tolist() == [1, 2, 3]


def test_the_hundredth_row_looks_like_the_thirtieth() -> None:
    """Beyond a few dozen blocks, the place of a row on its page changes no feature."""
    cut = page(f"<h1>Rows</h1><div>{'<p>One of many rows of the same list.</p>' * 200}</div>")
    matrix = features([cut]).matrix

    assert (matrix[100] == matrix[120]).all()


def test_features_of_the_head_are_equal_for_all_blocks() -> None:
    found = page(
        """<head><script type="application/ld+json">{"@type": "Product", "offers": {"@type": "Offer"}}</script>"""
        """<meta property="og:type" content="product.item"></head><p>One</p><p>Two</p>"""
    )
    x = columns(found)

    assert x["about_product"].tolist() == x["about_kind_product"].tolist() == [1, 1]
    assert x["about_types"].tolist() == [np.float32(np.log1p(2))] * 2
    assert not x["about_article"].any()
    other = page("<p>One</p>")
    batch = features([other, found, other])
    assert batch.matrix[:, batch.names.index("about_product")].tolist() == [0, 1, 1, 0]
    assert not x["about_kind_other"].any()
    assert columns(page('<meta property="og:type" content="odd"><p>One</p>'))["about_kind_other"].tolist() == [1]


_PIECES = st.sampled_from(["The", "the", "für", "ИЗ", "privacy", "thethe", "_the", "İ", "ΣΑΣ", "日本", "Fish", "x"])
_TEXTS = st.lists(st.lists(_PIECES | st.text(max_size=3), min_size=1, max_size=8), min_size=1, max_size=6)
_NAMED = st.dictionaries(_PIECES.map(str.lower), st.sampled_from([1 << 40, 2 << 40, 3 << 40]), max_size=4)


@given(st.lists(st.tuples(_TEXTS, _NAMED), min_size=1, max_size=3), st.sampled_from([" ", "-", ""]))
def test_bits_are_those_of_each_word(pages: list[tuple[list[list[str]], dict[str, int]]], between: str) -> None:
    texts = [[f"{between.join(pieces)} a" for pieces in page] for page, _ in pages]
    words = split(count([text for page in texts for text in page]), texts)
    bits = word_bits(words, [named for _, named in pages])

    tokens = [
        (re.findall(r"\w+", text.lower()), named)
        for page, (_, named) in zip(texts, pages, strict=True)
        for text in page
    ]
    assert words.counts.tolist() == [len(found) for found, _ in tokens]
    assert bits.tolist() == [WORD_BITS.get(word, 0) | named.get(word, 0) for found, named in tokens for word in found]


# ---------------------------------------------------------------------- the second stage
PAGE = (
    "<nav><a href=/>Home page</a></nav>"
    "<div><p>One two three four.</p><p>Five six seven eight.</p></div>"
    "<footer><p>Nine ten.</p></footer>"
)
EVEN = np.full((1, len(PAGE_TYPES)), 1 / len(PAGE_TYPES), dtype=np.float32)


@given(st.sampled_from([0.0, 1.0]))
def test_probabilities_at_the_ends(p: float) -> None:
    """The features are finite even if all probabilities are 0 or 1."""
    batch = features([page(PAGE)])

    assert np.isfinite(context(batch, np.full(len(batch.size), p, dtype=np.float32), EVEN).matrix()).all()


def test_what_some_features_of_the_second_stage_say() -> None:
    batch = features([page(PAGE)])
    x = context(batch, np.array([0.1, 0.9, 0.5, 0.2], dtype=np.float32), EVEN)
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
