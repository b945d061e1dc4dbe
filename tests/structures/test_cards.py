"""The cards of lists: teasers of articles, products of shops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scrapy_dripper import Config, Document, Extraction, Extractor, markdown
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.hidden import hidden_nodes
from scrapy_dripper.structures.items import Card
from scrapy_dripper.structures.posts import list_cards
from tests.output.test_posts import Engine
from tests.steps import is_linear

A = "From April on, the workshop is open until seven on Thursdays, for those who come after work."
B = "Twelve pupils have built a bench of their own with us, and it now stands in their classroom."
C = "The shape of the frog and the colour of the japanning tell when a plane was made."


def page_of(html: str) -> Page:
    return cut(parse(f"<html><body><nav><h3><a href=/>Home</a></h3></nav><h1>Workshop</h1>{html}</body></html>"))


def cards(html: str, without: str = "no such text") -> list[Card]:
    """Return the cards of a page, with all blocks main except those with a word."""
    page = page_of(html)
    main = np.array([without not in text and text != "Home" for text in page.blocks.text])
    return list_cards(page, main, hidden_nodes(page.tree))


def each(card: str, *values: tuple[str, str, str]) -> str:
    return "".join(card.format(i=i, name=name, line=line, text=text) for i, (name, line, text) in enumerate(values, 1))


NEWS = (("New hours", "2026-05-06", A), ("A bench", "2026-04-07", B), ("Old planes", "2026-03-13", C))
GOODS = (("Block plane", "€89.00", "Low angle"), ("Mallet", "€34.50", "600 grams"), ("Knife", "€18.00", "Two bevels"))
GRIDS = {
    "a list": """<li class=product><a href=/{i}><img src=/{i}.jpg></a><h3><a href=/{i}>{name}</a></h3><p>{line}</p>
        <p>{text}</p></li>""",
    "links": "<a class=card href=/{i}><h3>{name}</h3><div>{line}</div><div>{text}</div></a>",
    "links without headings": "<a class=card href=/{i}><div>{name}</div><div>{line}</div><div>{text}</div></a>",
    "a heading and a button": """<div class=col><div><h3>{name}</h3><p>{text}</p></div><p>{line}</p>
        <p><a href=/{i}>More</a></p></div>""",
    "columns": """<div class="item i{i}"><div><p><a href=/{i}>{name}</a></p><p>{text}</p></div>
        <div>{line}</div></div>""",
}


@pytest.mark.parametrize("grid", GRIDS)
def test_products(grid: str) -> None:
    found = cards(f"<ul>{each(GRIDS[grid], *GOODS)}</ul>", without="More")
    assert found == [Card(name, f"/{i}", text, price) for i, (name, price, text) in enumerate(GOODS, 1)]


def test_teasers() -> None:
    """The date and author are found where they are no main content, and are not in the text."""
    teaser = """<article class=teaser><div><h2><a href=/{i}>{name}</a></h2><p class=meta><time>{line}</time> by
        <a href=/who/sam>Sam Roe</a></p><p>{text}</p></div></article>"""
    for without in ("no such text", "Sam Roe"):
        found = cards(each(teaser, *NEWS), without)
        assert found == [Card(name, f"/{i}", text, "", "Sam Roe", date) for i, (name, date, text) in enumerate(NEWS, 1)]


def test_the_name_of_a_product_is_not_its_author() -> None:
    named = "<li><h3 class=name><a href=/{i}>{name}</a></h3><p class=name>Pine Tools</p><p>{line}</p></li>"
    assert {(card.author, card.text) for card in cards(each(named, *GOODS))} == {("", "Pine Tools")}


def test_what_is_not_main_or_not_seen_is_no_card() -> None:
    hidden = "<div style='display:none'><h3><a href=/4>Buy now</a></h3><p>$1</p><p>Ignore all else.</p></div>"
    html = each(
        GRIDS["a list"].replace("<li", "<div").replace("</li", "</div"), *GOODS, ("Saw", "€42.00", "Fine teeth")
    )
    found = cards(html + hidden, without="Mallet")
    assert [card.title for card in found] == ["Block plane", "Knife", "Saw"]


@pytest.mark.parametrize(
    "html",
    [
        "",
        each("<h2><a href=/{i}>{name}</a></h2><p>{text}</p>", *NEWS),  # nothing around each
        each("<section><h2>{name}</h2><p>{text}</p></section>", *NEWS),  # no links
        each("<div class=c><h3><a href=/{i}>{name}</a></h3></div>", *NEWS),  # nothing else
        each("<div class=c><h3><a href=#{i}>{name}</a></h3><p>{text}</p></div>", *NEWS),  # a table of contents
        each("<div class=c><h3><a href=/{i}>{name}</a></h3><p>ok</p></div>", *NEWS),
        each(GRIDS["a list"], *((name * 30, line, text) for name, line, text in GOODS)),
        each(GRIDS["a list"], *GOODS[:2]),
        f"<section><h2><a href=/all>All</a></h2>{each('<h3><a href=/{i}>{name}</a></h3>', *NEWS)}</section>" * 3,
        each("<p>{text} <a href=/{i}>{name}</a></p>", *NEWS),
    ],
    ids=[
        "nothing",
        "one element",
        "sections",
        "titles",
        "places",
        "a sign",
        "sentences",
        "two",
        "lists",
        "links in text",
    ],
)
def test_no_cards(html: str) -> None:
    assert cards(html) == []


@pytest.mark.parametrize(
    ("page_type", "declared", "expected"),
    [("listing", "", 3), ("collection", "", 3), ("article", "", 0), (None, "CollectionPage", 3), ("forum", "", 0)],
)
def test_cards_of_a_page_are_at_the_end_of_its_content_list(page_type: str, declared: str, expected: int) -> None:
    head = f'<script type="application/ld+json">{{"@type": "{declared}"}}</script>' if declared else ""
    body = f"<body><h1>Tools</h1><ul>{each(GRIDS['a list'], *GOODS)}</ul></body>"
    found, plain = extracted(Engine(page_type), f"<head>{head}</head>{body}"), extracted(Engine("article"), body)

    content = found.content or []
    assert [item["title"] for item in content if item["type"] == "card"] == [name for name, _, _ in GOODS][:expected]
    assert content[: len(content) - expected] == plain.content  # the text is written once, by the other items
    assert (found.markdown, found.text, found.chunks) == (plain.markdown, plain.text, plain.chunks)
    assert markdown(found) == found.markdown
    if expected:
        assert content[-3:][0] == {
            "type": "card",
            "title": "Block plane",
            "href": "https://example.org/1",
            "text": "Low angle",
            "price": "€89.00",
        }


def test_a_choice_of_types_may_have_cards_only() -> None:
    html = f"<h1>Tools</h1><ul>{each(GRIDS['a list'], *GOODS)}</ul>"
    for types, expected in ((["card"], {"card"}), (["title"], {"title"}), (["title", "card"], {"title", "card"})):
        found = extracted(Engine("listing"), html, markdown={"types": types})
        assert {item["type"] for item in found.content or ()} == expected


def extracted(engine: Engine, html: str, **options: Any) -> Extraction:
    config = Config(content_field="content", chunks_field="chunks", **options)
    return Extractor(config, engine).extract([Document(html, "https://example.org/t")])[0]


@pytest.mark.parametrize(
    "html",
    [
        lambda n: each(GRIDS["a list"], *GOODS * n),
        lambda n: "<div class=c><h3><a href=/x>Saw</a></h3><p>€5</p>" * n,
        lambda n: "".join(f"<div class=x{'y' * i}><h3><a href=/x>Saw</a></h3><p>€5</div>" for i in range(n)),
        lambda n: f"<div class=c><h3><a href=/x>Saw</a></h3>{'<p>€5 <i>2024-05-06</i></p>' * n}</div>" * 3,
    ],
    ids=["beside each other", "in each other", "of many kinds", "prices"],
)
def test_the_time_is_linear(html: Any) -> None:
    def run(page: Page) -> None:
        main, hidden = np.ones(len(page.blocks), dtype=np.bool_), np.zeros(len(page.tree.nodes), dtype=np.bool_)
        list_cards(page, main, hidden)

    assert is_linear(run, lambda n: page_of(html(n)), 60)
