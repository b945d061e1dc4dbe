"""Run crawls in their own process with any runner: ``python -m tests.crawl.runners JSON``.

The JSON says how, with which settings, and has the URLs by crawl. Uses the bundled tagger. Ends with one JSON object on
standard output, and logs to standard error.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
import weakref
from collections.abc import Iterator
from typing import Any

import onnxruntime
from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerProcess, AsyncCrawlerRunner, CrawlerProcess, CrawlerRunner
from scrapy.utils.log import configure_logging
from scrapy.utils.reactor import install_reactor

from scrapy_dripper.workers import pool
from tests.crawl.crawling import QUIET

JOB: dict[str, Any] = json.loads(sys.argv[1])
SETTINGS = {**QUIET, "DRIPPER_BATCH_SIZE": 4, **JOB["settings"]}
ASYNCIO = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

said: dict[str, Any] = {
    "items": [[] for _ in JOB["crawls"]],
    "errors": [],
    "loops": [],
    "sessions": 0,
    "workers": [],
}
alive: weakref.WeakSet[onnxruntime.InferenceSession] = weakref.WeakSet()


class CountedSession(onnxruntime.InferenceSession):  # type: ignore[misc]
    """A session that is recorded when it is opened."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        said["sessions"] += 1
        alive.add(self)


class CountedProcess(pool.Process):
    """A worker process that is recorded when it is started."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        said["workers"].append(self.pid)


class PageSpider(Spider):
    name = "pages"

    async def start(self) -> Any:
        loop = type(asyncio.get_running_loop())
        said["loops"].append(f"{loop.__module__}.{loop.__qualname__}")
        for url in JOB["crawls"][self.number]:
            yield Request(url)

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url}


def crawls(runner: Any) -> list[Any]:
    """Start all crawls and return an awaitable for their end."""
    begun = []
    for number, items in enumerate(said["items"]):
        crawler = runner.create_crawler(PageSpider)
        keepers.append(lambda item, items=items: items.append(item))  # the signal holds it weakly
        crawler.signals.connect(keepers[-1], signals.item_scraped)
        begun.append(runner.crawl(crawler, number=number))
    return begun


async def together(*_: Any) -> None:
    """Run all crawls with an AsyncCrawlerRunner."""
    results = await asyncio.gather(*crawls(AsyncCrawlerRunner(SETTINGS)), return_exceptions=True)
    said["errors"] += [repr(result) for result in results if result is not None]


def with_a_reactor(path: str = ASYNCIO) -> None:
    """Run all crawls with a CrawlerRunner, in a program that starts the reactor itself."""
    from twisted.internet.defer import DeferredList

    install_reactor(path, SETTINGS.get("ASYNCIO_EVENT_LOOP"))
    from twisted.internet import reactor

    def end(results: Any) -> None:
        said["errors"] += [repr(result.value) for succeeded, result in results if not succeeded]
        reactor.stop()

    begun = DeferredList(crawls(CrawlerRunner(SETTINGS)), consumeErrors=True)
    reactor.callWhenRunning(begun.addCallback, end)
    reactor.run()


def main() -> None:
    """Run the crawls."""
    onnxruntime.InferenceSession = CountedSession
    pool.Process = CountedProcess  # type: ignore[misc]
    kind = JOB["kind"]
    if kind in ("CrawlerProcess", "AsyncCrawlerProcess"):
        process = {"CrawlerProcess": CrawlerProcess, "AsyncCrawlerProcess": AsyncCrawlerProcess}[kind](SETTINGS)
        crawls(process)
        process.start()
    else:
        configure_logging(SETTINGS)
        if kind == "CrawlerRunner":
            with_a_reactor(SETTINGS.get("TWISTED_REACTOR", ASYNCIO))
        elif kind == "AsyncCrawlerRunner":
            from scrapy.utils.defer import deferred_f_from_coro_f
            from twisted.internet.task import react

            install_reactor(ASYNCIO, SETTINGS.get("ASYNCIO_EVENT_LOOP"))
            try:
                react(deferred_f_from_coro_f(together))
            except SystemExit as end:
                said["errors"] += [f"exit status {end.code}"] if end.code else []
        elif "ASYNCIO_EVENT_LOOP" in SETTINGS:
            import uvloop

            uvloop.run(together())
        else:
            asyncio.run(together())
    for _ in range(200):  # threads end when they get to it
        gc.collect()
        if not alive:
            break
        time.sleep(0.05)
    print(json.dumps({**said, "open": len(alive)}))


keepers: list[Any] = []

if __name__ == "__main__":
    main()
