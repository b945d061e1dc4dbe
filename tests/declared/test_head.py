"""Facts about a page from its head and scripts, which are read once, whoever asks for them."""

from __future__ import annotations

import pytest

from scrapy_dripper.declared import Declared, read_declared
from scrapy_dripper.declared.names import Match
from scrapy_dripper.page.parse import parse


def about(head: str, body: str = "<p>text</p>") -> Declared:
    return read_declared(parse(f"<html><head>{head}</head><body>{body}</body></html>"))


@pytest.mark.parametrize(
    ("json", "types"),
    [
        ('{"@context": "https://schema.org", "@type": "NewsArticle"}', {"newsarticle"}),
        ('{"@type":["Product","Car"],"offers":{"@type":"Offer"}}', {"product", "car", "offer"}),
        ('{"@type": "http:\\/\\/www.schema.org\\/Product"}', {"product"}),
        ('{"@type": ["Product", "Car", "offers": {"@type": "Offer"}}', set()),
        ('{"@graph": [{"@type": "http://schema.org/WebPage"}, {"@type" : "Person"}]}', {"webpage", "person"}),
        ('{"@type": "Product", "name": "broken json"', set()),
        ('{"@type": 7, "type": "Product"}', set()),
        ("", set()),
    ],
)
def test_types_of_json_ld(json: str, types: set[str]) -> None:
    assert about(f'<script type="application/ld+json">{json}</script>').types == types
    assert about(f'<script type="APPLICATION/LD+JSON">{json}</script>').types == types
    assert about("", f'<p>text</p><script type="application/ld+json">{json}</script>').types == types


def test_only_json_ld_names_types() -> None:
    said = about("""<script>var x = {"@type": "Product"}</script>""")

    assert said.types == frozenset()
    assert said.script_chars == len('var x = {"@type": "Product"}')


def test_meta_elements() -> None:
    said = about(
        '<meta name=description content="One two"><meta property="og:description" content="One two three">'
        '<meta property="og:type"><meta property="og:type" content=" Article "><meta property="og:type" content=blog>'
        '<meta itemprop=datePublished content="2026-01-01"><meta property="article:published_time">'
    )

    assert (said.kind, said.dated) == ("article", True)
    assert said.descriptions == ("One two", "One two three")


def test_a_list_names_the_page_by_its_first_articles() -> None:
    listed = ",".join(f'{{"headline": "Story {i}"}}' for i in range(5))
    found = about(f'<script type="application/ld+json">[{listed}]</script>').headlines
    assert found == ("Story 0", "Story 1", "Story 2")


@pytest.mark.parametrize(
    ("heading", "is_h1", "match", "is_line"),
    [
        ("the tides of the sea", False, Match.ALL, True),
        ("the tides of the", False, Match.MOST, False),
        ("the moons of mars", False, Match.FEW, False),
        ("why the tides of the sea never rest", True, Match.MOST, False),
        ("why the tides of the sea never rest", False, Match.FEW, False),
        ("high tide", False, Match.ALL, False),  # so short a line may be anything
    ],
)
def test_which_words_of_a_name_a_heading_has(heading: str, is_h1: bool, match: Match, is_line: bool) -> None:
    names = about('<title>The tides of the sea</title><meta property="og:title" content="High tide">').names

    assert names.match(heading.split(), h1=is_h1) is match
    assert names.is_line(heading.split()) is is_line
