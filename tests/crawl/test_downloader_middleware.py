"""The downloader middleware starts extractions early, and nothing waits for them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
import scrapy
from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from tests.crawl.crawling import Crawls, EngineLog, Site, page, spider

EARLY = {"DOWNLOADER_MIDDLEWARES": {"scrapy_dripper.downloadermiddlewares.DripperDownloaderMiddleware": 25}}


def wait_for(engine: EngineLog, count: int) -> Any:
    """Return a callback that ends once a number of pages have been labelled, without asking for them."""

    async def parse(self: scrapy.Spider, response: Any) -> Any:
        while sum(map(len, engine.batches)) < count:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # for the answers to arrive
        return
        yield

    return parse


def test_extraction_begins_before_the_callback(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """A page is extracted although its callback never asks. An unused result causes no warning."""
    result = crawl(spider(site.pages(3), wait_for(engine, 3)), EARLY)

    assert sorted(url for batch in engine.batches for url in batch) == site.pages(3)
    assert result.stat("pages") == 3
    assert result.items == []


def test_unused_results_are_not_logged(
    crawl: Crawls, site: Site, engine: EngineLog, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a late result nor one that is cancelled at the end of the crawl is logged."""
    engine.act = lambda engine, pages: engine.log.hang() if len(engine.log.batches) == 4 else None

    crawl(spider(site.pages(4), wait_for(engine, 4)), {**EARLY, "DRIPPER_BATCH_SIZE": 1})

    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    ("status", "content_type", "meta"),
    [
        (404, "text/html", {"handle_httpstatus_all": True}),
        (500, "text/html", {"handle_httpstatus_all": True}),
        (200, "application/json", {}),
        (200, "text/html", {"dripper": False}),
    ],
)
def test_only_pages_begin_early(
    crawl: Crawls, site: Site, engine: EngineLog, status: int, content_type: str, meta: dict[str, Any]
) -> None:
    """Error pages, other files and excluded requests are not extracted, but every response reaches its callback."""
    seen = []

    def parse(self: scrapy.Spider, response: Any) -> Any:
        seen.append(response.status)
        return
        yield

    site.routes["/file"] = (content_type, page(1).encode())
    site.status["/file"] = status

    crawl(spider([site.url("/file")], parse, meta), EARLY)

    assert seen == [status]
    assert engine.batches == []


def test_downloads_for_scrapys_own_use_do_not_begin_early(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """A robots.txt that is an HTML page has no callback that could ask for its main content."""
    site.routes["/robots.txt"] = ("text/html", page(1).encode())

    async def parse(self: scrapy.Spider, response: Any) -> Any:
        await self.crawler.engine.download_async(Request(site.url("/page/8"), callback=NO_CALLBACK))
        async for nothing in wait_for(engine, 1)(self, response):
            yield nothing

    crawl(spider([site.url("/page/7")], parse), {**EARLY, "ROBOTSTXT_OBEY": True})

    assert {"/robots.txt", "/page/7", "/page/8"} == set(site.seen)
    assert engine.batches == [[site.url("/page/7")]]


def test_a_bug_in_the_plugin_loses_no_response(crawl: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The response is passed on."""

    def bug(*args: Any) -> Any:
        raise AssertionError("a bug")

    monkeypatch.setattr("scrapy_dripper.crawl.dripper.Dripper.start", bug)

    result = crawl(spider(site.pages(2)), EARLY)

    assert sorted(item["url"] for item in result.items) == site.pages(2)


def test_it_can_be_switched_off(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """``DRIPPER_ENABLED = False`` also disables this middleware."""
    crawl(spider(site.pages(2)), {**EARLY, "DRIPPER_ENABLED": False})

    assert engine.engines == []
