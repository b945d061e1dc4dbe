"""Facts about a page from its head and scripts, which are read once, whoever asks for them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from scrapy_dripper import declared
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.declared import Declared, read_declared, schema_org
from scrapy_dripper.declared.names import Match
from scrapy_dripper.extractor import Extractor
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


def test_meta_elements_without_content() -> None:
    said = about('<meta name=description><meta property="og:type"><meta><meta itemprop=datePublished><script></script>')

    assert (said.kind, said.dated, said.descriptions, said.script_chars) == ("", False, (), 0)


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


BODY = "<p>The tide comes in twice a day, and it goes out again, as all who live at the shore have known for ever.</p>"
SCRIPTS = (
    '<script type="application/ld+json">{"@type": "Article", "headline": "Tides", "articleBody": "The tide."}</script>'
    '<script type="application/ld+json">{"@type": "WebSite", "name": "Sand"}</script>'
    "<script>MathJax = {tex: {inlineMath: [['$', '$']]}};</script>"
)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the visits of heads, the scripts that are parsed as JSON, and the pages whose scripts are searched."""
    counts: Counter[str] = Counter()

    def counted(name: str, function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            counts[name] += 1
            return function(*arguments)

        return call

    monkeypatch.setattr(declared, "_read_meta", counted("meta", declared._read_meta))
    monkeypatch.setattr(schema_org, "parsed", counted("parsed", schema_org.parsed))
    monkeypatch.setattr(declared, "_dollar_setting", counted("searched", declared._dollar_setting))
    return counts


@pytest.mark.parametrize(
    "options", [{}, {"metadata_field": "metadata", "content_field": "content", "links_field": "links"}]
)
@pytest.mark.parametrize(("formula", "searched"), [("", 0), ("<p>Where $h$ is the height and $t$ is the time.</p>", 1)])
def test_each_part_is_read_once(calls: Counter[str], options: dict[str, Any], formula: str, searched: int) -> None:
    html = f"<head><meta name=author content='Ann Bell'>{SCRIPTS}</head><h1>Tides</h1>{BODY * 4}{formula}{BODY * 4}"
    with Extractor(Config(**options)) as extractor:
        (found,) = extractor.extract([Document(html, "https://example.org/tides")])

    assert found.title == "Tides"
    assert calls == Counter(meta=1, parsed=2, searched=searched)
