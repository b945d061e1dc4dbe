"""Backpressure: a crawl that is faster than the engine does not accumulate pages, and loses none."""

from __future__ import annotations

from typing import Any

import pytest
import scrapy
from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.test import get_crawler

from scrapy_dripper.downloadermiddlewares import DripperBackpressureMiddleware
from tests.crawl.crawling import PATIENCE, Crawls, EngineLog, FakeEngine, Site, eventually, spider

PATH = "scrapy_dripper.downloadermiddlewares.DripperBackpressureMiddleware"
FOURS = {"DRIPPER_BATCH_SIZE": 4, "CONCURRENT_REQUESTS": 4, "CONCURRENT_REQUESTS_PER_DOMAIN": 4}
CONCURRENT = FOURS["CONCURRENT_REQUESTS"]


class Slow:
    """An engine that is slower than the downloads. Its first batch lasts until responses are held back."""

    def __init__(self, crawl: Crawls, site: Site, held_back: int = 1) -> None:
        self.crawl, self.site, self.held_back = crawl, site, held_back
        self.asked: list[int] = []

    def __call__(self, engine: FakeEngine, pages: Any) -> None:
        if len(engine.log.batches) > 1:
            engine.log.pause(0.01)
            return
        eventually("responses held back", lambda: self.crawl.stat("held_back") >= self.held_back)
        for seconds in (0, 0.5):
            engine.log.pause(seconds)
            self.asked.append(len(self.site.seen))


def test_downloads_pause_while_two_batches_wait(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """The site gets no requests while there is no capacity, and every item is complete in the end."""
    engine.act = slow = Slow(crawl, site, held_back=CONCURRENT)

    result = crawl(spider(site.pages(300)), {**FOURS, "DRIPPER_TIMEOUT": 2 * PATIENCE})

    assert slow.asked[0] == slow.asked[1] < 300
    assert 8 <= result.stat("queue/max") < 150  # Scrapy 2.14 waits 0.1 seconds before each callback; others give 11
    assert CONCURRENT <= result.stat("held_back") <= 300
    assert sorted(item["url"] for item in result.items) == sorted(site.pages(300))
    assert all(item["markdown"].startswith("MAIN text") for item in result.items)


def test_a_crawl_that_is_slower_than_the_engine_is_not_held_back(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """Pages that fit into two batches pass at once."""
    result = crawl(spider(site.pages(20)), {"DRIPPER_BATCH_SIZE": 10})

    assert result.stat("pages") == 20
    assert result.stat("held_back") == 0


@pytest.mark.parametrize(
    ("content_type", "request_options"),
    [
        ("text/html", {"callback": NO_CALLBACK}),
        ("text/html", {"meta": {"dripper": False}}),
        ("application/json", {}),
    ],
    ids=["Scrapy's own use", "excluded", "not HTML"],
)
def test_what_does_not_go_to_the_engine_passes(
    crawl: Crawls, site: Site, engine: EngineLog, content_type: str, request_options: dict[str, Any]
) -> None:
    """While the engine has no capacity, a callback can still download other responses."""
    fetched: list[str] = []

    engine.act = lambda *_: eventually("files fetched beside pages that wait", lambda: len(fetched) >= 4)

    async def parse(self: scrapy.Spider, response: Any) -> Any:
        yield {"url": response.url}
        file = await self.crawler.engine.download_async(Request(site.url("/file"), **request_options))
        fetched.append(file.url)

    site.routes["/file"] = (content_type, b"<p>a file</p>")

    result = crawl(spider(site.pages(8), parse), {"DRIPPER_BATCH_SIZE": 2, "DRIPPER_TIMEOUT": 2 * PATIENCE})

    assert sorted(item["url"] for item in result.items) == site.pages(8)
    assert len(fetched) == 8
    assert result.stat("pages/fake") == 8  # none fell back, as it would if the engine had waited in vain


def test_a_crawl_that_is_stopped_meanwhile_extracts_what_was_held_back(
    crawl: Crawls, site: Site, engine: EngineLog
) -> None:
    """Each downloaded response becomes an item."""
    engine.act = Slow(crawl, site)

    result = crawl(spider(site.pages(200)), {**FOURS, "CLOSESPIDER_ITEMCOUNT": 10})

    assert result.stats["finish_reason"] == "closespider_itemcount"
    assert result.stat("held_back") > 0
    assert 10 <= len(result.items) == result.stats["response_received_count"] < 200
    assert result.stat("cancelled") == 0


def test_without_a_limit_of_requests_nothing_is_held_back() -> None:
    """Responses that are held back would count against no limit, and downloads would continue."""
    with pytest.raises(NotConfigured, match="CONCURRENT_REQUESTS is 0"):
        DripperBackpressureMiddleware.from_crawler(get_crawler(settings_dict={"CONCURRENT_REQUESTS": 0}))


@pytest.mark.parametrize("off", [{"DOWNLOADER_MIDDLEWARES": {PATH: None}}, {"DRIPPER_ENABLED": False}])
def test_it_can_be_switched_off(crawl: Crawls, site: Site, engine: EngineLog, off: dict[str, Any]) -> None:
    """Scrapy's setting or the plugin's disables it. Then no page is held back."""
    engine.act = lambda *_: eventually("all pages wait", lambda: crawl.stat("queue/max") == 30)

    result = crawl(spider(site.pages(30)), {**FOURS, **off})

    assert len(result.items) == 30
    assert result.stat("held_back") == 0
