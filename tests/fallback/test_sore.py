"""Semantic outlier removal, with vectors of a few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from scrapy_dripper import Config, ConfigError, Document, Extraction, Extractor
from scrapy_dripper.config import MethodOptions
from scrapy_dripper.fallback.sore import FAR, GROUPS, MOST_CHARS, Sore, guarded, wordllama

AXES = {"river": 0, "ferry": 0, "privacy": 1, "policy": 1, "football": 2}
OPTIONS = MethodOptions(k=0.2, most=1)


def embed(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return a vector with an axis for each subject."""
    assert max(map(len, texts)) <= MOST_CHARS
    rows = np.zeros((len(texts), 3), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().split():
            if word in AXES:
                row[AXES[word]] += 1
    return rows


def embed_wrongly(texts: Sequence[str]) -> list[float]:
    return [0.0]


# ---------------------------------------------------------------------------- section 3.1 and A.2 of the paper
def test_section_3_1_outliers_are_removed_with_their_group() -> None:
    """What is near the title stays, a phrase of a group goes, and so does what has nothing to do with the core."""
    blocks = ["the ferry over the river", "privacy policy", "football", "river", "ferry river ferry"]
    assert Sore(embed)(blocks, "River ferry", OPTIONS) == [None, "legal", FAR, None, None]


def test_section_3_1_the_core_stays_and_the_cutoff_can_be_off() -> None:
    """A page about football keeps football; with a cut-off of 2, nothing is too irrelevant."""
    half, off = MethodOptions(k=0.5, most=1), MethodOptions(d=2, most=1)
    assert Sore(embed)(["football", "river"], "football", half) == [None, FAR]
    assert Sore(embed)(["river", "football"], "river", off) == [None, None]


def test_the_groups_and_their_cutoff_can_be_set() -> None:
    """A group is added, replaced or left out, and a phrase has to be near: all that the settings say reaches it."""
    html = PAGE.replace("football", "football privacy")
    own = {"legal": [], "sports": ["football"]}
    for options, removed in (
        ({"groups": own}, {FAR: [0], "sports": [4]}),
        ({"groups": own, "outlier": 0.2}, {FAR: [0, 4]}),
        ({"groups": '{"legal": ["football"]}', "d": 2}, {"legal": [4]}),
        ({"groups": {name: [] for name in GROUPS}, "d": 2}, {}),
    ):
        for processes in (0, 1):
            methods = {"embedder": f"{__name__}.embed", **options}
            assert extract(html, methods=methods, processes=processes).details["removed"] == removed
    for wrong in ({"legal": "privacy"}, {"": []}, {"legal": [""]}, ["legal"], "{"):
        with pytest.raises(ConfigError, match=r'"groups"\] must be a dict with a list of phrases for each group'):
            Config(methods={"groups": wrong})  # type: ignore[arg-type]


def test_without_metadata_everything_stays() -> None:
    assert Sore(embed)(["privacy policy"], " ", OPTIONS) == [None]
    assert Sore(embed)([], "river", OPTIONS) == []


def test_appendix_a_2_the_groups_of_the_paper() -> None:
    """Thirteen groups (A.2.1 to A.2.13), whose phrases are those of table 4 as well."""
    phrases = "; ".join(GROUPS.values()).split("; ")
    assert len(GROUPS) == 13
    assert {"Home", "Frequently asked questions", "Similar", "21.02.2023", "Order", "URL", "404"} <= set(phrases)


# ---------------------------------------------------------------------------- the guard of section 5.1
@pytest.mark.parametrize(
    ("most", "left"),
    [
        (1.0, [None, FAR, "legal", "dates"]),
        (0.8, [None, None, "legal", "dates"]),  # the largest reason is taken back
        (0.1, [None, None, None, "dates"]),
        (0.0, [None, None, None, None]),
    ],
)
def test_section_5_1_reasons_that_remove_too_much_are_taken_back(most: float, left: list[str | None]) -> None:
    assert guarded([None, FAR, "legal", "dates"], [10, 70, 15, 5], most) == left


# ---------------------------------------------------------------------------- on pages
MENU = "<nav><p>privacy policy</p></nav>"
TEXT = "the ferry crosses the river " * 20
ARTICLE = f"<article><h1>Ferry</h1><p>{TEXT}</p><p>{TEXT}</p></article>"
PAGE = f"<title>River ferry</title>{MENU}{ARTICLE}<footer>football</footer>"


def extract(html: str, **options: Any) -> Extraction:
    config = Config(**{"engine": "sore", "methods": {"embedder": f"{__name__}.embed"}, "processes": 0} | options)
    with Extractor(config) as extractor:
        [found] = extractor.extract([Document(html, "https://example.org/")])
    return found


def test_a_page() -> None:
    """Each removed block has its reason, which the stats count."""
    found = extract(PAGE)

    assert (found.source, found.error, found.labels) == ("sore", None, (False, True, True, True, False))
    assert "privacy" not in str(found.markdown)
    assert str(found.markdown).startswith("# Ferry")
    assert found.details["removed"] == {"legal": [0], FAR: [4]}
    assert found.details["work"] == {"removed/legal": 1, f"removed/{FAR}": 1}


def test_as_a_fallback_and_in_a_worker() -> None:
    """The embedder of the settings runs in the worker, and labels and reasons come back from it."""
    found = extract(PAGE.replace("<footer>", "<footer>" + "<i></i>" * 15_000), processes=1)
    fallen = extract(PAGE, engine="tagger", fallback="sore", limits={"blocks": 1})

    assert (found.source, found.details["removed"]) == ("sore", {"legal": [0], FAR: [4]})
    assert found.labels == (False, True, True, True, False)
    assert (fallen.source, fallen.fallback_reason, fallen.labels) == ("fallback:sore", "oversize", ())
    assert fallen.text == found.text


def test_a_page_without_title_stays_whole() -> None:
    assert "football" in str(extract(PAGE.replace("<title>River ferry</title>", "")).text)


def test_an_embedder_without_a_vector_for_each_text_fails_on_the_page_alone() -> None:
    found = extract(PAGE, methods={"embedder": f"{__name__}.embed_wrongly"}, fallback="html")

    assert (found.source, found.fallback_reason) == ("fallback:html", "engine_error")
    assert "expected a vector for each of" in str(found.error)


def test_a_wrong_embedder_stops_the_crawl_at_its_start() -> None:
    with pytest.raises(ConfigError, match=r'DRIPPER_METHODS\["embedder"\] is .*cannot be imported'):
        Extractor(Config(engine="sore", methods={"embedder": f"{__name__}.no_such_function"}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("title", "text", "reason"),
    [
        ("10 Things Guests Notice Most About Your Home", "SolStock via Getty Images", FAR),
        (
            "Coconut Sugar Vs Brown Sugar",
            "*This post may contain affiliate links. Please see my disclosure to learn more.",
            FAR,
        ),
        ("This Black Widow Moment", "03:27 PM - 29 Apr 2019", FAR),
        ("Dyson V12 Detect Slim 激光探测无绳吸尘器翻新 $349.99", "点击购买>>", FAR),
        ("Melvyn Jaminet fait passer un message", "A lire ci-dessous :", FAR),
        ("Bathroom Cleaning: 10 Things", "Learn More About The 3 Wave Cleaning System", None),
        (
            "Only People With 20/20 Vision Can Spot",
            "Your Way Of Clenching Your Fist Reveals Your Hidden Personality Traits",
            FAR,
        ),
    ],
)
def test_table_2_what_wordllama_says_of_the_examples(title: str, text: str, reason: str | None) -> None:
    """docs/internals/papers.md says why these are not the reasons of the paper, which come from another embedder."""
    pytest.importorskip("wordllama")
    assert Sore(wordllama())([title, text], title, MethodOptions(k=0.5, most=1)) == [None, reason]


def test_with_wordllama() -> None:
    """Its own model, from its package."""
    pytest.importorskip("wordllama")
    html = PAGE.replace("football", "Sign up for our newsletter")
    found = extract(html, methods={})

    assert str(found.markdown).startswith("# Ferry")
    assert "newsletter" not in str(found.text)
