"""Crawls without worker processes: what an engine or a stats collector does wrong loses no item."""

from __future__ import annotations

from typing import Any

import pytest
import scrapy
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_dripper.crawl.dripper import Dripper
from tests.crawl.crawling import Crawls, EngineLog, Site, spider, warnings


def test_a_stats_collector_that_fails_costs_nothing(
    crawl: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There is one warning for any number of failing stats."""
    inc_value = MemoryStatsCollector.inc_value

    def broken(self: Any, key: str, *args: Any, **kwargs: Any) -> None:
        if key.startswith("dripper/"):
            raise ConnectionError("the stats server is away")
        inc_value(self, key, *args, **kwargs)

    monkeypatch.setattr(MemoryStatsCollector, "inc_value", broken)

    result = crawl(spider(site.pages(9)))

    assert all("MAIN" in item["markdown"] for item in result.items)
    assert len(result.items) == 9
    (warning,) = warnings(caplog)
    assert "cannot be counted: ConnectionError: the stats server is away" in warning


def test_pages_that_are_not_done_when_the_crawl_ends_are_counted(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """No item needs them, so the crawl does not wait for them."""
    engine.act = lambda engine, pages: engine.log.hang()

    def parse(self: scrapy.Spider, response: Any) -> Any:
        Dripper.from_crawler(self.crawler).start(response)
        return ()

    result = crawl(spider(site.pages(5), parse), {"DRIPPER_TIMEOUT": 3600})

    assert result.stat("cancelled") == 5
    assert result.stat("pages") == 0
