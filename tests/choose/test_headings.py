"""A heading comes and goes with its content."""

from __future__ import annotations

import json

import numpy as np
import pytest

from scrapy_dripper import Config, Document, Extractor
from scrapy_dripper.choose.headings import with_headings
from scrapy_dripper.choose.scored import Labels, ScoredPage
from scrapy_dripper.page import read
from scrapy_dripper.testing import FakeEngine

TEXT = "<h1>Baskets</h1><p>Weave the rods."


@pytest.mark.parametrize(
    ("markup", "markdown"),
    [
        ("<h2>Related</h2><ul><li><a href=/a>- One</a><li><a href=/b>- Two</a></ul>", ""),
        ("<h2>Reviews</h2><p>- Log in<h2>Tools</h2><p>A knife.", "## Tools\n\nA knife."),
        ("<h2>Reviews</h2><h3>Of others</h3><p>- Log in", ""),
        ("<h2>Reviews</h2><p>- Log in<h3>Of Ann</h3><p>Good.", "## Reviews\n\n### Of Ann\n\nGood."),
        ("<h2>A plan</h2><img src=/plan.png width=600 height=400><p>- Log in", "## A plan"),
        ("<h2><a href=/all>All of them</a></h2><p>- Log in", "## [All of them](https://example.org/all)"),
        ("<h2>Part two</h2><h2>Part three</h2><p>The end.", "## Part two\n\n## Part three\n\nThe end."),
        ("<h2>Hidden</h2><p hidden>- Log in", "## Hidden"),
        ("<h3>Leave a Reply</h3>", ""),
        ("<h3>Kommentar schreiben</h3><form><textarea></textarea></form>", ""),
        ("<h3>Leave a comment</h3><p>Press the key C.", "### Leave a comment\n\nPress the key C."),
        (
            "".join(f"<h2>Card {number}</h2><p>- More" for number in range(4)),
            "\n\n".join(f"## Card {number}" for number in range(4)),
        ),
    ],
    ids=[
        "the last",
        "before another",
        "with a heading",
        "with a part",
        "image",
        "link",
        "no content",
        "hidden",
        "form that is not there",
        "form",
        "text about comments",
        "cards",
    ],
)
def test_a_heading_goes_with_its_content(markup: str, markdown: str) -> None:
    engine = FakeEngine(main=lambda text: not text.startswith("-"))
    [page] = Extractor(engine=engine).extract([Document(TEXT + markup, url="https://example.org/")])

    assert page.markdown is not None
    kept = page.markdown.removeprefix("# Baskets\n\nWeave the rods.").strip()
    assert kept.replace("\n\n![](https://example.org/plan.png)", "") == markdown


RECIPE = "<h1>Leek soup</h1><p>It is thick.<div><h3>{}</h3>{}<p>{}</p></div><div><p>Log in</p></div>"
FACTS = json.dumps({"@type": "Recipe", "recipeIngredient": ["3 leeks, cut in rings", "1 onion", "a litre of broth"]})
INGREDIENTS = "3 leeks, cut in rings<br>1 onion<br>a litre of broth"


@pytest.mark.parametrize(
    ("buttons", "text", "probability", "declared", "kept"),
    [
        ("", INGREDIENTS, 0.4, False, True),
        ("", INGREDIENTS, 0.15, False, False),
        ("", INGREDIENTS, 0.15, True, True),
        ("", "It is a soup of three leeks.", 0.15, True, False),  # what the page does not declare
        ("<button>1x</button><button>2x</button>", INGREDIENTS, 0.4, False, False),
        ("<button>1x</button><button>2x</button>", INGREDIENTS, 0.2, True, True),
        (
            "<p>Of this soup we cannot say enough, so log in and say it to all of your friends</p>",
            INGREDIENTS,
            0.2,
            True,
            False,
        ),
        ("", INGREDIENTS, 0.05, True, False),
    ],
)
def test_facts_keep_their_heading(buttons: str, text: str, probability: float, declared: bool, kept: bool) -> None:
    html = RECIPE.format("What goes in", buttons, text)
    page = read(Document(f"<script type='application/ld+json'>{FACTS}</script>{html}" if declared else html), Config())
    texts = page.blocks.text
    main = np.array([one.startswith(("Leek", "It is", "3 leeks")) for one in texts])
    p = np.array(
        [probability if one == "What goes in" else 0.9 * keeps for one, keeps in zip(texts, main, strict=True)]
    )

    labels = with_headings(ScoredPage(page, Labels(p.astype(np.float32))), main)

    assert [one for one, added in zip(texts, labels & ~main, strict=True) if added] == (
        ["What goes in"] if kept else []
    )
