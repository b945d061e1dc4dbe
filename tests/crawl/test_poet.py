"""scrapy-poet: ``def parse(self, response, main: MainContent)`` (pitfall 18)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import scrapy
from scrapy.settings import Settings

from tests.crawl.crawling import Crawls, EngineLog, Site, eventually, spider
from tests.crawl.test_backpressure import FOURS
from tests.programs import python

pytest.importorskip("scrapy_poet")

from scrapy_poet import DummyResponse
from scrapy_poet.page_input_providers import HttpResponseProvider
from web_poet import ItemPage, field

from scrapy_dripper import Addon
from scrapy_dripper.crawl import Dripper
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.providers import DripperProvider, MainContent

PROVIDER = "scrapy_dripper.providers.DripperProvider"
POET = {"ADDONS": {"scrapy_poet.Addon": 300, "scrapy_dripper.Addon": 500}}


def parse(self: scrapy.Spider, response: Any, main: MainContent) -> Any:
    """Yield an item that holds the main content."""
    yield {"url": response.url, "main": main}


def test_p02_p18_a_callback_can_ask_for_the_main_content(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """The add-on registers the provider, and each callback gets the content of its own page. A provider waits in the
    downloader, so the batch cannot fill. The timer sends it.
    """
    result = crawl(spider(site.pages(10), parse), {**POET, "CONCURRENT_REQUESTS": 2, "DRIPPER_BATCH_SIZE": 64})

    assert sorted(item["url"] for item in result.items) == site.pages(10)
    assert all(f"MAIN text of page {item['url'][-1]}," in item["main"].markdown for item in result.items)
    assert result.stat("pages") == 10


def test_p18_the_requests_options_count(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """This holds although a provider gets a response without its request."""
    engine.act = lambda engine, pages: ["nonsense"] * len(pages)
    meta = {"dripper": {"fallback": "html"}}

    (item,) = crawl(spider(site.pages(1), parse, meta), {**POET, "DRIPPER_FALLBACK": "empty"}).items

    assert (item["main"].source, item["main"].fallback_reason) == ("fallback:html", FallbackReason.ENGINE_ERROR)


@pytest.mark.parametrize(
    ("settings", "meta", "body"),
    [({}, {}, b"%PDF-1.4"), ({}, {"dripper": False}, b"<p>MAIN</p>"), ({"DRIPPER_ENABLED": False}, {}, b"<p>MAIN</p>")],
    ids=["pdf", "meta", "off"],
)
def test_without_main_content_all_texts_are_none(
    crawl: Crawls, site: Site, settings: dict[str, Any], meta: dict[str, Any], body: bytes
) -> None:
    """The callback still runs, because it may use the response in another way."""
    site.routes["/file"] = ("text/html", body)

    (item,) = crawl(spider([site.url("/file")], parse, meta), {**POET, **settings}).items

    main = item["main"]
    assert (main.main_html, main.markdown, main.text, main.source) == (None, None, None, "fallback:none")
    assert "is not HTML" in main.error


def test_it_is_shared_with_the_other_doors(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """The spider middleware fills items of the same response without another extraction."""

    async def parse(self: scrapy.Spider, response: Any, main: MainContent) -> Any:
        assert await Dripper.from_crawler(self.crawler).extract(response) is main
        yield {"url": response.url}

    result = crawl(spider(site.pages(2), parse), POET)

    assert sum(map(len, engine.batches)) == 2
    assert all("MAIN" in item["markdown"] for item in result.items)


def test_pages_that_have_been_extracted_are_not_held_back(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """scrapy-poet waits for its pages before the backpressure, so they need not wait again."""
    engine.act = lambda *_: eventually("more than two batches wait", lambda: crawl.stat("queue/max") > 8)

    result = crawl(spider(site.pages(60), parse), {**FOURS, **POET, "CONCURRENT_REQUESTS": 20})

    assert sorted(item["url"] for item in result.items) == sorted(site.pages(60))
    assert result.stat("held_back") == 0


class ArticlePage(ItemPage[dict]):
    def __init__(self, main: MainContent) -> None:
        self.main = main

    @field
    def text(self) -> str:
        return self.main.markdown or ""


def test_page_objects_can_ask_for_it(crawl: Crawls, site: Site) -> None:
    """It is an ordinary page input. The response is downloaded although the callback does not use it."""

    async def parse(self: scrapy.Spider, response: DummyResponse, page: ArticlePage) -> Any:
        yield await page.to_item()

    result = crawl(spider(site.pages(1), parse), POET)

    assert [item["text"].strip() for item in result.items] == [
        "MAIN text of page 0, which is about nothing in particular."
    ]


def test_it_can_be_cached(crawl: Crawls, site: Site, engine: EngineLog, tmp_path: Path) -> None:
    """``SCRAPY_POET_CACHE`` and saved fixtures store it, so the second crawl extracts nothing."""
    settings = {**POET, "SCRAPY_POET_CACHE": str(tmp_path), "DRIPPER_HTML_FIELD": None, "DRIPPER_MARKDOWN_FIELD": None}
    first = crawl(spider(site.pages(2), parse), settings)
    second = crawl(spider(site.pages(2), parse), settings)

    key = str
    assert sorted((item["main"] for item in first.items), key=key) == sorted(
        (item["main"] for item in second.items), key=key
    )
    assert sum(map(len, engine.batches)) == 2


def registered(providers: dict[Any, int | None]) -> dict[Any, int | None]:
    """Return the setting ``SCRAPY_POET_PROVIDERS`` of a user as the add-on leaves it."""
    settings = Settings({"SCRAPY_POET_PROVIDERS": providers} if providers else {})
    Addon().update_settings(settings)
    return settings.getdict("SCRAPY_POET_PROVIDERS")


def test_the_addon_registers_the_provider_and_does_not_import_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing it imports scrapy-poet, which most crawls do not use."""
    monkeypatch.setitem(sys.modules, "scrapy_dripper.providers", None)

    assert registered({}) == {PROVIDER: 1101}


OTHER = {HttpResponseProvider: 500}


@pytest.mark.parametrize(
    ("own", "all_"),
    [
        *((own, own) for own in ({PROVIDER: None}, {DripperProvider: 7}, {PROVIDER: 7, **OTHER})),
        (OTHER, OTHER | {DripperProvider: 1101}),
    ],
)
def test_the_provider_stays_where_the_user_has_placed_it_and_joins_others(
    own: dict[Any, int | None], all_: dict[Any, int | None]
) -> None:
    assert registered(own) == all_


def test_without_the_extra_the_message_names_it() -> None:
    """Importing the provider without scrapy-poet raises an error that says what to install. The add-on works without
    it."""
    code = """
import sys
sys.modules["scrapy_poet"] = None
from scrapy.settings import Settings
from scrapy_dripper import Addon
settings = Settings()
Addon().update_settings(settings)
assert not settings.getdict("SCRAPY_POET_PROVIDERS")
try:
    import scrapy_dripper.providers
except ImportError as error:
    print(error)
"""
    done = python("-c", code)

    assert done.stdout == "scrapy_dripper.providers needs scrapy-poet: pip install 'scrapy-dripper[poet]'\n"
