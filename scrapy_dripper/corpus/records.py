"""The responses of a WARC file, as they were sent and as HTML pages (ISO 28500, WARC 1.1)."""

from __future__ import annotations

import base64
import hashlib
import io
import logging
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import BinaryIO

from fastwarc.warc import ArchiveIterator, HeaderMap, WarcRecord, WarcRecordType
from w3lib.encoding import http_content_type_encoding

logger = logging.getLogger(__name__)

HTML = ("text/html", "application/xhtml+xml")
_RECORDS = WarcRecordType.response | WarcRecordType.revisit | WarcRecordType.continuation
_DIGESTS = ("sha1", "sha256", "md5")

_head_end = re.compile(rb"\r?\n\r?\n").search
_encoded = re.compile(rb"(?i)\n(?:transfer|content)-encoding:").search
_chunk_size = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\n]{0,1000})?\r?\n").match


class Skip(str, Enum):
    """Why a record is no page. Each is counted."""

    REVISIT = "revisit"
    """The record says that the page had not changed since an earlier record."""
    CONTINUATION = "continuation"
    """A further segment of a record; its first segment is the page, and truncated."""
    CUT_OFF = "cut_off"
    """The archive ends within the record, as after a crawl that was killed."""
    BROKEN = "broken_archive"
    """The archive cannot be read from here on; what follows in it is lost."""
    OVERSIZE = "oversize"
    """More bytes than are read, before or after decompression."""
    NOT_HTTP = "not_http"
    """No HTTP response: ``dns:``, ``ftp:``, or one whose header cannot be read."""
    STATUS = "status"
    """The status is not 2xx: an error, a redirect."""
    NOT_HTML = "not_html"
    """The type is another one than HTML."""
    EMPTY = "empty"
    """The body is empty, or white space only."""
    ENCODING = "encoding"
    """The body is compressed in a way that nobody here can undo, or damaged."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Recorded:
    """An HTTP response as an archive has it: the body may be chunked and compressed."""

    url: str
    id: str
    date: str
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    offset: int
    """Where the record begins in the archive, in bytes: in a compressed one, where its member begins."""
    truncated: str | None
    """Why the crawler stored a part of the response only (``length``, ``time``, ``disconnect``, ...), None if all."""
    digest: str
    """SHA-1 of the body, ``sha1:`` and base 32."""
    is_intact: bool
    """False if the digest in the archive is another one."""
    payload_type: str
    """What the crawler took the body for, whatever its header says; empty if it does not say."""
    extension: tuple[tuple[str, str], ...]
    """Fields of the record that begin with ``Scrapy-``."""

    def header(self, name: bytes) -> str:
        """Return the last value of an HTTP header, empty if there is none."""
        values = [value for key, value in self.headers if key.lower() == name]
        return values[-1].decode("latin-1") if values else ""

    @property
    def content_type(self) -> str:
        """The media type, in lower case."""
        return self.header(b"content-type").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The charset of the Content-Type header."""
        return http_content_type_encoding(self.header(b"content-type"))


def responses(
    stream: BinaryIO, limit: int, skip: Callable[[Skip], None], name: str = "the archive"
) -> Iterator[Recorded]:
    """Yield the HTTP responses of an archive, whatever their status and type.

    ``limit`` is the most bytes of a record that are read; ``skip`` is told what is left out. Raise OSError if the
    stream cannot be read; an archive that is damaged is read up to there.
    """
    records = ArchiveIterator(stream, record_types=_RECORDS, parse_http=False)
    while True:
        try:
            record = next(records, None)
            found = None if record is None else _recorded(record, limit)
        except OSError as error:
            if error.errno is not None:  # FastWARC's own have none: the disk or the network has failed, not the archive
                raise
            logger.error("%(name)s cannot be read any further: %(error)s", {"name": name, "error": error})
            skip(Skip.BROKEN)
            return
        if found is None:
            return
        if isinstance(found, Skip):
            skip(found)
        else:
            yield found


def pages(stream: BinaryIO, limit: int, skip: Callable[[Skip], None], name: str = "the archive") -> Iterator[Recorded]:
    """Yield the HTML pages of an archive, their bodies neither chunked nor compressed any more. See `responses`."""
    for recorded in responses(stream, limit, skip, name):
        page = as_page(recorded, limit)
        if isinstance(page, Skip):
            skip(page)
        else:
            yield page


def as_page(recorded: Recorded, limit: int) -> Recorded | Skip:
    """Return a response as a page whose body is that of the document, or why it is none.

    It is HTML if the crawler or the server took it for that, or if nobody says and it begins with a tag.
    """
    if not 200 <= recorded.status < 300:
        return Skip.STATUS
    kinds = [kind for kind in (recorded.payload_type, recorded.content_type) if kind]
    if kinds and not any(kind in HTML for kind in kinds):
        return Skip.NOT_HTML
    body = recorded.body
    if "chunked" in recorded.header(b"transfer-encoding").lower():
        body = _unchunked(body)
    found = _inflated(body, recorded.header(b"content-encoding"), limit)
    if isinstance(found, Skip):
        return found
    if not found or found.isspace():
        return Skip.EMPTY
    if not kinds and not found[:1_024].lstrip().startswith(b"<"):
        return Skip.NOT_HTML
    return replace(recorded, body=found)


def _recorded(record: WarcRecord, limit: int) -> Recorded | Skip:
    """Return what a record holds, or why it is not read."""
    if record.record_type != WarcRecordType.response:
        return Skip.REVISIT if record.record_type == WarcRecordType.revisit else Skip.CONTINUATION
    url = (record.headers.get("WARC-Target-URI") or "").strip("<> ")
    if not url.lower().startswith(("http://", "https://")):
        return Skip.NOT_HTTP
    if record.content_length > limit:
        return Skip.OVERSIZE
    block = record.reader.read(record.content_length)
    if len(block) < record.content_length:
        return Skip.CUT_OFF
    end = _head_end(block)
    head, body = (block, b"") if end is None else (block[: end.start()], block[end.end() :])
    headers = HeaderMap()
    try:
        headers.parse(io.BytesIO(head + b"\r\n\r\n"), True)
    except OSError:
        return Skip.NOT_HTTP
    if headers.status_code is None:
        return Skip.NOT_HTTP
    truncated = record.headers.get("WARC-Truncated") or None
    if record.headers.get("WARC-Segment-Number") is not None:
        truncated = truncated or "segment"
    sha1 = hashlib.sha1(body, usedforsecurity=False).digest()
    return Recorded(
        url=url,
        id=record.headers.get("WARC-Record-ID") or "",
        date=record.headers.get("WARC-Date") or "",
        status=headers.status_code,
        headers=headers.items_bytes(),
        body=body,
        offset=record.stream_pos,
        truncated=truncated,
        digest="sha1:" + base64.b32encode(sha1).decode(),
        is_intact=_is_intact(record, block, body, sha1),
        payload_type=(record.headers.get("WARC-Identified-Payload-Type") or "").strip().lower(),
        extension=tuple((key, value) for key, value in record.headers.items() if key.lower().startswith("scrapy-")),
    )


def _is_intact(record: WarcRecord, block: bytes, body: bytes, sha1: bytes) -> bool:
    """Return False if a digest of a known kind says that the bytes are others than those that were written.

    The digest of the body is asked first, because its SHA-1 is known. Where the body is chunked or compressed it is
    that of the whole record: archives differ in what they took the other one of.
    """
    asked = [("WARC-Block-Digest", block)]
    if not _encoded(block[: len(block) - len(body)]):
        asked.insert(0, ("WARC-Payload-Digest", body))
    for name, data in asked:
        kind, _, value = (record.headers.get(name) or "").strip().partition(":")
        if kind.lower() not in _DIGESTS:
            continue
        is_known = data is body and kind.lower() == "sha1"
        digest = sha1 if is_known else hashlib.new(kind.lower(), data, usedforsecurity=False).digest()
        return value.rstrip("=").upper() in (base64.b32encode(digest).decode().rstrip("="), digest.hex().upper())
    return True


def _unchunked(body: bytes) -> bytes:
    """Return a body without its chunks' sizes; one that has none, whatever its header says, as it is."""
    parts, at = [], 0
    while (size := _chunk_size(body, at)) is not None:
        begin = size.end()
        at = begin + int(size[1], 16)
        parts.append(body[begin:at])
        if at == begin:
            break
        at += 2 if body.startswith(b"\r\n", at) else 1
    return b"".join(parts) if parts else body


def _inflated(body: bytes, encodings: str, limit: int) -> bytes | Skip:
    """Return a body decompressed. Archives that store it decompressed often keep the header: that is no error."""
    found = [name.strip().lower().removeprefix("x-") for name in encodings.split(",")]
    for name in reversed([name for name in found if name not in ("", "identity")]):
        try:
            data = _once_inflated(body, name, limit)
        except OSError:
            if body.lstrip()[:1] == b"<":
                continue
            return Skip.ENCODING
        if len(data) > limit:
            return Skip.OVERSIZE
        body = data
    return body


def _once_inflated(body: bytes, name: str, limit: int) -> bytes:
    """Return at most one byte more than the limit. Raise OSError if that is no such compression."""
    if name == "deflate" and body[:1] != b"\x78":  # raw, which no standard allows and some servers send
        try:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(body, limit + 1)
        except zlib.error as error:
            raise OSError(str(error)) from None
    record = WarcRecord()
    record.init_headers()
    record.is_http = True
    record.set_bytes_content(b"HTTP/1.1 200 OK\r\nContent-Encoding: " + name.encode("latin-1") + b"\r\n\r\n" + body)
    record.parse_http(auto_decode="content")
    data: bytes = record.reader.read(limit + 1)
    return data
