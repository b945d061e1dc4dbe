"""Pages that a script would fill are detected, and the article in their data is read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_dripper import Extraction, Extractor
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, FallbackReason
from scrapy_dripper.fallback.shell import fill_shell

FERRY = (
    "The ferry leaves the northern pier at nine and comes back after dark, and in winter it does not leave at all when "
    "the wind blows from the west for more than a day."
)
CAPTAIN = (
    "Its captain has crossed the sound eleven thousand times by his own count, which he keeps in a notebook that hangs "
    "from a nail beside the wheel."
)
HTML = f"<p>{FERRY}</p><p>{CAPTAIN}</p>"
URL = "https://example.com/ferry"
OTHER = {"title": "Trams", "body": f"<p>{' '.join(f'tram{i}' for i in range(200))}</p>"}


def shell(*scripts: str, mount: str = '<div id="root"></div>', title: str = "Ferry times | Sound") -> str:
    return f"<html><head><title>{title}</title></head><body>{mount}{''.join(scripts)}<script src='/app.js'></script>"


def data(value: Any, attributes: str = 'id="__NEXT_DATA__" type="application/json"') -> str:
    return f"<script {attributes}>{json.dumps(value).replace('</', '<' + chr(92) + '/')}</script>"


def linked(value: Any) -> str:
    return data(value, 'type="application/ld+json"')


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    return Extractor()


def run(extractor: Extractor, html: str, **options: Any) -> Extraction:
    return extractor.extract([Document(html, URL, config=Config(**options))])[0]


POST = {"title": "Ferry times", "body": HTML}
HOLDING = {
    "JSON-LD": shell(linked({"@graph": [{"@type": "NewsArticle", "headline": "Ferry times", "articleBody": HTML}]})),
    "JSON-LD, plain text": shell(linked({"headline": "Ferry times", "articleBody": f"{FERRY}\n\n{CAPTAIN}"})),
    "Next.js": shell(data({"props": {"pageProps": {"post": POST, "more": [OTHER]}}}), mount='<div id="__next"></div>'),
    "WordPress in Next.js": shell(
        data({"page": {"title": {"rendered": "Ferry times"}, "content": {"rendered": HTML}}, "related": [OTHER]})
    ),
    "Remix": shell(f"<script>window.__remixContext = {json.dumps({'data': POST})};</script>".replace("</p", "<\\/p")),
    "blocks": shell(
        data(
            {
                "post": {
                    "title": "Ferry times",
                    "content": [{"type": "p", "text": FERRY}, {"type": "p", "text": CAPTAIN}],
                }
            }
        )
    ),
}


@pytest.mark.parametrize("name", HOLDING)
def test_the_article_in_the_data_of_a_page_is_read(extractor: Extractor, name: str) -> None:
    found = run(extractor, HOLDING[name])
    assert (found.source, found.fallback_reason) == ("fallback:embedded", FallbackReason.JS_SHELL)
    assert found.markdown == f"# Ferry times\n\n{FERRY}\n\n{CAPTAIN}"
    assert found.title == ("Ferry times" if name.startswith("JSON-LD") else "Ferry times | Sound")
    assert found.error == "a script would fill the page; the text comes from the data in it"


def test_without_the_headline_where_that_is_not_wanted(extractor: Extractor) -> None:
    assert run(extractor, HOLDING["JSON-LD"], title="drop").markdown == f"{FERRY}\n\n{CAPTAIN}"


def test_of_a_long_headline_the_start_is_read(extractor: Extractor) -> None:
    found = run(extractor, shell(data({"title": "F" * 3_000, "body": HTML})))
    assert (found.markdown or "").startswith(f"# {'F' * 1_000}\n")


@pytest.mark.parametrize(
    ("html", "fallback"),
    [
        (HOLDING["JSON-LD"], "none"),
        (HOLDING["JSON-LD"], "empty"),
        (shell(data([POST | {"title": "Ferries"}, {"title": "Buses", "body": CAPTAIN + FERRY}])), "trafilatura"),
        (shell(data([POST | {"body": "word " * 39}])), "trafilatura"),
    ],
    ids=["no fallback", "an empty one", "two articles", "a short one"],
)
def test_what_is_not_read(extractor: Extractor, html: str, fallback: str) -> None:
    found = run(extractor, html, fallback=fallback)
    assert (found.is_empty, found.fallback_reason) == (True, FallbackReason.JS_SHELL)


WAITING = {
    "an empty mount": shell(),
    "one that loads": shell(mount='<div id="app"><p>Loading, please wait</p></div>'),
    "its own element": shell(mount="<app-root></app-root>"),
    "a notice": shell(mount="<noscript>You need to enable JavaScript to run this app.</noscript><div id='x'></div>"),
    "a visible notice": shell(mount="<p>This site requires JavaScript.</p>"),
    "nothing but scripts": shell(mount=""),
}


@pytest.mark.parametrize("html", WAITING.values(), ids=WAITING)
def test_a_page_that_waits_for_its_script_is_empty_and_says_so(extractor: Extractor, html: str) -> None:
    found = run(extractor, html)
    assert found.is_empty
    assert found.fallback_reason is FallbackReason.JS_SHELL
    assert (found.page_type, found.quality) == (None, None)  # no article in the stats
    assert found.error is not None
    assert "scrapy-playwright" in found.error


@pytest.mark.parametrize(
    "html",
    [
        "<title>404 Not Found</title><h1>Not Found</h1><p>The page was not found.</p><script src='/a.js'></script>",
        "<title>Nothing</title><body><img src='/a.png'>",
        shell(mount=f"<div id='root'></div><article><h1>Ferry times</h1>{HTML * 3}</article>"),
    ],
    ids=["error", "no script", "content beside the mount"],
)
def test_other_pages_are_not_shells(extractor: Extractor, html: str) -> None:
    assert run(extractor, html).fallback_reason is not FallbackReason.JS_SHELL


def test_embedded_articles_are_as_safe_as_pages(extractor: Extractor) -> None:
    evil = HTML + "<script>alert(1)</script><img src=x onerror=alert(1)><a href='javascript:alert(1)'>a</a>"
    found = run(extractor, shell(data({"title": "Ferry times <script>", "body": evil}), title="Ferry times script"))
    assert found.source == "fallback:embedded"
    assert found.main_html is not None
    for bad in ("<script", "onerror", "javascript:"):
        assert bad not in found.main_html
        assert bad not in (found.markdown or "")


BAD = {
    "broken": "{",
    "deep": "[" * 100_000,
    "deep objects": '{"body":' * 900 + json.dumps("word " * 10_000) + "}" * 900,
    "many": json.dumps([{"body": f"{FERRY} {CAPTAIN} {i}"} for i in range(5_000)]),
    "a number": "1e999",
    "a surrogate": json.dumps({"title": "Ferry times", "body": "\ud800 " + HTML}),
    "keys": json.dumps({"body" * 100_000: HTML, "": 1}),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
@pytest.mark.parametrize("kind", ['id="__NEXT_DATA__"', 'type="application/ld+json"'])
def test_data_of_any_kind_make_no_trouble(extractor: Extractor, kind: str, text: str) -> None:
    """They are read or skipped, and the number of texts is bounded."""
    found = run(extractor, shell(f"<script {kind}>{text}</script>".replace("</p", "<\\/p")))
    assert found.fallback_reason is FallbackReason.JS_SHELL
    if found.markdown:
        found.markdown.encode()


def test_ten_thousand_places_for_a_script_take_linear_time() -> None:
    deep = "<div id=root>" * 3_000 + "text of a page that is no shell" + "</div>" * 3_000
    assert fill_shell(Document(shell(mount=deep), URL), Config()) is None


def folding(levels: int) -> str:
    """Return a page whose data hold a text under keys in each other that all count as ``body``."""
    value: Any = "The tides rise and fall twice a day. " * 20
    for i in range(levels):
        value = {"b" + "_" * (i % 9) + "ody": value, "bo_dy": value if i < 12 else "x"}
    return shell(data(value))


def test_data_that_multiply() -> None:
    """A text that is read again with each value around it gives at most what the budget allows."""
    found = fill_shell(Document(folding(400)), Config())

    assert found is not None
    assert 2_000_000 < len(found.text or "") <= 3_000_000


@pytest.mark.parametrize(("levels", "is_read"), [(7, True), (15, False)])
def test_each_character_is_read_ten_times(levels: int, is_read: bool) -> None:
    value: Any = "x" * 20_000
    for _ in range(levels):
        value = {"body": value}
    found = fill_shell(Document(shell(data([value, POST]))), Config())

    assert found is not None
    assert (FERRY in (found.text or "")) is is_read
