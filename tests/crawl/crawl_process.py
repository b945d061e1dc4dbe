"""A crawl in its own process, which says on standard output what happens, one line each.

The engine ``held`` answers nothing before it gets a line on standard input; ``hung`` never answers.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess

import scrapy_dripper.extractor
from tests.crawl.crawling import QUIET, EngineLog, FakeEngine

ENDS_SOON = 10.0
"""Seconds in which the threads and processes of a crawl end after it."""


def say(*words: object) -> None:
    """Write a line for the test in one call, because two threads write."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class PageSpider(Spider):
    """Yields an item for each page."""

    name = "pages"
    urls: list[str]

    async def start(self) -> Any:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url}
        say("parsed", response.url)

    def closed(self, reason: str) -> None:
        say("closed", reason)


def crawl(
    kind: str, settings: dict[str, Any], urls: list[str], engine: str = "good", crawls: int = 1, check: bool = False
) -> None:
    """Run a crawl, or some at once. ``check`` lists what is left of it: threads, child processes and files."""
    released = threading.Event()

    def act(_: FakeEngine, pages: Any) -> None:
        say("labelling", len(pages))
        if engine == "held" and not released.is_set():
            sys.stdin.readline()
            released.set()
        elif engine == "hung":
            threading.Event().wait()

    if engine != "real":
        log = EngineLog(act=act)
        scrapy_dripper.extractor.load_engine = lambda config: FakeEngine(log)
    before = _files()
    process = (CrawlerProcess if kind == "CrawlerProcess" else AsyncCrawlerProcess)({**QUIET, **settings})
    crawlers = [process.create_crawler(PageSpider) for _ in range(crawls)]
    keep = lambda item: say("item", json.dumps(item))  # noqa: E731 (the signal holds it weakly)
    for crawler in crawlers:
        crawler.signals.connect(keep, signals.item_scraped)
        process.crawl(crawler, urls=urls)
    process.start()
    if check:
        deadline = time.monotonic() + ENDS_SOON
        while (left := _left(before)) and time.monotonic() < deadline:
            time.sleep(0.02)
        say("left", *left)
    say("failed" if process.bootstrap_failed else "finished")


def _files() -> set[str]:
    """Return the open files of this process."""
    links = Path("/proc/self/fd").glob("*")
    return {os.readlink(link) for link in links if link.is_symlink()}  # that of the folder is gone by then


def _left(before: set[str]) -> list[str]:
    """Return what is left of a crawl, without the descriptors of the event loop, which live as long as the process."""
    threads = [f"thread {thread.name}" for thread in threading.enumerate() if thread is not threading.main_thread()]
    tasks = Path("/proc/self/task").glob("*/children")
    children = [f"process {pid}" for path in tasks for pid in path.read_text(encoding="ascii").split()]
    files = [f"file {name}" for name in _files() - before if not name.startswith(("anon_inode", "socket", "pipe"))]
    return [*threads, *children, *files]
