"""The downloader middlewares: one holds responses back while the engine is busy, one starts extractions early."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.dripper import Dripper


class DripperBackpressureMiddleware:
    """Hold responses back while enough pages wait, and so, through ``CONCURRENT_REQUESTS``, further downloads.

    Enough is one batch for each worker, and one more batch. Without this limit, a crawl that is faster than its workers
    would have as many responses in callbacks as fit into 8 MB, which are hundreds if pages are small. Scrapy makes
    ``CONCURRENT_ITEMS`` tasks for each, and Python's garbage collector scans all of these tasks again and again. Raise
    :exc:`~scrapy.exceptions.NotConfigured` if ``DRIPPER_ENABLED`` is False, or ``CONCURRENT_REQUESTS`` is 0.
    """

    def __init__(self, crawler: Crawler) -> None:
        if not Config.from_settings(crawler.settings).enabled:
            raise NotConfigured("DRIPPER_ENABLED is False")
        if not crawler.settings.getint("CONCURRENT_REQUESTS"):
            # Downloads would go on, and responses held back do not count against SCRAPER_SLOT_MAX_ACTIVE_SIZE.
            raise NotConfigured("CONCURRENT_REQUESTS is 0, so responses that are held back would not pause downloads")
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DripperBackpressureMiddleware:
        """Return the middleware of this crawl. Raise :exc:`~scrapy_dripper.config.ConfigError` for a wrong setting."""
        return cls(crawler)

    async def process_response(self, request: Request, response: Response) -> Response:
        """Return the response when there is room for it."""
        dripper = Dripper.of(self._crawler)
        if dripper is not None and request.callback is not NO_CALLBACK:  # robots.txt and media do not go to the engine.
            try:
                await dripper.wait_for_capacity(response, request)
            except Exception:
                dripper.stats.bug("the backpressure middleware")
        return response


class DripperDownloaderMiddleware:
    """Start extracting responses as soon as they arrive, without waiting for the result.

    Every component that later asks for the same response gets that result. This is useful in crawls in which nearly
    every page ends in an item. In other crawls, it extracts pages that nobody asks for. Raise
    :exc:`~scrapy.exceptions.NotConfigured` if ``DRIPPER_ENABLED`` is False.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._dripper = Dripper.from_crawler(crawler)
        if not self._dripper.config.enabled:
            raise NotConfigured("DRIPPER_ENABLED is False")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DripperDownloaderMiddleware:
        """Return the middleware of this crawl. Raises what :meth:`Dripper.from_crawler` raises."""
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        """Return the response, and start its extraction if a callback will get it."""
        # Waiting for the result would hold a download slot. Requests for robots.txt and media have NO_CALLBACK.
        if 200 <= response.status < 300 and request.callback is not NO_CALLBACK:
            try:
                self._dripper.start(response, request)
            except Exception:
                self._dripper.stats.bug("the downloader middleware")
        return response
