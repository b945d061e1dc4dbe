"""The spider middleware, which fills items with the main content of the response that they were scraped from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request
from scrapy.http import HtmlResponse, Response

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.fields import Filler
from scrapy_dripper.data import Extraction


class DripperSpiderMiddleware(Filler):
    """Fill ``main_html`` and ``markdown`` of the items that a callback yields.

    Requests are passed on at once. Items wait until their response has been extracted. A response is extracted once for
    all of its items, and not at all if no item has a field to fill. If a response yields several dicts, they are only
    filled if ``DRIPPER_ITEMS`` names dicts, because it is unknown which dict stands for the page. If a response cannot
    be extracted, the fields of its dict are None, because feeds take their columns from the first item.
    """

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield the requests of a callback as they come, and its items with their fields filled."""
        config = self._dripper.config_for(response)
        waiting: list[tuple[Any, list[str]]] = []
        undecided: list[tuple[Any, list[str]]] = []  # a dict, which is filled if no other comes
        one_dict = config.items is None and config.enabled
        dicts = 0
        error: Exception | None = None
        try:
            async for entry in result:
                names = [] if entry is None or isinstance(entry, Request) else self._open(entry, config)
                if names and one_dict and type(entry) is dict:
                    undecided.append((entry, names))
                    dicts += 1
                    for item in self._let_go(undecided, response) if dicts > 1 else ():
                        yield item
                    continue
                future = self._begin(response, names) if names or waiting or undecided else None
                if not names or future is None:
                    self._leave_empty(entry, names, config)
                    yield entry
                else:
                    waiting.append((entry, names))
                # The callback may run for much longer, even forever.
                if waiting and future is not None and future.done():
                    for item in await self._filled(response, config, waiting):
                        yield item
        except Exception as raised:  # Items that were yielded before it are not lost.
            error = raised
        waiting += undecided
        if waiting:
            for item in await self._filled(response, config, waiting):
                yield item
        if error is not None:
            raise error

    def _let_go(self, undecided: list[tuple[Any, list[str]]], response: Response) -> list[Any]:
        """Return the waiting dicts, which are not filled because there are several."""
        dicts = [item for item, _ in undecided]
        undecided.clear()
        if isinstance(response, HtmlResponse):
            self._stats.count("unfilled", len(dicts))
            self._stats.warn(
                "unfilled",
                "%s yielded several dicts, which are passed on without its main content. Otherwise, a page with fifty "
                "entries would be stored fifty times. To fill them anyway, set DRIPPER_ITEMS = ['dict'], or yield "
                "items of a class that has the fields. DRIPPER_ITEMS = [] fills no items and silences this warning.",
                response.url,
            )
        return dicts

    def _begin(self, response: Response, names: list[str]) -> asyncio.Future[Extraction] | None:
        """Start extracting the response while the callback still runs. Return None if it is not to be extracted."""
        try:
            return self._dripper.start(response, metadata="metadata" in names)
        except Exception:
            self._stats.bug("starting an extraction")
            return None

    async def _filled(self, response: Response, config: Config, waiting: list[tuple[Any, list[str]]]) -> list[Any]:
        """Return the waiting items, filled once the response has been extracted, and empty ``waiting``."""
        try:
            extraction = await self._dripper.extract(response)
        except Exception:
            self._stats.bug("an extraction")
            extraction = None
        items = [item for item, _ in waiting]
        for item, names in waiting:
            self._fill(item, names, config, extraction)
        waiting.clear()
        return items
