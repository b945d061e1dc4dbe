"""Write the responses of a crawl to a WARC file (``DRIPPER_WARC``, ISO 28500, WARC 1.1)."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from fastwarc.warc import WarcRecord, WarcRecordType
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.utils.asyncio import is_asyncio_available

from scrapy_dripper.config import Config, ConfigError

logger = logging.getLogger(__name__)

FINGERPRINT = "Scrapy-Fingerprint"
"""The fingerprint of the request, with which a replay finds the response."""
ENCODING = "Scrapy-Encoding"
"""The explicit encoding of a response, if it has one. It takes precedence over the Content-Type."""
MOST_WAITING = 64 << 20
"""Bytes of bodies that may be queued for writing before backpressure sets in."""
LEVEL = 6


class WarcMiddleware:
    """Write all responses of a crawl as they were received, before any downloader middleware decodes them.

    Records are created, compressed and written in a thread. An existing file is never overwritten: the next free name
    is used, such as ``crawl-2.warc.gz``. If the disk is full, an error is logged, and each missing response is counted,
    but the crawl goes on. Raise :exc:`~scrapy_dripper.config.ConfigError` if no file can be created.
    """

    def __init__(self, crawler: Crawler) -> None:
        path = Config.from_settings(crawler.settings).warc
        if path is None:
            raise NotConfigured("DRIPPER_WARC is None")
        check_reactor(crawler, "DRIPPER_WARC")
        self._crawler = crawler
        self._file, self._path = _new_file(Path(path))
        self._compressed = self._path.suffix == ".gz"
        self._thread = ThreadPoolExecutor(1, "scrapy-dripper-warc")
        self._waiting = 0
        self._broken = False
        self._write(_information())
        logger.info("The responses of this crawl are written to %(path)s", {"path": self._path})
        crawler.signals.connect(self._spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> WarcMiddleware:
        """Return the middleware of this crawl."""
        return cls(crawler)

    async def process_response(self, request: Request, response: Response) -> Response:
        """Return the response, and wait if too much is queued for writing."""
        if request.url.startswith(("http://", "https://")):
            assert self._crawler.request_fingerprinter is not None
            fingerprint = self._crawler.request_fingerprinter.fingerprint(request)
            written = asyncio.get_running_loop().run_in_executor(self._thread, self._add, response, fingerprint)
            self._waiting += len(response.body)
            written.add_done_callback(lambda future: self._done(len(response.body), future.result()))
            if self._waiting > MOST_WAITING:
                await asyncio.wait([written])
        return response

    def _done(self, size: int, written: bool) -> None:
        self._waiting -= size
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value("dripper/warc/records" if written else "dripper/warc/errors")

    def _add(self, response: Response, fingerprint: bytes) -> bool:
        """Write a response. Runs in the thread. Return False if that fails."""
        if self._broken:
            return False
        try:
            self._write(response_record(response, {FINGERPRINT: fingerprint.hex()}))
        except Exception as error:
            # The file may end in a partial record, after which no other record can be read.
            self._broken = isinstance(error, OSError)
            logger.error(
                "%(url)s cannot be written to %(path)s%(end)s: %(error)s",
                {
                    "url": response.url,
                    "path": self._path,
                    "end": ", nor any later response" if self._broken else "",
                    "error": error,
                },
            )
            return False
        return True

    def _write(self, record: bytes) -> None:
        self._file.write(gzip.compress(record, LEVEL, mtime=0) if self._compressed else record)
        self._file.flush()  # A crawl that is killed only loses the queued responses.

    async def _spider_closed(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        self._thread.shutdown(wait=True)
        try:
            self._file.close()
        except OSError as error:
            logger.error("%(path)s is not complete: %(error)s", {"path": self._path, "error": error})


def check_reactor(crawler: Crawler, name: str) -> None:
    """Raise :exc:`~scrapy_dripper.config.ConfigError` if a crawl does not use the asyncio reactor."""
    if not is_asyncio_available():
        raise ConfigError(
            "TWISTED_REACTOR must be 'twisted.internet.asyncioreactor.AsyncioSelectorReactor', Scrapy's default, "
            f"for {name} (got {crawler.settings['TWISTED_REACTOR']!r})"
        )


def response_record(response: Response, fields: Mapping[str, str]) -> bytes:
    """Return a response as an uncompressed record with additional header ``fields``."""
    record = _record(WarcRecordType.response)
    record.headers["WARC-Target-URI"] = response.url
    if response.ip_address is not None:
        record.headers["WARC-IP-Address"] = str(response.ip_address)
    if "dataloss" in response.flags or "partial" in response.flags:
        record.headers["WARC-Truncated"] = "disconnect"
    encoding = getattr(response, "_encoding", None)
    for name, value in {**fields, **({ENCODING: encoding} if encoding else {})}.items():
        record.headers[name] = value
    record.is_http = True
    record.set_bytes_content(_head(response) + response.body)
    return _written(record, hashlib.sha1(response.body, usedforsecurity=False).digest())


def _head(response: Response) -> bytes:
    """Return the status line and the header as received, except that the downloader has joined the chunks."""
    try:
        phrase = HTTPStatus(response.status).phrase
    except ValueError:
        phrase = ""
    lines = [f"HTTP/1.1 {response.status} {phrase}".encode("ascii")]
    for name, values in response.headers.items():
        if name.lower() != b"transfer-encoding":
            lines += [_line(name) + b": " + _line(value) for value in values]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _line(value: bytes) -> bytes:
    return value.replace(b"\r", b" ").replace(b"\n", b" ")


def _information() -> bytes:
    record = _record(WarcRecordType.warcinfo)
    record.headers["Content-Type"] = "application/warc-fields"
    software = f"scrapy-dripper/{version('scrapy-dripper')} Scrapy/{version('scrapy')}"
    record.set_bytes_content(f"software: {software}\r\nformat: WARC File Format 1.1\r\n".encode())
    return _written(record)


def _record(kind: WarcRecordType) -> Any:
    record = WarcRecord()
    record.init_headers(record_type=kind)
    return record


def _written(record: WarcRecord, payload_digest: bytes | None = None) -> bytes:
    stream = io.BytesIO()
    record.write(stream, checksum_data=True, payload_digest=payload_digest)
    return stream.getvalue()


def _new_file(path: Path) -> tuple[BinaryIO, Path]:
    """Create a file with the first free name: ``crawl.warc.gz``, ``crawl-2.warc.gz``, ..."""
    stem, dot, extensions = path.name.partition(".")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for number in count(2):
            with suppress(FileExistsError):
                return open(path, "xb"), path
            path = path.with_name(f"{stem}-{number}{dot}{extensions}")
    except OSError as error:
        raise ConfigError(f"DRIPPER_WARC: {path} cannot be created: {error.strerror or error}") from None
    raise AssertionError("numbers never end")
