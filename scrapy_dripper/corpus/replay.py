"""Run a crawl again from its WARC files, without downloading anything (``DRIPPER_REPLAY``)."""

from __future__ import annotations

import asyncio
import glob
import logging
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import scrapy
from scrapy import Request, signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse
from scrapy.responsetypes import responsetypes
from scrapy.settings import BaseSettings

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.corpus.archive import ENCODING, FINGERPRINT, check_reactor
from scrapy_dripper.corpus.records import HTML, UNREADABLE, Recorded, Skip, inflated, responses

logger = logging.getLogger(__name__)

MOST_BYTES = 1 << 30
"""Size limit of a record in bytes: Scrapy's default download limit (``DOWNLOAD_MAXSIZE``)."""
SKIPPED = "dripper/replay/skipped/"
"""Prefix of the stats of records that are not replayed, by reason."""
META_KEY = "dripper_record"
"""Key of a request's meta with the record that answers it."""

Places = dict[str, list[tuple[str, int, str]]]
"""The files, offsets and record ids of the responses to a request, by its fingerprint."""


def archives(settings: BaseSettings) -> list[str]:
    """Return the files of ``DRIPPER_REPLAY``. Raise :exc:`~scrapy_dripper.config.ConfigError` if there are none."""
    pattern = Config.from_settings(settings).replay
    found = [path for path in sorted(glob.glob(pattern, recursive=True)) if os.path.isfile(path)] if pattern else []
    if not found:
        raise ConfigError(f"DRIPPER_REPLAY must be the path of an existing WARC file, or a glob (got {pattern!r})")
    return found


def recorded(path: str, skip: Callable[[Skip], None]) -> Iterator[Recorded]:
    """Yield the responses of an archive. A file that cannot be read is like a broken archive."""
    try:
        with open(path, "rb") as stream:
            yield from responses(stream, MOST_BYTES, skip, path)
    except OSError as error:
        logger.error("%s cannot be read: %s", path, error)
        skip(Skip.BROKEN)


def _count(crawler: Crawler, name: str, reason: Skip) -> None:
    """Count a record that cannot be replayed, and log it if it is damaged."""
    assert crawler.stats is not None
    crawler.stats.inc_value(f"{SKIPPED}{reason}")
    if reason in UNREADABLE:
        logger.warning("%s has a record that cannot be replayed: %s", name, reason)


class ReplayHandler(BaseDownloadHandler):
    """Answer requests with the responses in an archive.

    Responses are found by the request's fingerprint or, in archives of other tools, by the URL. If a request is made
    several times, it gets its responses in order, and then the last one again. A request without a response is ignored
    and counted, and so is one whose response is in a file that is compressed as a whole: such a file has no offsets.
    Raise :exc:`~scrapy_dripper.config.ConfigError` if there is no archive.
    """

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        check_reactor(crawler, "DRIPPER_REPLAY")
        self._paths = archives(crawler.settings)
        self._places: asyncio.Future[Places] | None = None
        self._without_places: set[str] = set()
        crawler.signals.connect(self._report, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ReplayHandler:
        """Return the handler of this crawl, which is the same for all schemes."""
        handler = _handlers.get(id(crawler))
        if handler is None:
            handler = _handlers[id(crawler)] = cls(crawler)
        return handler

    def _report(self) -> None:
        """Say at the end how many records could not be read."""
        assert self.crawler.stats is not None
        found = self.crawler.stats.get_stats()
        lost = {reason.value: found.get(f"{SKIPPED}{reason}", 0) for reason in UNREADABLE}
        if any(lost.values()):
            listed = ", ".join(f"{name} {count:,}" for name, count in sorted(lost.items()) if count)
            logger.error("records of the archive that cannot be read: %(listed)s", {"listed": listed})

    async def download_request(self, request: Request) -> Response:
        """Return the response. Raise :exc:`~scrapy.exceptions.IgnoreRequest` if the archive has none."""
        if META_KEY in request.meta:
            return self._response(request.meta[META_KEY])
        if self._places is None:
            self._places = asyncio.ensure_future(asyncio.to_thread(self._index))
        places = (await asyncio.shield(self._places)).get(self._fingerprint(request))
        if not places:
            raise IgnoreRequest(f"{request.url} is not in the archive")
        place = places.pop(0) if len(places) > 1 else places[0]
        return await asyncio.to_thread(self._read, *place)

    def _index(self) -> Places:
        places: Places = defaultdict(list)
        is_counted = isinstance(self.crawler.spider, ReplaySpider)
        for path in self._paths:
            for one in recorded(path, (lambda _: None) if is_counted else partial(_count, self.crawler, path)):
                fingerprint = one.extension.get(FINGERPRINT) or self._fingerprint(Request(one.url))
                places[fingerprint].append((path, one.offset, one.id))
        return places

    def _read(self, path: str, offset: int, id_: str) -> Response:
        with open(path, "rb") as stream:
            stream.seek(offset)
            found = next(responses(stream, MOST_BYTES, lambda _: None, path), None)
        if found is None or found.id != id_:
            problem = "%s is not compressed record by record, so its records cannot be found: use `fastwarc recompress`"
            if path not in self._without_places:
                self._without_places.add(path)
                logger.error(problem, path)
            raise IgnoreRequest(problem % path)
        return self._response(found)

    def _response(self, one: Recorded) -> Response:
        """Return a response as the downloader would. Scrapy decompresses those that it has downloaded itself."""
        headers, body = one.headers.copy(), one.body
        if FINGERPRINT not in one.extension:  # other tools may store a body decompressed, and keep its header
            headers.pop(b"Content-Encoding", None)
            data = inflated(one, MOST_BYTES)
            if isinstance(data, bytes):
                body = data
            else:
                _count(self.crawler, one.url, data)
        kind = responsetypes.from_args(headers=headers, url=one.url, body=body)
        encoding = one.extension.get(ENCODING)
        response = kind(one.url, one.status, headers, body)
        return response.replace(encoding=encoding) if encoding and isinstance(response, TextResponse) else response

    def _fingerprint(self, request: Request) -> str:
        assert self.crawler.request_fingerprinter is not None
        return self.crawler.request_fingerprinter.fingerprint(request).hex()


_handlers: WeakValueDictionary[int, ReplayHandler] = WeakValueDictionary()


class ReplaySpider(scrapy.Spider):
    """Yield an item with the ``url`` of each HTML page of ``DRIPPER_REPLAY``; the add-on fills in its content.

    Your own spiders can be replayed without changes: with ``DRIPPER_REPLAY``, their requests are answered from the
    archive.
    """

    name = "replay"
    custom_settings = {  # noqa: RUF012 (Scrapy's)
        "DOWNLOAD_DELAY": 0,
        "AUTOTHROTTLE_ENABLED": False,
        "HTTPCACHE_ENABLED": False,
        "METAREFRESH_ENABLED": False,
        "REDIRECT_ENABLED": False,
        "RETRY_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
    }

    async def start(self) -> AsyncIterator[Any]:
        """Yield a request for each page, in the order of the archives, when the crawl has none left."""
        for path in archives(self.settings):
            for one in recorded(path, partial(_count, self.crawler, path)):
                if 200 <= one.status < 300 and one.content_type in (*HTML, ""):
                    yield Request(one.url, meta={META_KEY: one}, dont_filter=True)
                    await self.crawler.signals.wait_for(signals.scheduler_empty)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:  # noqa: ARG002
        """Yield the item of a page."""
        yield {"url": response.url}
