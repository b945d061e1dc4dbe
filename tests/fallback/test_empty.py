"""``DRIPPER_EMPTY``: what happens to a page on which the engine finds nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from scrapy_dripper import Config, Document, Extraction, Extractor
from scrapy_dripper.rules import read_rules
from scrapy_dripper.testing import FakeEngine

PROSE = "".join(
    f"<p>Paragraph {number} tells of the ferry, which leaves the northern pier at nine and comes back after dark, also "
    "in winter, when the wind blows.</p>"
    for number in range(8)
)
PAGE = f"<html><title>The ferry</title><body><nav><a href=/>Home</a></nav><article><h1>The ferry</h1>{PROSE}"
SHORT = "<html><title>Search</title><body><nav><a href=/>Home</a></nav><p>Nothing was found.</p><a href=/>Back"
MISSING = PAGE.replace("The ferry<", "404 - Page not found<")


def extract(html: str, main: Callable[[str], bool], name: str = "fake", **options: Any) -> Extraction:
    """Extract a page with an engine of this name, which takes some texts for main."""
    engine = FakeEngine(main=main)
    engine.name = name
    with Extractor(Config(processes=0, **options), engine=engine) as extractor:
        return extractor.extract([Document(html, "https://example.org/a")])[0]


@pytest.mark.parametrize(
    ("html", "engine", "empty", "source"),
    [
        (PAGE, "qwen3", "auto", "fallback:trafilatura"),
        (PAGE, "qwen3", "answer", "qwen3"),
        (PAGE, "tagger", "auto", "fallback:trafilatura"),
        (PAGE, "tagger", "answer", "tagger"),
        (SHORT, "tagger", "auto", "tagger"),
        (MISSING, "tagger", "auto", "tagger"),
        (MISSING, "tagger", "fallback", "fallback:trafilatura"),
        (MISSING, "qwen3", "auto", "fallback:trafilatura"),
    ],
)
def test_section_5_3_who_answers(html: str, engine: str, empty: str, source: str) -> None:
    page = extract(html, lambda text: False, engine, empty=empty)

    assert (page.source, page.fallback_reason) == (source, "no_main")
    assert page.is_empty == (not source.startswith("fallback"))
    assert page.error == ("the model found no main content" if source.startswith("fallback") else None)


def test_a_fallback_that_finds_nothing_leaves_the_answer() -> None:
    page = extract(PAGE, lambda text: False, "qwen3", empty="fallback", fallback="empty")

    assert (page.source, page.text, page.fallback_reason) == ("qwen3", "", "no_main")


def test_rules_of_the_user_are_not_doubted() -> None:
    page = extract(PAGE, lambda text: True, rules=read_rules({"example.org": {"drop": ["article", "nav"]}}))

    assert (page.source, page.text) == ("fake", "")


MENU = "<nav>" + "".join(f"<p><a href=/{number}>Topic {number}</a></p>" for number in range(30)) + "</nav>"
MENU_FIRST = f"<html><title>The ferry</title><body>{MENU}<article><h1>The ferry</h1>{PROSE}{PROSE}</article>"


@pytest.mark.parametrize("word", ["Topic 1", "no such topic"])
@pytest.mark.parametrize(
    ("empty", "blocks", "source"),
    [
        ("auto", 20, "fallback:trafilatura"),
        ("answer", 20, "fake"),
        ("auto", 100, "fake"),
        ("auto", 35, "fake"),  # the first part has some of the article
    ],
)
def test_a_first_part_of_which_only_menus_are_kept(word: str, empty: str, blocks: int, source: str) -> None:
    """The content of a page over a limit is behind them, where the fallback finds it."""
    options = {"empty": empty, "limits": {"blocks": blocks}, "oversize": "truncate"}
    page = extract(MENU_FIRST, lambda text: word in text or "ferry" in text, **options)

    assert page.source == source
    assert ("northern pier" in (page.text or "")) == (blocks > 20 or source != "fake")
    if source != "fake":
        assert page.fallback_reason == "no_main"
        assert page.error == "the model found only menus in the first part of a page that is too large"


INGREDIENTS = ["3 leeks, cut in rings", "2 large potatoes", "a litre of broth"]
FACTS = json.dumps({"@type": "Recipe", "recipeIngredient": INGREDIENTS})
RECIPE = (
    f"<html><script type='application/ld+json'>{FACTS}</script><body><article><h1>Leek soup</h1>{PROSE}"
    f"<h2>Ingredients</h2><ul>{''.join(f'<li>{one}.</li>' for one in INGREDIENTS)}</ul>{PROSE}</article>"
)


def test_declared_facts_that_the_model_has_lost_are_named() -> None:
    page = extract(RECIPE, lambda text: "leeks" not in text)

    assert page.source == "fake"
    assert page.meta()["missing"] == page.details["missing"] == ["ingredient"]
