"""Declared facts are evidence for the bundled model, and not orders: pages also declare what is not their content."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_dripper.data import Extraction
from scrapy_dripper.extractor import Extractor

INGREDIENTS = ["200 g plain flour", "two large eggs", "one pinch of salt", "half a litre of milk", "butter for the pan"]
STEPS = [
    "Whisk the flour, the eggs and the salt in a wide bowl until no lumps are left.",
    "Stir in the milk little by little, and let the batter rest for half an hour.",
    "Melt some butter in a pan, pour in a ladle of batter and turn the pancake once it is golden.",
]
PROSE = (
    "The ferry leaves the northern pier at nine and comes back after dark, and in winter it does not leave at all.",
    "Its captain has crossed the sound eleven thousand times by his own count, which he keeps in a notebook.",
    "Passengers bring their own bread and buy the tea on board, because the kitchen burnt in the year of the flood.",
    "In the evening the boat is tied to the old crane, and the gulls take the deck until the morning.",
)
MENU = ["Home", "All our news", "Sports and weather", "Sign in to your account", "About this site"]
RELATED = [f"Ten things that nobody knew about harbour number {n}" for n in range(8)]


def script(value: Any) -> str:
    return f'<script type="application/ld+json">{json.dumps(value)}</script>'


def linked(texts: list[str], name: str) -> str:
    return f"<ul class={name}>{''.join(f'<li><a href=/x>{text}</a></li>' for text in texts)}</ul>"


@pytest.fixture(scope="module")
def extract() -> Any:
    extractor = Extractor()

    def one(html: str) -> Extraction:
        (found,) = extractor.extract([f"<!doctype html><html lang=en>{html}</html>"])
        return found

    yield one
    extractor.close()


RECIPE = f"""<title>Pancakes</title><nav>{linked(MENU, "menu")}</nav><main><h1>Pancakes</h1>
<p>These thin pancakes have been made in our family for as long as anybody can remember, mostly on Sundays.</p>
<h2>Ingredients</h2><ul>{"".join(f"<li>{one}</li>" for one in INGREDIENTS)}</ul>
<h2>Method</h2><ol>{"".join(f"<li>{one}</li>" for one in STEPS)}</ol></main>
<aside>{linked(RELATED, "related")}</aside><footer>All rights reserved</footer>"""


@pytest.mark.parametrize("declares", [True, False])
def test_a_recipe_keeps_its_ingredients_and_steps(extract: Any, declares: bool) -> None:
    value = {"@type": "Recipe", "recipeIngredient": INGREDIENTS, "recipeInstructions": STEPS}
    found = extract((script(value) if declares else "") + RECIPE)

    assert [one for one in (*INGREDIENTS, *STEPS) if one not in found.text] == []
    assert "All rights reserved" not in found.text
    assert RELATED[0] not in found.text
    assert found.meta()["missing"] == found.details["missing"] == []


@pytest.mark.parametrize(
    "lie",
    [
        {"@type": "Recipe", "recipeIngredient": MENU},
        {"@type": "Recipe", "recipeInstructions": RELATED},
        {"@type": "FAQPage", "mainEntity": [{"@type": "Question", "name": one} for one in RELATED]},
        {"@type": "NewsArticle", "articleBody": " ".join(RELATED)},
        {"@type": "Article", "articleBody": " ".join(MENU)},
    ],
    ids=["menu as ingredients", "related as steps", "related as questions", "related as text", "menu as text"],
)
def test_a_page_that_lies_keeps_its_text(extract: Any, lie: dict[str, Any]) -> None:
    """What it declares may or may not come out, but the article is complete, and menus stay out."""
    body = f"""<title>The ferry</title><nav>{linked(MENU, "menu")}</nav><article><h1>The ferry</h1>
    {"".join(f"<p>{one}</p>" for one in PROSE)}</article><aside class=related><h3>More</h3>{linked(RELATED, "related")}
    </aside><footer>All rights reserved</footer>"""
    found = extract(script(lie) + body)

    assert [one for one in PROSE if one not in found.text] == []
    assert MENU[3] not in found.text


def test_an_empty_answer_has_no_quality(extract: Any) -> None:
    found = extract("<title>404 Not Found</title><h1>404 Not Found</h1><p>The page was not found.</p>")

    assert found.is_empty
    assert found.quality is None
