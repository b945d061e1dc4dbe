"""Run a crawl again from its WARC files, without downloading anything (``DRIPPER_REPLAY``)."""

from __future__ import annotations

import asyncio
import glob
import logging
from collections.abc import AsyncIterator, Iterator
from threading import Lock
from typing import Any

import scrapy
from scrapy import Request, signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Headers, Response, TextResponse
from scrapy.responsetypes import responsetypes
from scrapy.settings import BaseSettings

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.corpus.archive import ENCODING, FINGERPRINT, check_reactor
from scrapy_dripper.corpus.records import HTML, UNREADABLE, Recorded, Skip, by_record, inflated, responses

logger = logging.getLogger(__name__)

MOST_BYTES = 1 << 30
"""Size limit of a record in bytes: Scrapy's default download limit (``DOWNLOAD_MAXSIZE``)."""
SKIPPED = "dripper/replay/skipped/"
"""Prefix of the stats of records that are not replayed, by reason."""
META_KEY = "dripper_record"
"""Key of a request's meta with the file and the offset of the record that answers it."""


def archives(settings: BaseSettings) -> list[str]:
    """Return the files of ``DRIPPER_REPLAY``. Raise :exc:`~scrapy_dripper.config.ConfigError` if there are none."""
    pattern = Config.from_settings(settings).replay
    found = sorted(glob.glob(pattern, recursive=True)) if pattern else []
    if not found:
        raise ConfigError(f"DRIPPER_REPLAY must be the path of an existing WARC file, or a glob (got {pattern!r})")
    return found


def recorded(path: str, crawler: Crawler) -> Iterator[Recorded]:
    """Yield the responses of an archive. Log and count records that cannot be replayed."""

    def skip(reason: Skip) -> None:
        logger.warning("%(path)s has a record that cannot be replayed: %(reason)s", {"path": path, "reason": reason})
        assert crawler.stats is not None
        crawler.stats.inc_value(f"{SKIPPED}{reason}")

    with open(path, "rb") as stream:
        yield from responses(stream, MOST_BYTES, skip, path)


class ReplayHandler(BaseDownloadHandler):
    """Answer requests with the responses in an archive.

    Responses are found by the request's fingerprint or, in archives of other tools, by the URL. If a request is made
    several times, it gets its responses in order, and then the last one again. A request without a response is ignored
    and counted. Raise :exc:`~scrapy_dripper.config.ConfigError` if there is no archive.
    """

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        check_reactor(crawler, "DRIPPER_REPLAY")
        self._paths = archives(crawler.settings)
        self._places: dict[str, list[tuple[str, int]]] | None = None
        self._lock = Lock()
        crawler.signals.connect(self._report, signals.spider_closed)

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
        return await asyncio.to_thread(self._find, request)

    def _find(self, request: Request) -> Response:
        place = request.meta.get(META_KEY) or self._next_place(request)
        if place is None:
            raise IgnoreRequest(f"{request.url} is not in the archive")
        path, offset = place
        skipped: list[Skip] = []
        with open(path, "rb") as file:
            stream = by_record(file)
            stream.seek(offset)
            found = next(responses(stream, MOST_BYTES, skipped.append, path), None)
        if found is None:
            raise IgnoreRequest(f"{path} has no response at byte {offset:,}")
        return _response(found)

    def _next_place(self, request: Request) -> tuple[str, int] | None:
        with self._lock:  # the first requests come at the same time, each in a thread
            if self._places is None:
                self._places = self._index()
            places = self._places.get(self._fingerprint(request), [])
            if len(places) > 1:
                return places.pop(0)
            return places[0] if places else None

    def _index(self) -> dict[str, list[tuple[str, int]]]:
        """Return the places of all responses by the fingerprint of their request."""
        places: dict[str, list[tuple[str, int]]] = {}
        for path in self._paths:
            for one in recorded(path, self.crawler):
                fingerprint = _field(one, FINGERPRINT) or self._fingerprint(Request(one.url))
                places.setdefault(fingerprint, []).append((path, one.offset))
        return places

    def _fingerprint(self, request: Request) -> str:
        assert self.crawler.request_fingerprinter is not None
        return self.crawler.request_fingerprinter.fingerprint(request).hex()


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
        """Yield a request for each page, in the order of the archives."""
        for path in archives(self.settings):
            for one in recorded(path, self.crawler):
                if 200 <= one.status < 300 and one.content_type in (*HTML, ""):
                    place = (path, one.offset)
                    yield Request(one.url, meta={META_KEY: place}, dont_filter=True)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:  # noqa: ARG002
        """Yield the item of a page."""
        yield {"url": response.url}


def _field(one: Recorded, name: str) -> str | None:
    return next((value for key, value in one.extension if key.lower() == name.lower()), None)


def _response(one: Recorded) -> Response:
    """Return a response as the downloader would."""
    body = inflated(one.body, one.header(b"content-encoding"), MOST_BYTES)
    is_plain = isinstance(body, bytes)  # whether or not it was compressed
    headers = Headers()
    for name, value in one.headers:
        if not (is_plain and name.lower() == b"content-encoding"):
            headers.appendlist(name, value)
    body = body if isinstance(body, bytes) else one.body  # Scrapy knows more compressions
    kind = responsetypes.from_args(headers=headers, url=one.url, body=body)
    encoding = _field(one, ENCODING)
    response = kind(one.url, one.status, headers, body)
    return response.replace(encoding=encoding) if encoding and isinstance(response, TextResponse) else response
