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
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import BinaryIO

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
        check_reactor(crawler, "DRIPPER_WARC")
        self._crawler = crawler
        self._thread = ThreadPoolExecutor(1, "scrapy-dripper-warc")
        self._is_broken = False
        try:
            self._file = _new_file(Path(path))
            self._write(_information())
        except OSError as error:
            raise ConfigError(f"DRIPPER_WARC: {path} cannot be created: {error.strerror or error}") from None
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
            assert self._crawler.request_fingerprinter is not None
            fingerprint = self._crawler.request_fingerprinter.fingerprint(request).hex()
            self._write(response_record(response, {FINGERPRINT: fingerprint}))
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


def check_reactor(crawler: Crawler, name: str) -> None:
    """Raise :exc:`~scrapy_dripper.config.ConfigError` if a crawl does not use the asyncio reactor."""
    if not is_asyncio_available():
        raise ConfigError(
            "TWISTED_REACTOR must be 'twisted.internet.asyncioreactor.AsyncioSelectorReactor', Scrapy's default, "
            f"for {name} (got {crawler.settings['TWISTED_REACTOR']!r})"
        )


def response_record(response: Response, fields: Mapping[str, str]) -> bytes:
    """Return a response as an uncompressed record with additional header ``fields``."""
    record = WarcRecord()
    record.init_headers(record_type=WarcRecordType.response)
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
    lines = [b"HTTP/1.1 %d " % response.status]  # the reason phrase may be empty (RFC 9112, 4)
    for name, values in response.headers.items():
        if name.lower() != b"transfer-encoding":
            lines += [(name + b": " + value).replace(b"\r", b" ").replace(b"\n", b" ") for value in values]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _information() -> bytes:
    record = WarcRecord()
    record.init_headers(record_type=WarcRecordType.warcinfo)
    record.headers["Content-Type"] = "application/warc-fields"
    software = f"scrapy-dripper/{version('scrapy-dripper')} Scrapy/{version('scrapy')}"
    record.set_bytes_content(f"software: {software}\r\nformat: WARC File Format 1.1\r\n".encode())
    return _written(record)


def _written(record: WarcRecord, payload_digest: bytes | None = None) -> bytes:
    stream = io.BytesIO()
    record.write(stream, checksum_data=True, payload_digest=payload_digest)
    return stream.getvalue()


def _new_file(path: Path) -> BinaryIO:
    """Create a file with the first free name: ``crawl.warc.gz``, ``crawl-2.warc.gz``, ..."""
    stem, dot, extensions = path.name.partition(".")
    path.parent.mkdir(parents=True, exist_ok=True)
    for number in count(2):
        with suppress(FileExistsError):
            return open(path, "xb")
        path = path.with_name(f"{stem}-{number}{dot}{extensions}")
    raise AssertionError("numbers never end")
