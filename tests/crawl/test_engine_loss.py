"""A lost engine is logged once for any number of pages, or ends the crawl."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from scrapy_dripper.crawl.engine_loss import EngineLoss
from scrapy_dripper.extraction import Extraction, FallbackReason


def extraction(**values: Any) -> Extraction:
    """Return an extraction with arbitrary other values."""
    return Extraction(url="", title=None, main_html="", markdown="", text="", **values)


LOST = extraction(source="fallback:empty", fallback_reason=FallbackReason.ENGINE_LOST, error="CUDA failure 719")
FAILED = extraction(source="fallback:empty", fallback_reason=FallbackReason.ENGINE_ERROR, error="no memory")
GOOD = extraction(source="qwen3", labels=(True,))
KEPT = extraction(source="tagger", labels=(True,))
"""A page that the tagger was sure of, under ``DRIPPER_CASCADE``."""


class Engine:
    """The parts of Scrapy's engine that matter here."""

    def __init__(self) -> None:
        self.closed: list[str] = []

    async def close_spider_async(self, *, reason: str) -> None:
        self.closed.append(reason)


class Crawler:
    """A crawl."""

    def __init__(self) -> None:
        self.engine = Engine()


def seen(crawler: Any, stop: bool, *pages: Extraction) -> None:
    """Pass pages to the object under test, and end the crawl."""

    async def crawl() -> None:
        loss = EngineLoss(crawler, stop=stop)
        for one in pages:
            loss.page(one)
        await asyncio.sleep(0)
        loss.closed()

    asyncio.run(crawl())


def test_pages_fall_back_until_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    """There is one error at the beginning, and the number of pages at the end."""
    crawler = Crawler()
    seen(crawler, False, GOOD, FAILED, LOST, LOST, FAILED, KEPT, LOST, GOOD, GOOD)

    assert [(one.levelno, one.getMessage()) for one in caplog.records] == [
        (
            logging.ERROR,
            "The engine is lost: CUDA failure 719. Pages fall back until it works again; it is retried every 30 "
            'seconds. DRIPPER_ON_ENGINE_LOSS = "stop" ends the crawl instead.',
        ),
        (logging.WARNING, "The engine works again; 3 pages fell back without it."),
    ]
    assert crawler.engine.closed == []


def test_an_engine_that_does_not_come_back(caplog: pytest.LogCaptureFixture) -> None:
    """The number of pages is logged at the end of the crawl."""
    seen(Crawler(), False, LOST, LOST)

    assert caplog.messages[1:] == ["The engine was lost until the end of the crawl: 2 pages fell back without it."]


def test_a_crawl_that_is_to_stop_stops_once(caplog: pytest.LogCaptureFixture) -> None:
    """The spider is closed with its own reason."""
    crawler = Crawler()
    seen(crawler, True, GOOD, LOST, LOST, LOST)

    assert crawler.engine.closed == ["dripper_engine_lost"]
    assert "The engine is lost, so the crawl stops: CUDA failure 719" in caplog.messages


def test_single_failures_do_not_count_as_a_loss(caplog: pytest.LogCaptureFixture) -> None:
    """Each of them has its own reason and stat."""
    seen(Crawler(), True, GOOD, FAILED, FAILED)

    assert caplog.messages == []
