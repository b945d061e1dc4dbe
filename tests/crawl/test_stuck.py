"""If engines and fallbacks hang, die or cannot be loaded again, the crawl still ends with every item."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
import scrapy
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_dripper.crawl.dripper import Dripper
from scrapy_dripper.engines.base import ModelError
from tests.crawl.crawling import Crawls, EngineLog, FakeEngine, Site, spider

ALONE = {"DRIPPER_BATCH_SIZE": 1, "DRIPPER_TIMEOUT": 0.4, "DRIPPER_FALLBACK": "empty"}


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    """Return the messages of a log level."""
    return [record.getMessage() for record in caplog.records if record.levelno == level]


def test_a_late_answer_is_dropped(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """An engine that answers after its page has fallen back changes nothing and is closed."""

    def act(_: FakeEngine, pages: Any) -> None:
        if pages[0].url.endswith("/0"):
            engine.hang()

    engine.act = act

    async def parse(self: scrapy.Spider, response: Any) -> Any:
        if response.url.endswith("/0"):
            page = await Dripper.from_crawler(self.crawler).extract(response)
            engine.free.set()
            while not engine.engines[0].closed:
                await asyncio.sleep(0.01)
            yield response.follow("/page/1")
            yield {"url": response.url, "source": page.source}
        else:
            yield {"url": response.url}

    result = crawl(spider([site.url("/page/0")], parse), ALONE)

    late, other = sorted(result.items, key=lambda item: item["url"])
    assert (late["source"], late["markdown"]) == ("fallback:empty", "")
    assert "page 1" in other["markdown"]
    assert result.stat("pages") == 2
    assert result.stat("batches") == 1


def test_a_page_whose_fallback_hangs_too_is_left_as_it_is(
    crawl: Crawls, site: Site, engine: EngineLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The crawl ends, and the fallbacks of other pages run in another thread."""
    engine.act = lambda engine, pages: engine.log.hang()

    def fall_back(document: Any, *args: Any) -> Any:
        if document.url.endswith("/1"):
            engine.hang()
        return original(document, *args)

    import scrapy_dripper.crawl.batcher as module

    original = module.fall_back
    monkeypatch.setattr(module, "fall_back", fall_back)

    result = crawl(spider(site.pages(3)), {**ALONE, "DRIPPER_META_FIELD": "by"})

    items = {item["url"][-1]: item for item in result.items}
    assert {number: item.get("markdown") for number, item in items.items()} == {"0": "", "1": None, "2": ""}
    assert items["1"]["by"]["source"] == "fallback:none"
    assert result.stat("fallback/timeout") == 3
    assert sum("Replacing the thread of the fallback" in line for line in messages(caplog, logging.WARNING)) == 1


def test_engine_and_fallback_may_both_hang(
    crawl: Crawls, site: Site, engine: EngineLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Engine and fallback are both given up, and items are passed on unchanged."""
    engine.act = lambda engine, pages: engine.log.hang()
    monkeypatch.setattr("scrapy_dripper.crawl.batcher.fall_back", lambda *args: engine.hang())

    result = crawl(spider(site.pages(12)), {**ALONE, "DRIPPER_TIMEOUT": 0.2})

    empty = {"main_html": None, "markdown": None}
    assert sorted(map(str, result.items)) == sorted(str({"url": url} | empty) for url in site.pages(12))
    assert [line.partition(" up ")[0] for line in messages(caplog, logging.ERROR)] == [
        "Giving the engine",
        "Giving the fallback",
    ]


def test_a_thread_that_always_dies_is_given_up(
    crawl: Crawls, site: Site, engine: EngineLog, caplog: pytest.LogCaptureFixture
) -> None:
    """The reason is an engine error and not a timeout."""

    def act(_: FakeEngine, pages: Any) -> None:
        raise SystemExit("out of memory")

    engine.act = act

    result = crawl(spider(site.pages(9)), {**ALONE, "DRIPPER_BATCH_SIZE": 3})

    assert [item["markdown"] for item in result.items] == [""] * 9
    assert result.stat("fallback/engine_error") == 9
    assert len(engine.engines) == 4
    (error,) = messages(caplog, logging.ERROR)
    assert "SystemExit: out of memory" in error


@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_an_engine_that_cannot_be_loaded_again_is_given_up(
    crawl: Crawls, site: Site, engine: EngineLog, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The first load succeeded, but the device has been lost since."""

    def act(_: FakeEngine, pages: Any) -> None:
        engine.hang()

    def load(config: Any) -> FakeEngine:
        if engine.engines and how == "raises":
            raise ModelError("no device")
        if engine.engines:
            engine.hang()
        return FakeEngine(engine)

    engine.act = act
    monkeypatch.setattr("scrapy_dripper.extractor.load_engine", load)

    result = crawl(spider(site.pages(5)), ALONE)

    assert [item["markdown"] for item in result.items] == [""] * 5
    assert result.stat("pages/fallback:empty") == 5


def test_bad_pages_in_a_long_crawl_do_not_end_the_engine(
    crawl: Crawls, site: Site, engine: EngineLog, caplog: pytest.LogCaptureFixture
) -> None:
    """Only replacements in a row, or threads that are stuck at the same time, count."""

    def act(it: FakeEngine, pages: Any) -> None:
        if pages[0].url.endswith("5"):
            raise SystemExit

    engine.act = act

    async def parse(self: scrapy.Spider, response: Any) -> Any:
        yield {"url": response.url}

    result = crawl(spider(site.pages(60), parse), {**ALONE, "DRIPPER_TIMEOUT": 30, "CONCURRENT_REQUESTS": 1})

    assert result.stat("fallback/engine_error") == 6
    assert result.stat("pages/fake") == 54
    assert messages(caplog, logging.ERROR) == []
    assert len(messages(caplog, logging.WARNING)) == 1


def test_the_fallback_of_a_stuck_page_runs_in_another_thread(
    crawl: Crawls, site: Site, engine: EngineLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs neither on the event loop nor in the stuck thread."""
    import scrapy_dripper.crawl.batcher as module

    engine.act = lambda engine, pages: engine.log.hang()
    original, threads = module.fall_back, []

    def fall_back(*args: Any) -> Any:
        threads.append(threading.current_thread())
        return original(*args)

    monkeypatch.setattr(module, "fall_back", fall_back)

    crawl(spider(site.pages(1)), ALONE)

    (thread,) = threads
    assert thread.daemon
    assert thread not in {crawl.reactor.thread, *engine.threads}


def test_threads_that_cannot_be_started_are_tried_again(
    crawl: Crawls, site: Site, engine: EngineLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The system has no threads at first. Every page waits for a later one."""
    monkeypatch.setattr("scrapy_dripper.crawl.batcher.RESTART_SECONDS", 0.01)
    refuse_threads(monkeypatch, 3)

    result = crawl(spider(site.pages(5)), ALONE)

    assert result.stat("pages/fake") == 5
    (warning,) = messages(caplog, logging.WARNING)
    assert "can't start new thread" in warning


def test_without_any_thread_items_are_left_as_they_are(
    crawl: Crawls, site: Site, engine: EngineLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the engine nor the fallback can run, and nothing waits forever."""
    monkeypatch.setattr("scrapy_dripper.crawl.batcher.RESTART_SECONDS", 0.01)
    refuse_threads(monkeypatch, 1_000)

    result = crawl(spider(site.pages(5)), ALONE)

    assert sorted(item["url"] for item in result.items) == sorted(site.pages(5))
    assert result.stat("pages/fallback:none") == result.stat("fallback/engine_error") == 5
    assert len(messages(caplog, logging.ERROR)) == 2


def refuse_threads(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Make the first threads of the plugin fail to start."""
    start, turns = threading.Thread.start, iter(range(times))

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "scrapy-dripper" and next(turns, None) is not None:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)


def test_a_thread_that_dies_while_its_batch_fills_loses_no_page(
    crawl: Crawls, site: Site, engine: EngineLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next thread labels the pages collected so far."""
    import scrapy_dripper.crawl.threads as module

    turns = iter(range(5))

    def monotonic() -> float:
        if sys._getframe(1).f_code.co_name == "take" and next(turns, None) == 3:
            raise MemoryError
        return time.monotonic()

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=monotonic))

    result = crawl(spider(site.pages(8)), {"DRIPPER_BATCH_SIZE": 8, "DRIPPER_BATCH_WAIT": 2})

    assert result.stat("pages/fake") == 8
    assert len(engine.engines) == 2


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
    (warning,) = messages(caplog, logging.WARNING)
    assert "cannot be counted: ConnectionError: the stats server is away" in warning


def test_pages_that_are_not_done_when_the_crawl_ends_are_counted(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """No item needs them, so the crawl does not wait for them."""
    engine.act = lambda engine, pages: engine.log.hang()

    def parse(self: scrapy.Spider, response: Any) -> Any:
        return ()

    early = {"scrapy_dripper.downloadermiddlewares.DripperDownloaderMiddleware": 25}
    result = crawl(spider(site.pages(5), parse), {"DOWNLOADER_MIDDLEWARES": early, "DRIPPER_TIMEOUT": 3600})

    assert result.stat("cancelled") == 5
    assert result.stat("pages") == 0
