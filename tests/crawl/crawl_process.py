"""Run a crawl in its own process: ``python -m tests.crawl.crawl_process JSON``.

The JSON has the kind of process, the settings, URLs and the engine. The process says on standard
output what happens, one line each, and logs to standard error. The engine ``held`` answers nothing before it gets a
line on standard input; ``hung`` never answers.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess

import scrapy_dripper.extractor
from tests.crawl.crawling import QUIET, EngineLog, FakeEngine

JOB = json.loads(sys.argv[1])


def say(*words: object) -> None:
    """Write a line for the test in one call, because two threads write."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class PageSpider(Spider):
    name = "pages"

    async def start(self) -> Any:
        for url in JOB["urls"]:
            yield Request(url)

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url}
        say("parsed", response.url)


def act(engine: FakeEngine, pages: Any) -> None:
    """Behave well, wait for the test, or hang."""
    say("labelling", len(pages))
    if JOB["engine"] == "held" and not released.is_set():
        sys.stdin.readline()
        released.set()
    elif JOB["engine"] == "hung":
        threading.Event().wait()


def main() -> None:
    """Run the crawl."""
    if JOB["engine"] != "real":
        log = EngineLog(act=act)
        scrapy_dripper.extractor.load_engine = lambda config: FakeEngine(log)
    settings = {**QUIET, **JOB["settings"]}
    process = (CrawlerProcess if JOB["process"] == "CrawlerProcess" else AsyncCrawlerProcess)(settings)
    crawlers = [process.create_crawler(PageSpider) for _ in range(JOB.get("crawls", 1))]
    keep = lambda item: say("item", json.dumps(item))  # noqa: E731 (the signal holds it weakly)
    for crawler in crawlers:
        crawler.signals.connect(keep, signals.item_scraped)
        process.crawl(crawler)
    process.start()
    say("failed" if process.bootstrap_failed else "finished")


released = threading.Event()

if __name__ == "__main__":
    main()
