"""``scrapy parse URL``: Scrapy's own command, but with the fields of items filled, as in a crawl.

Scrapy's command shows the items of a callback before any spider middleware has processed them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from scrapy.commands.parse import Command as ScrapyParse
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred

from scrapy_dripper.spidermiddlewares import DripperSpiderMiddleware


class Command(ScrapyParse):
    """The command. If the add-on is not installed, or switched off, it is exactly Scrapy's."""

    def run_callback(self, response: Response, *args: Any, **kwargs: Any) -> Deferred[Any]:
        """Return what the callback yields for a response, with its items filled."""
        output = super().run_callback(response, *args, **kwargs)
        engine = getattr(self.pcrawler, "engine", None)
        middlewares = () if engine is None else engine.scraper.spidermw.middlewares
        ours = next((one for one in middlewares if isinstance(one, DripperSpiderMiddleware)), None)
        if ours is not None:
            output.addCallback(lambda entries: deferred_from_coro(_filled(ours, response, entries)))
        return output


async def _filled(middleware: DripperSpiderMiddleware, response: Response, entries: Iterable[Any]) -> list[Any]:
    return [entry async for entry in middleware.process_spider_output(response, _as_they_come(entries))]


async def _as_they_come(entries: Iterable[Any]) -> AsyncIterator[Any]:
    for entry in entries:
        yield entry
