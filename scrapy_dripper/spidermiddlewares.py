"""The main door: items get the main content of the response that they were scraped from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.dripper import Dripper
from scrapy_dripper.crawl.fields import Fields
from scrapy_dripper.extraction import Extraction


class DripperSpiderMiddleware:
    """Fill ``main_html`` and ``markdown`` of the items that a callback yields.

    Requests go on at once. Items wait for their response's extraction, of which there is one for all of them, and none
    where no item has a field to fill. Raise :exc:`~scrapy.exceptions.NotConfigured` if ``DRIPPER_ENABLED`` is False.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._dripper = Dripper.from_crawler(crawler)
        if not self._dripper.config.enabled:
            raise NotConfigured("DRIPPER_ENABLED is False")
        self._fields = Fields(self._dripper.stats)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DripperSpiderMiddleware:
        """Return the middleware of this crawl. Raises what :meth:`Dripper.from_crawler` raises."""
        return cls(crawler)

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield the requests of a callback as they come, and its items with their fields filled."""
        config = self._dripper.config_for(response)
        waiting: list[tuple[Any, list[str]]] = []
        error: Exception | None = None
        try:
            async for entry in result:
                is_item = entry is not None and not isinstance(entry, Request)
                options = self._fields.open(entry, config) if is_item else []
                future = self._begin(response) if options else None
                if future is None:
                    yield entry
                    continue
                waiting.append((entry, options))
                if future.done():  # A callback may go on for long, even for ever.
                    for item in await self._filled(response, config, waiting):
                        yield item
        except Exception as raised:  # The items before it were yielded in good order: they are not lost with it.
            error = raised
        if waiting:
            for item in await self._filled(response, config, waiting):
                yield item
        if error is not None:
            raise error

    def _begin(self, response: Response) -> asyncio.Future[Extraction] | None:
        """Begin to extract the response while the callback still runs; return None if it is not to be extracted."""
        try:
            return self._dripper.start(response)
        except Exception:
            self._dripper.stats.bug("starting an extraction")
            return None

    async def _filled(self, response: Response, config: Config, waiting: list[tuple[Any, list[str]]]) -> list[Any]:
        """Return the items that wait, filled once the response is extracted; none waits any more."""
        try:
            extraction = await self._dripper.extract(response)
        except Exception:
            self._dripper.stats.bug("an extraction")
            extraction = None
        items = [item for item, _ in waiting]
        if extraction is not None:
            for item, options in waiting:
                self._fields.fill(item, options, config, extraction)
        waiting.clear()
        return items
