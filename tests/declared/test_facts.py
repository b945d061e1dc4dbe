"""The facts that pages declare about themselves, where texts hold them, and those that an extraction has lost."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_dripper.declared.schema_org import KINDS, Fact, FactIndex, missing, tokens
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.parse import parse
from tests.steps import is_linear

RECIPE = json.loads(Path(__file__).with_name("recipe.json").read_text(encoding="utf-8"))


def facts(html: str) -> list[tuple[str, str]]:
    return [(fact.kind, fact.text) for fact in cut(parse(html)).facts]


def declared(value: Any, body: str = "<p>Text.</p>") -> list[tuple[str, str]]:
    return facts(f'<script type="application/ld+json">{json.dumps(value)}</script>{body}')


def test_a_recipe_in_json_ld() -> None:
    """Steps in nested sections are found. What belongs to another recipe is not."""
    found = declared(RECIPE)

    assert [text for kind, text in found if kind == "ingredient"] == ["200 g plain flour", "two large eggs"]
    assert [text for kind, text in found if kind == "step"] == [
        "For the batter",
        "Whisk the flour and the eggs.",
        "Rest the batter for an hour.",
    ]
    assert ("detail", "240 kcal") in found
    assert not any("something else" in text or "best pancakes" in text for _, text in found)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"@type": "FAQPage", "mainEntity": [{"@type": "Question", "name": "Is it open on Sundays?", "acceptedAnswer":
          {"@type": "Answer", "text": "<p>Yes, from &amp;nbsp; ten.</p>"}}]},
         [("question", "Is it open on Sundays?"), ("answer", " Yes, from   ten. ")]),
        ({"@type": "NewsArticle", "articleBody": "The bridge was opened."}, [("body", "The bridge was opened.")]),
        ({"@type": "Product", "description": "A sturdy chair."}, [("description", "A sturdy chair.")]),
        ({"@type": "Article", "description": "A teaser."}, []),
        (
            {"@type": "DiscussionForumPosting", "author": {"@type": "Person", "name": "Ann"}, "text": "I agree."},
            [("author", "Ann"), ("post", "I agree.")],
        ),
        ({"@type": ["Event", "Thing"], "startDate": "2026-05-01", "location": {"name": "Town hall"}},
         [("detail", "2026-05-01"), ("place", "Town hall")]),
        ({"@type": "Product", "offers": {"@type": "Offer", "price": 19.5}}, [("price", "19.5")]),
    ],
)  # fmt: skip
def test_other_things_in_json_ld(value: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert [(kind, text.replace("\xa0", " ")) for kind, text in declared(value)] == expected


def test_microdata_and_rdfa() -> None:
    assert facts(
        """<div itemscope itemtype="https://schema.org/Recipe"><ul><li itemprop="recipeIngredient">200 g flour</ul>
        <p itemprop="description">Nice.</p><div itemprop="recipeInstructions">Whisk it.</div></div>
        <div itemscope itemtype="http://schema.org/Product"><p itemprop="description">A chair.</p>
        <meta itemprop="price" content="19.50"></div>
        <div vocab="https://schema.org/" typeof="Recipe"><span property="schema:ingredients">one egg</span></div>"""
    ) == [
        ("price", "19.50"),
        ("ingredient", "200 g flour"),
        ("step", "Whisk it."),
        ("description", "A chair."),
        ("ingredient", "one egg"),
    ]


@pytest.mark.parametrize(
    "script",
    [
        "{",
        "[1, 2.5, true]",
        '{"recipeIngredient": {"a": [null, false, {"b": "c"}]}}',
        '{"@type": 7, "articleBody": ["", "  "]}',
        '{"@type": [null, {"a": 1}], "name": "x"}',
        "[" * 50_000,
        '{"recipeIngredient":' * 5_000 + "1" + "}" * 5_000,
    ],
)
def test_odd_json_declares_nothing_and_harms_nothing(script: str) -> None:
    assert all(kind in KINDS for kind, _ in facts(f'<script type="application/ld+json">{script}</script><p>Text.'))


def test_what_is_over_a_limit_is_left_out() -> None:
    many = {"recipeIngredient": [f"{n} grams of flour" for n in range(100_000)]}
    assert len(declared(many)) == 20_000 - 2  # the object and its list are values, too

    (fact,) = declared({"articleBody": "word " * 1_000_000})
    assert len(fact[1]) == 400_000


def shares(some: list[str], texts: list[str]) -> list[float]:
    index = FactIndex(Fact("ingredient", one) for one in some)
    found = [tokens(text) for text in texts]
    size = np.array(list(map(len, found)), dtype=np.int64)
    return index.cover(list(chain.from_iterable(found)), size)[:, KINDS.index("ingredient")].tolist()


def test_which_share_of_a_text_facts_cover() -> None:
    """A short fact covers only a text that is equal to it, because a word such as "salt" stands anywhere."""
    some = ["200 g plain flour", "two large eggs", "salt"]

    assert shares(some, ["200 G Plain Flour!", "Add salt.", "Salt", "two large eggs and more words"]) == pytest.approx(
        [1, 0, 1, 0.5]
    )
    assert shares(["小麦粉二百グラム"], ["小麦粉二百グラム", "牛乳"]) == [1, 0]
    assert shares([], ["text"]) == [0]
    assert shares(some, [""]) == [0]


words = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12)


@settings(deadline=None)
@given(st.lists(words.filter(lambda one: len(one) >= 3), max_size=5), st.lists(words, min_size=1, max_size=6))
def test_covered_words_are_those_in_runs_of_facts(some: list[list[str]], texts: list[list[str]]) -> None:
    """The index finds what a search for each run in each text finds."""
    runs = {tuple(fact[i : i + 3]) for fact in some for i in range(len(fact) - 2)}

    def share(text: list[str]) -> float:
        covered = {i + k for i in range(len(text) - 2) if tuple(text[i : i + 3]) in runs for k in range(3)}
        return len(covered) / max(1, len(text))

    assert shares([" ".join(one) for one in some], [" ".join(one) for one in texts]) == pytest.approx(
        [share(text) for text in texts]
    )


def test_a_hundred_facts_on_a_thousand_blocks_take_linear_time() -> None:
    """The number of Python-level operations grows with the sizes, and not with their product."""

    def made(n: int) -> tuple[list[Fact], list[str]]:
        step = "step number {} of the long recipe says mix well".format
        return [Fact("step", step(k)) for k in range(n)], [f"{step(k)} and wait" for k in range(n)]

    assert is_linear(lambda both: missing(*both, "\n".join(both[1])), made, 1_000)


PAGE = ["Pancakes", "200 g plain flour", "two large eggs", "one pinch of salt", "Whisk the flour and the eggs."]
FACTS = [Fact("ingredient", one) for one in PAGE[1:4]] + [Fact("step", PAGE[4]), Fact("detail", "240 kcal per portion")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n".join(PAGE), ()),
        ("\n".join(PAGE[:3] + PAGE[4:]), ()),  # two of three ingredients
        ("\n".join(PAGE[:2] + PAGE[4:]), ("ingredient",)),
        ("\n".join([*PAGE[:4], "Whisk the flour and"]), ()),  # half of the step
        ("\n".join([*PAGE[:4], "Whisk the flour"]), ("step",)),
        ("Pancakes", ("ingredient", "step")),
        ("", ("ingredient", "step")),
    ],
)
def test_facts_that_an_extraction_has_lost(text: str, expected: tuple[str, ...]) -> None:
    assert missing(FACTS, PAGE, text) == expected


def test_facts_that_the_page_does_not_show_are_not_missing() -> None:
    assert missing([*FACTS, Fact("answer", "It is only in the data of the page.")], PAGE[:1], "Pancakes") == ()
