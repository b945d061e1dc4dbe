"""Metadata, and pages for Trafilatura, for which a function once took more than linear time. There is still a result.

Each is so long that the old code would not have finished in any test run. ``test_patterns.py`` attacks the patterns.
"""

from __future__ import annotations

import json

import pytest

from scrapy_dripper import Document
from scrapy_dripper.config import Config
from scrapy_dripper.data import FallbackReason, Metadata
from scrapy_dripper.declared.text import MOST_VALUES
from scrapy_dripper.fallback import fall_back, metadata

LONG = 50_000


def _about(head: str, body: str = "") -> Metadata:
    page = f"<!doctype html><html><head>{head}</head><body>{body}<p>Text of the page.</p></body></html>"
    return metadata(Document(page, url="https://example.org/a"), Config())


def _ld(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f'<script type="application/ld+json">{text}</script>'


def _article(**fields: object) -> dict[str, object]:
    return {"@context": "https://schema.org", "@type": "NewsArticle", **fields}


@pytest.mark.parametrize(
    "script",
    [
        '"author" ' * 12_000,
        '"publisher": {"name ' * 12_000,
        '"' + '\\"' * LONG,
        '"@type":[' * 20_000,
        "[" * LONG,
        '"author" "names" "a b" ' * 5_000,
        {"@graph": [{"@type": "Article", "@id": f"#{i}", "author": {"@id": f"#{i + 1}"}} for i in range(5_000)]},
        {"@type": "BreadcrumbList", "itemListElement": [{"position": float("nan"), "name": "x"}] * 20_000},
        _article(author=[[[{"name": {"name": ["x"] * 1_000}}]]] * 1_000),
        _article(author="Ann Bell and " * LONG),
        _article(author={"@id": "#a", "name": None}, **{"@id": "#a"}),
        [[[[[[_article()]]]]]] * 10_000,
    ],
    ids=range(12),
)
def test_hostile_json_ld(script: object) -> None:
    assert _about("<title>A title</title>" + _ld(script)).title == "A title"


@pytest.mark.parametrize(
    ("meta", "headline"),
    [
        ("", "<" * LONG),
        ("", "<!-- >" * LONG),
        ("", "\\u003c!-- \\u003e" * 9_000),
        ("", '\\u0022author\\u0022 "' * 9_000),
        (f'<meta name="description" content="{"&lt;" * LONG}"><meta name="author" content="{"(" * LONG}">', ""),
    ],
    ids=range(5),
)
def test_hostile_strings(meta: str, headline: str) -> None:
    assert _about(meta + _ld(_article(author="Ann Bell", headline=headline))).author == "Ann Bell"


def test_names_are_as_many_as_on_real_pages() -> None:
    names = [f"Ann Bell{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(MOST_VALUES + 100)]
    expected = "; ".join(names[:MOST_VALUES])
    assert MOST_VALUES == 500
    assert _about("".join(f'<meta name="citation_author" content="{name}">' for name in names)).author == expected
    assert _about(_ld(_article(author=names))).author == expected
    assert _about(_ld(_article(author=[{"@type": "Person", "name": name} for name in names]))).author == expected


@pytest.mark.parametrize(
    "body",
    [
        '<div class="byline">' * LONG,
        '<div class="breadcrumb">' * LONG + "<a href=/>x</a>",
        '<i itemprop="author">' * LONG,
        '<p itemprop="itemListElement" typeof="ListItem">' * LONG,
        "<h1>" * LONG,
        "<h1>x</h1>" * LONG,
        "<time>" * LONG,
        '<b class="date">May 6, </b>' * LONG,
        "<h1>A</h1>" + "<p>2024 " * LONG,
        '<p class="' + "date " * LONG + '">',
        "<p " + 'itemprop="' + "author " * LONG + '">',
        "<a rel=author>By Ann and " + "Bo Chan and " * LONG,
        "".join(f"<p class='author-{i}'>" for i in range(20_000)),
        '<footer><a href="/licenses/by/4.0">x</a>' * 20_000,
    ],
    ids=range(14),
)
def test_hostile_bodies(body: str) -> None:
    assert _about("<title>A title</title>" + _ld(_article(headline="A title")), body).language is None


@pytest.mark.parametrize(
    "attack",
    [
        "<p>" + "\\(" * LONG,
        "<p>" + " \\[ x" * LONG,
        _ld('"@type":[' * 20_000),
        _ld(_article(articleBody="<a " + "=" * LONG)),
    ],
    ids=range(4),
)
def test_fallback(attack: str) -> None:
    sentence = "This is the first sentence of an article that is long enough to be one. "
    page = Document(f"<html><body><article><p>{sentence * 5}</p>{attack}</article></body></html>")
    found = fall_back(page, Config(fallback="trafilatura"), FallbackReason.NO_MAIN)
    assert found.error is None
    assert sentence.strip() in (found.text or "")
