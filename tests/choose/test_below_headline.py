"""The facts of a recipe and the links of a hero belong to what is written."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_dripper.choose import below_headline
from scrapy_dripper.choose.below_headline import with_hero_links, with_recipe_facts
from scrapy_dripper.choose.given import Bools, Given
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.page import Page, read

RECIPE = '<script type="application/ld+json">{"@type": "Recipe", "name": "Soup"}</script>'
TEXT = "<p>- Boil the roots in salted water."


def marked(page: Page) -> Bools:
    """Return the blocks that begin with a sign for main content."""
    return np.array([text.startswith("-") for text in page.blocks.text])


def added(page: Page, labels: Bools) -> list[str]:
    return [text for text, new, old in zip(page.blocks.text, labels, marked(page), strict=True) if new and not old]


def given(body: str, probability: float) -> Given:
    page = read(Document(f"<html><body>{body}</body></html>", "https://example.org/"), Config())
    return Given(page, np.full(len(page.blocks), probability, dtype=np.float32))


@pytest.mark.parametrize(
    ("markup", "times"),
    [
        ("<dl><dt>Total Time</dt><dd>1 hour 10 minutes</dd><dt>Rating</dt><dd>5</dd></dl>", 2),
        ("<div><span>Prep time:</span> <span>15 mins</span></div><div>Cook time: 1 h 5 min</div>", 2),
        ("<p>Zubereitungszeit: 20 Min.<p>Temps de cuisson : 2 heures<p>Tempo di cottura: 1 ora", 3),
        ("<p>調理時間 30分<p>Время приготовления: 40 минут", 2),
        ("<p>Prep 5 <span class=sr>minutes</span> minutes<p>Rise Time 1 hour hour 30 minutes mins", 2),
        ("<p>Servings 3 or 2 big<p>Yield: 36 cookies<p>Für 4 Portionen<p>4 servings<p>Calories: 305 kcal", 5),
        ("<p>0:15 Prep<br>0:40 Cook<br>6 Servings", 1),
        # in a row with two others
        ("<div><p><b>Prep</b> 5 min<p><b>Cook</b> 8 min<p><b>Chilling</b> 2 hours<p><b>Course</b> Soup</div>", 3),
        ("<p>Calories: 93 kcal | Carbohydrates: 6.1 g | Protein: 4.8 g | Fat: 6.5 g", 1),
        ("<p>Calories 305 Calories from Fat 207<p>Fat 23g 35%<p>% Daily Value<p>Sodium 28mg 1%<p>Protein 5g", 4),
        ("<p>Fat 23g<p>Sodium 28mg", 0),
        ("<p>It has 90 calories and, with cream, more fat than you would think: 12 g, or 15 g with cheese on it, and "
         "much less, some 3 g, with milk in its place.", 0),
        ("<p>Posted 2 hours ago<p>Total: 3 eggs<p>40 minutes<p><a href=/soup>Total time: 10 minutes</a>", 0),
    ],
)  # fmt: skip
def test_a_recipe_says_how_long_it_takes_and_how_much_it_makes(markup: str, times: int) -> None:
    known = given(f"{RECIPE}<h1>Soup</h1>{markup}{TEXT}<aside>Total time: 5 minutes</aside>", 0.1)

    assert len(added(known.page, with_recipe_facts(known, marked(known.page)))) == times
    bare = given(f"<h1>Soup</h1>{markup}{TEXT}", 0.1)
    assert not added(bare.page, with_recipe_facts(bare, marked(bare.page)))


def test_a_long_run_of_nutrients_is_searched_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each text, and once more when the run has ended."""
    searched: list[str] = []
    monkeypatch.setattr(below_headline, "_has_energy", searched.append)
    known = given(f"{RECIPE}<h1>Soup</h1>{'<p>Fat 2g' * 500}{TEXT}", 0.1)

    assert not added(known.page, with_recipe_facts(known, marked(known.page)))
    assert 500 <= len(searched) <= 3 * 500


HERO = "<div class='{name}'><h1>- The kit</h1><p>- Build boats.</p><div>{links}</div></div>"


@pytest.mark.parametrize(
    ("name", "links", "probability", "expected"),
    [
        ("VPHero", "<a href=/start>Start here</a> <a href=/parts>Parts</a>", 0.3, ["Start here Parts"]),
        ("jumbotron", "<p><a href=/start>Start</a><p><a href=./parts>Parts</a>", 0.3, ["Start", "Parts"]),
        ("hero", "<a href=/start>Start here</a>", 0.3, []),
        ("hero", "<a href=/start>Start here</a> <a href=//shop.example/>Buy it</a>", 0.3, []),
        ("hero", "<a href=#start>Start here</a> <a href=#parts>Parts</a>", 0.3, []),
        ("hero", "<a href=/start>Start here</a> <a href=/parts>Parts</a>", 0.1, []),
        ("intro", "<a href=/start>Start here</a> <a href=/parts>Parts</a>", 0.3, []),
        ("hero", "Version 4", 0.3, []),
        ("hero", "<nav><a href=/start>Start here</a> <a href=/parts>Parts</a></nav>", 0.3, []),
    ],
)
def test_the_links_of_a_hero_stay_with_its_headline(
    name: str, links: str, probability: float, expected: list[str]
) -> None:
    known = given(HERO.format(name=name, links=links) + TEXT, probability)

    assert added(known.page, with_hero_links(known, marked(known.page))) == expected
    other = given(HERO.format(name=name, links=links).replace("- The", "The") + TEXT, probability)
    assert not added(other.page, with_hero_links(other, marked(other.page)))
