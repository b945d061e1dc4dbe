"""Archive a crawl (``DRIPPER_WARC``), and run it again from its archive, without downloading (``DRIPPER_REPLAY``)."""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import scrapy
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.asyncio import is_asyncio_available

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.corpus.records import (
    FINGERPRINT,
    UNREADABLE,
    Recorded,
    pages,
    recorded_at,
    response_record,
    responses,
)
from scrapy_dripper.paths import matches

logger = logging.getLogger(__name__)

MAX_BYTES = 1 << 30
"""Size limit of a record in bytes: Scrapy's default download limit (``DOWNLOAD_MAXSIZE``)."""
SKIPPED = "dripper/replay/skipped/"
"""Prefix of the stats of records that are not replayed, by reason."""
META_KEY = "dripper_response"
"""Key of a request's meta with the response that answers it."""


class WarcMiddleware:
    """Write all responses of a crawl as they were received, before any downloader middleware decodes them.

    A response waits until a thread has written it. An existing file is never overwritten: the next free name is used,
    such as ``crawl-2.warc.gz``. If the disk is full, an error is logged, and each missing response is counted, but the
    crawl goes on. Raise :exc:`~scrapy_dripper.config.ConfigError` if no file can be created.
    """

    def __init__(self, crawler: Crawler) -> None:
        path = Config.from_settings(crawler.settings).warc
        if path is None:
            raise NotConfigured("DRIPPER_WARC is None")
        if not is_asyncio_available():
            raise ConfigError(
                "TWISTED_REACTOR must be 'twisted.internet.asyncioreactor.AsyncioSelectorReactor', Scrapy's default, "
                f"for DRIPPER_WARC (got {crawler.settings['TWISTED_REACTOR']!r})"
            )
        if os.path.isdir(path):
            raise ConfigError(f"DRIPPER_WARC must be the path of a file (got the folder {path!r})")
        self._crawler = crawler
        self._thread = ThreadPoolExecutor(1, "scrapy-dripper-warc")
        self._is_broken = False
        try:
            self._file = _new_file(Path(path))
        except OSError as error:
            raise ConfigError(f"DRIPPER_WARC: {path} cannot be created: {error.strerror or error}") from None
        if crawler.stats is not None:
            crawler.stats.set_value("dripper/warc/file", self._file.name)
        logger.info("The responses of this crawl are written to %(path)s", {"path": self._file.name})
        crawler.signals.connect(self._close, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> WarcMiddleware:
        """Return the middleware of this crawl."""
        return cls(crawler)

    async def process_response(self, request: Request, response: Response) -> Response:
        """Return the response after it was written."""
        if request.url.startswith(("http://", "https://")):
            is_written = await asyncio.get_running_loop().run_in_executor(self._thread, self._add, request, response)
            if self._crawler.stats is not None:
                self._crawler.stats.inc_value("dripper/warc/records" if is_written else "dripper/warc/errors")
        return response

    def _add(self, request: Request, response: Response) -> bool:
        """Write a response. Return False if that fails."""
        if self._is_broken:
            return False
        try:
            self._write(response_record(response, {FINGERPRINT: _fingerprint(self._crawler, request)}))
        except Exception as error:
            # After a failed write, the file may end in a partial record, after which no other record can be read.
            self._is_broken = isinstance(error, OSError)
            more = ", nor any later response" if self._is_broken else ""
            logger.error("%s cannot be written to %s%s: %s", response.url, self._file.name, more, error)
            return False
        return True

    def _write(self, record: bytes) -> None:
        self._file.write(gzip.compress(record, 6, mtime=0) if self._file.name.endswith(".gz") else record)
        self._file.flush()  # A crawl that is killed only loses the responses that are being written.

    def _close(self) -> None:
        self._thread.shutdown()
        try:
            self._file.close()
        except OSError as error:
            logger.error("%s is not complete: %s", self._file.name, error)


def _new_file(path: Path) -> BinaryIO:
    """Create a file with the first free name: ``crawl.warc.gz``, ``crawl-2.warc.gz``, ..."""
    stem, dot, extensions = path.name.partition(".")
    path.parent.mkdir(parents=True, exist_ok=True)
    for number in count(2):
        with suppress(FileExistsError):
            return open(path, "xb")
        path = path.with_name(f"{stem}-{number}{dot}{extensions}")
    raise AssertionError("numbers never end")


def archives(settings: BaseSettings) -> list[str]:
    """Return the files of ``DRIPPER_REPLAY``. Raise :exc:`~scrapy_dripper.config.ConfigError` if there are none."""
    pattern = Config.from_settings(settings).replay
    found = [path for path in matches(pattern) if os.path.isfile(path)] if pattern else []
    if not found:
        raise ConfigError(f"DRIPPER_REPLAY must be the path of an existing WARC file, or a glob (got {pattern!r})")
    return found


class ReplayMiddleware:
    """Answer requests with the responses in an archive.

    Responses are found by the request's fingerprint or, in archives of other tools, by the URL. If a request is made
    several times, it gets its responses in order, and then the last one again. A request without a response is ignored
    and counted. Raise :exc:`~scrapy_dripper.config.ConfigError` if there is no archive.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._paths = archives(crawler.settings)
        crawler.signals.connect(self._spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ReplayMiddleware:
        """Return the middleware of this crawl."""
        return cls(crawler)

    def _spider_closed(self) -> None:
        """Say at the end how many records could not be read."""
        assert self._crawler.stats is not None
        numbers = {reason: self._crawler.stats.get_value(f"{SKIPPED}{reason}") for reason in UNREADABLE}
        listed = ", ".join(f"{reason} {number:,}" for reason, number in numbers.items() if number)
        if listed:
            logger.error("records of the archive that cannot be read: %(listed)s", {"listed": listed})

    def process_request(self, request: Request) -> Response | None:
        """Return the response. Raise :exc:`~scrapy.exceptions.IgnoreRequest` if the archive has none."""
        if not request.url.startswith(("http://", "https://")):
            return None
        if META_KEY in request.meta:
            response: Response = request.meta[META_KEY]
            return response
        places = self._places.get(_fingerprint(self._crawler, request))
        if not places:
            raise IgnoreRequest(f"{request.url} is not in the archive")
        path, offset, wanted = places.pop(0) if len(places) > 1 else places[0]
        found = recorded_at(path, offset, wanted, MAX_BYTES, _counter(self._crawler))
        if found is None:
            raise IgnoreRequest(f"{request.url} is no longer in {path}, or cannot be read")
        return found

    @cached_property
    def _places(self) -> dict[str, list[tuple[str, int, tuple[str | None, str]]]]:
        """The archive, the offset in it, and the id and URL of each response to a request, by its fingerprint."""
        places = defaultdict(list)
        # ReplaySpider has already counted the others.
        skip = (lambda _: None) if isinstance(self._crawler.spider, ReplaySpider) else _counter(self._crawler)
        for path in self._paths:
            offset = 0
            for record, response in _recorded(responses, path, skip):
                fingerprint = record.headers.get(FINGERPRINT) or _fingerprint(self._crawler, Request(response.url))
                offset = record.stream_pos
                places[fingerprint].append((path, offset, (record.headers.get("WARC-Record-ID"), response.url)))
            if offset >= os.path.getsize(path):
                logger.warning(
                    "%s is compressed as a whole, so it is read again for each request: use `fastwarc recompress`", path
                )
        return places


def _fingerprint(crawler: Crawler, request: Request) -> str:
    assert crawler.request_fingerprinter is not None
    return crawler.request_fingerprinter.fingerprint(request).hex()


def _recorded(read: Callable[..., Iterator[Recorded]], path: str, skip: Callable[[str], None]) -> Iterator[Recorded]:
    """Yield what a function reads from an archive. A file that cannot be read is like a broken archive."""
    try:
        with open(path, "rb") as stream:
            yield from read(stream, MAX_BYTES, skip, path)
    except OSError as error:
        logger.error("%s cannot be read: %s", path, error)
        skip("broken_archive")


def _counter(crawler: Crawler) -> Callable[[str], None]:
    """Return the function that counts a record that cannot be replayed, by the reason."""
    assert crawler.stats is not None
    stats = crawler.stats
    return lambda reason: stats.inc_value(f"{SKIPPED}{reason}")


class ReplaySpider(scrapy.Spider):
    """Yield an item with the ``url`` of each HTML page of ``DRIPPER_REPLAY``; the add-on fills in its content.

    Your own spiders can be replayed without changes: with ``DRIPPER_REPLAY``, their requests are answered from the
    archive.
    """

    name = "replay"
    custom_settings = {  # noqa: RUF012 (Scrapy's)
        "HTTPCACHE_ENABLED": False,
        "METAREFRESH_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "URLLENGTH_LIMIT": 0,
    }

    async def start(self) -> AsyncIterator[Any]:
        """Yield a request for each page, in the order of the archives, when the crawl has none left."""
        skip = _counter(self.crawler)
        for path in archives(self.settings):
            for _, page in _recorded(pages, path, skip):
                yield Request(page.url, meta={META_KEY: page}, dont_filter=True)
                await self.crawler.signals.wait_for(signals.scheduler_empty)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:  # noqa: ARG002
        """Yield the item of a page."""
        yield {"url": response.url}
