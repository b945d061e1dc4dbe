"""Helpers for tests of spiders and engines: an engine without a model, pages from HTML, crawls without a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.base import EngineError, Labels, Limits
from scrapy_dripper.page import read
from scrapy_dripper.page.page import Page
from scrapy_dripper.workers.spawned import end_with_parent

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from scrapy import Spider
    from scrapy.http import HtmlResponse

SETTINGS: Mapping[str, Any] = {
    "ADDONS": {"scrapy_dripper.Addon": 500},
    "DOWNLOAD_DELAY": 0,
    "DRIPPER_BATCH_WAIT": 0.05,
    "DRIPPER_ENGINE": "scrapy_dripper.testing.FakeEngine",
    "DRIPPER_PROCESSES": 0,
    "REMOTE_CONTROL_ENABLED": False,
    "RETRY_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "TELNETCONSOLE_ENABLED": False,
}
"""The settings of :func:`crawl`, unless a test or the spider sets them."""

SpiderClass: TypeAlias = "type[Spider]"
Pages: TypeAlias = "Mapping[str, str | bytes | Path]"
"""HTML, or the file that holds it, by URL."""


class FakeEngine:
    """An engine without a model, which labels blocks by a function of their text. By default, everything is main.

    It can be passed to an :class:`~scrapy_dripper.Extractor`, or named in ``DRIPPER_ENGINE``. A crawl only passes its
    configuration. So to use a rule in a crawl, write a subclass that overrides :meth:`probability` or :meth:`answer`.
    """

    name = "fake"
    profile = "native"

    def __init__(
        self,
        config: Config | None = None,
        *,
        main: Callable[[str], float] | None = None,
        limits: Limits | None = None,
    ) -> None:
        """``main`` maps the text of a block to its probability of being main content, or to True or False."""
        self.config = config or Config()
        self.limits = limits or Limits()
        self.batches: list[int] = []
        """The number of pages in each call of :meth:`label`."""
        self.closed = False
        self._main = main

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the answer for each page."""
        self.batches.append(len(pages))
        return [self.answer(page) for page in pages]

    def answer(self, page: Page) -> Labels | EngineError:
        """Return the labels of a page. Blocks with a probability above one half are main."""
        probabilities = np.array([self.probability(text) for text in page.blocks.text], dtype=np.float32)
        return Labels(probabilities, probabilities > 0.5)

    def probability(self, text: str) -> float:
        """Return the probability that a block is main content, 0 to 1."""
        return 1.0 if self._main is None else float(self._main(text))

    def close(self) -> None:
        """Record that the engine was closed."""
        self.closed = True


def page(html: str | bytes, url: str = "", *, config: Config | None = None) -> Page:
    """Return the page of a document, parsed and cut into blocks, as an engine gets it.

    Raise :exc:`~scrapy_dripper.page.page.PageError` for a document that would go to the fallback.
    """
    return read(Document(html, url), config or Config())


def response(html: str | bytes | Path, url: str = "https://example.org/", **values: Any) -> HtmlResponse:
    """Return a response for callbacks. ``values`` are further arguments of Scrapy's ``HtmlResponse``."""
    from scrapy.http import HtmlResponse  # the other helpers do not need Scrapy

    body = html.read_bytes() if isinstance(html, Path) else html
    if isinstance(body, str):
        values.setdefault("encoding", "utf-8")
    return HtmlResponse(url, body=body, **values)


@dataclass(frozen=True, slots=True)
class Crawled:
    """The items and stats of a crawl."""

    items: list[Any]
    stats: dict[str, Any]


def crawl(
    spider: SpiderClass, pages: Pages, settings: Mapping[str, Any] | None = None, *, timeout: float = 60.0
) -> Crawled:
    """Run a spider with the add-on, and return its items and stats. ``pages`` has the responses, by URL.

    The network is not used: requests for other URLs get an empty response with the status 404. ``settings`` are added
    to :data:`SETTINGS`. The crawl runs in its own process, because a reactor cannot be started twice. So the spider has
    to be importable, and its items have to be picklable. Raise the error that stops the crawl at its start, such as
    :exc:`~scrapy_dripper.config.ConfigError`, and TimeoutError if the crawl takes longer than ``timeout`` seconds.
    """
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_crawl, args=(sender, spider, dict(pages), dict(settings or {})))
    process.start()
    sender.close()
    try:
        if not receiver.poll(timeout):
            raise TimeoutError(f"the crawl of {spider.__name__} takes longer than {timeout:g} seconds")
        found: Crawled | BaseException = receiver.recv()
    except EOFError:
        raise RuntimeError(f"the process that runs {spider.__name__} has ended without an answer") from None
    finally:
        process.kill()
        process.join()
    if isinstance(found, BaseException):
        raise found
    return found


def _send_crawl(sender: Connection, spider: SpiderClass, pages: Pages, settings: dict[str, Any]) -> None:
    """Run a crawl in this process, and send its result, or the exception that stopped it."""
    end_with_parent()
    try:
        found: Crawled | BaseException = _crawl(spider, pages, settings)
        sender.send(found)
    except Exception as error:
        sender.send(error)


def _crawl(spider: SpiderClass, pages: Pages, settings: dict[str, Any]) -> Crawled:
    from scrapy import Request, signals
    from scrapy.core.downloader.handlers.base import BaseDownloadHandler
    from scrapy.crawler import AsyncCrawlerProcess
    from scrapy.http import Response

    class LocalPages(BaseDownloadHandler):
        async def download_request(self, request: Request) -> Response:
            found = pages.get(request.url)
            return Response(request.url, status=404) if found is None else response(found, request.url)

    handlers = dict.fromkeys(("http", "https"), LocalPages)
    process = AsyncCrawlerProcess({**SETTINGS, **settings, "DOWNLOAD_HANDLERS": handlers})
    crawler = process.create_crawler(spider)
    items: list[Any] = []

    def keep(item: Any) -> None:
        items.append(item)

    crawler.signals.connect(keep, signals.item_scraped)
    task = process.crawl(crawler)
    process.start()
    task.result()
    assert crawler.stats is not None
    return Crawled(items, dict(crawler.stats.get_stats()))
