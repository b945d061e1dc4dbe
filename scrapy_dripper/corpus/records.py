"""Read the responses of a WARC file, raw or as HTML pages (ISO 28500, WARC 1.1)."""

from __future__ import annotations

import base64
import gzip
import hashlib
import logging
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import BinaryIO
from urllib.parse import urlsplit

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType
from w3lib.encoding import http_content_type_encoding

logger = logging.getLogger(__name__)

HTML = ("text/html", "application/xhtml+xml")
_PAGES = (WarcRecordType.response, WarcRecordType.resource)
_DIGESTS = ("sha1", "sha256", "md5")

MOST_HEAD = 1_000_000
"""Maximum size of the header of a record or of an HTTP message, in bytes. FastWARC's default is 32 kB."""

MOST_ENCODINGS = 5
"""Maximum number of compressions of a body, one after the other. Servers use one."""

MOST_MEMBERS = 100
"""Maximum number of gzip members of a body. The rest is ignored. Servers send one."""

_head_end = re.compile(rb"\r?\n\r?\n").search
_header_lines = re.compile(rb"\r?\n(?![ \t])").split
_status = re.compile(rb"(?i)\s{0,8}HTTP/\S{0,8}[ \t]{1,8}(\d{3})(?!\S)").match
_encoded = re.compile(rb"(?i)\n(?:transfer|content)-encoding:").search
_chunk_size = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\n]{0,1000})?\r?\n").match


class Skip(str, Enum):
    """Why a record is not a page. Each reason is counted."""

    REVISIT = "revisit"
    """The page has not changed since an earlier record."""
    CONTINUATION = "continuation"
    """A further segment of a record. The first segment counts as a truncated page."""
    CUT_OFF = "cut_off"
    """The archive ends within the record: the crawl was killed, or the record declares a length that is too large. Or
    the record declares none."""
    BROKEN = "broken_archive"
    """The archive cannot be read from here on, and the rest of it is lost; or it has no records at all."""
    OVERSIZE = "oversize"
    """The record exceeds the size limit, before or after decompression."""
    NOT_HTTP = "not_http"
    """The URL is not one of HTTP (``dns:``, ``ftp:``, ``metadata:``)."""
    INVALID = "invalid"
    """The header of the record or of the HTTP response is invalid, or the URL is."""
    STATUS = "status"
    """The status is not 2xx: an error, a redirect."""
    NOT_HTML = "not_html"
    """The media type is not HTML."""
    EMPTY = "empty"
    """The body is empty or holds only white space."""
    ENCODING = "encoding"
    """The compression of the body is unknown, or the body is damaged."""

    def __str__(self) -> str:
        return self.value


UNREADABLE = frozenset({Skip.CUT_OFF, Skip.BROKEN, Skip.INVALID, Skip.ENCODING})
"""The reasons that are damage. The record, or the rest of an archive, may have been a page."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An HTTP response of an archive. The body may be compressed. Chunks are joined."""

    url: str
    id: str
    date: str
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    offset: int
    """Byte offset of the record in the archive, or of its member in a compressed archive."""
    truncated: str | None
    """Why the crawler only stored a part of the response (``length``, ``time``, ``disconnect``, ...); None if
    complete."""
    digest: str
    """SHA-1 of the body: ``sha1:`` and base 32."""
    is_intact: bool
    """False if the digest in the archive is different."""
    payload_type: str
    """The media type that the crawler has detected; empty if it is not recorded."""
    extension: Mapping[str, str]
    """The record's header fields that begin with ``Scrapy-``."""

    def header(self, name: bytes) -> str:
        """Return the last value of an HTTP header, or an empty string."""
        values = [value for key, value in self.headers if key.lower() == name]
        return values[-1].decode("latin-1") if values else ""

    @property
    def encodings(self) -> str:
        """The compressions of the body, in the order in which they were applied, separated by commas."""
        return b",".join(value for key, value in self.headers if key.lower() == b"content-encoding").decode("latin-1")

    @property
    def content_type(self) -> str:
        """The media type, in lower case."""
        return self.header(b"content-type").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The charset of the Content-Type header."""
        return http_content_type_encoding(self.header(b"content-type"))


def _iterator(stream: BinaryIO) -> Iterator[WarcRecord]:
    try:
        return iter(ArchiveIterator(stream, parse_http=False, max_header_len=MOST_HEAD))
    except TypeError:  # older releases of FastWARC read headers of up to 32 kB
        return iter(ArchiveIterator(stream, parse_http=False))


def responses(
    stream: BinaryIO, limit: int, skip: Callable[[Skip], None], name: str = "the archive"
) -> Iterator[Recorded]:
    """Yield the HTTP responses of an archive, with any status and type, and the resources that have a URL of HTTP.

    ``limit`` is the size limit of a record in bytes. ``skip`` is called with the reason for each skipped record. A
    damaged archive is read up to the damage. Raise OSError if the stream cannot be read.
    """
    records = _iterator(stream)
    last: int | None = None
    found: Recorded | Skip | None = None
    try:
        while (record := next(records, None)) is not None:
            last = record.stream_pos
            found = _recorded(record, limit)
            if isinstance(found, Recorded):
                yield found
            elif found is not None:
                skip(found)
    except OSError as error:
        if error.errno is not None:  # FastWARC's own errors have none, so the disk or the network has failed
            raise
        logger.error("%(name)s cannot be read any further: %(error)s", {"name": name, "error": error})
        skip(Skip.BROKEN)
    else:
        if last is None:
            logger.error("%(name)s has no records", {"name": name})
            skip(Skip.BROKEN)
        elif found is not Skip.CUT_OFF and stream.seekable() and _ends_within_a_member(stream, last):
            skip(Skip.CUT_OFF)


def _ends_within_a_member(stream: BinaryIO, start: int) -> bool:
    """Return True if a gzip file ends within a member, of which FastWARC may give nothing at all."""
    stream.seek(start)
    try:
        with gzip.GzipFile(fileobj=stream) as members:
            while members.read(1 << 20):
                pass
    except EOFError:
        return True
    except (OSError, zlib.error):  # not compressed with gzip
        return False
    return False


def pages(stream: BinaryIO, limit: int, skip: Callable[[Skip], None], name: str = "the archive") -> Iterator[Recorded]:
    """Yield the HTML pages of an archive, with decoded bodies. The parameters are those of :func:`responses`."""
    for recorded in responses(stream, limit, skip, name):
        page = as_page(recorded, limit)
        if isinstance(page, Skip):
            skip(page)
        else:
            yield page


def as_page(recorded: Recorded, limit: int) -> Recorded | Skip:
    """Return a response as a page with a decoded body, or the reason why it is not a page.

    It is HTML if the crawler or the server says so, or if neither gives a type and it begins with a tag.
    """
    if not 200 <= recorded.status < 300:
        return Skip.STATUS
    kinds = [kind for kind in (recorded.payload_type, recorded.content_type) if kind]
    if kinds and not any(kind in HTML for kind in kinds):
        return Skip.NOT_HTML
    body = recorded.body
    found = inflated(body, recorded.encodings, limit)
    if isinstance(found, Skip):
        return found
    if not found or found.isspace():
        return Skip.EMPTY
    if not kinds and not found[:1_024].lstrip().startswith(b"<"):
        return Skip.NOT_HTML
    return replace(recorded, body=found)


def _recorded(record: WarcRecord, limit: int) -> Recorded | Skip | None:
    """Return the response of a record, or the reason why it is skipped; None if it is of a kind that has no page."""
    url = (record.headers.get("WARC-Target-URI") or "").strip("<> ")
    skip = _of_other_kind(record, url)
    if record.record_type not in _PAGES or skip:
        return skip
    if record.content_length > limit:
        # If the declared length of a record is too large, FastWARC reads the following records as part of it. Such a
        # record is reported as cut off, not as oversize.
        return Skip.OVERSIZE if record.reader.consume(record.content_length) == record.content_length else Skip.CUT_OFF
    block = record.reader.read(record.content_length)
    if len(block) < record.content_length:
        return Skip.CUT_OFF
    if record.record_type == WarcRecordType.resource:  # a page without the HTTP response it came in
        kind = (record.headers.get("Content-Type") or "").encode("latin-1", "replace")
        status, headers, body = 200, [(b"Content-Type", kind)], block
    else:
        end = _head_end(block)
        head, body = (block, b"") if end is None else (block[: end.start()], block[end.end() :])
        first, *lines = _header_lines(head[:MOST_HEAD])
        code = _status(first)
        if code is None or len(head) > MOST_HEAD:
            return Skip.INVALID
        status, headers = int(code[1]), [_header(line) for line in lines if b":" in line]
    truncated = record.headers.get("WARC-Truncated") or None
    if record.headers.get("WARC-Segment-Number") is not None:
        truncated = truncated or "segment"
    sha1 = hashlib.sha1(body, usedforsecurity=False).digest()
    is_intact = _is_intact(record, block, body, sha1)
    if any(name.lower() == b"transfer-encoding" and b"chunked" in value.lower() for name, value in headers):
        body = _unchunked(body)
        headers = [(name, value) for name, value in headers if name.lower() != b"transfer-encoding"]
    return Recorded(
        url=url,
        id=record.headers.get("WARC-Record-ID") or "",
        date=record.headers.get("WARC-Date") or "",
        status=status,
        headers=tuple(headers),
        body=body,
        offset=record.stream_pos,
        truncated=truncated,
        digest="sha1:" + base64.b32encode(sha1).decode(),
        is_intact=is_intact,
        payload_type=(record.headers.get("WARC-Identified-Payload-Type") or "").strip().lower(),
        extension={key: value for key, value in record.headers.items() if key.startswith("Scrapy-")},
    )


def _of_other_kind(record: WarcRecord, url: str) -> Skip | None:
    """Return why a record has no response, according to its header; None if it has one, or need not be counted."""
    if not record.headers.get("Content-Length"):
        return Skip.CUT_OFF
    if not record.headers.get("WARC-Type"):
        return Skip.INVALID
    if record.record_type == WarcRecordType.revisit:
        return Skip.REVISIT
    if record.record_type == WarcRecordType.continuation:
        return Skip.CONTINUATION
    if record.record_type not in _PAGES:
        return None
    if not url.lower().startswith(("http://", "https://")):
        return Skip.NOT_HTTP
    return None if _is_usable(url) else Skip.INVALID


def _is_usable(url: str) -> bool:
    """Return True if a request can be made for a URL."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as "http://[" and a port of eight digits
        return False


def _header(line: bytes) -> tuple[bytes, bytes]:
    """Return the name and the value of a header, which may continue on further lines (RFC 9112, 5.2)."""
    name, _, value = line.partition(b":")
    return name.strip(), b" ".join(part.strip() for part in value.split(b"\n")).strip()


def _is_intact(record: WarcRecord, block: bytes, body: bytes, sha1: bytes) -> bool:
    """Return False if a digest of a known kind shows that the bytes have changed.

    The digest of the body is checked first, because its SHA-1 is known. If the body is chunked or compressed, the
    digest of the whole record is checked instead, because archives differ in how they compute that of the body.
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
    """Join the chunks of a body. A body without chunks is returned unchanged, even if its header says otherwise."""
    parts, at = [], 0
    while (size := _chunk_size(body, at)) is not None:
        begin = size.end()
        at = begin + int(size[1], 16)
        parts.append(body[begin:at])
        if at == begin:
            break
        at += 2 if body.startswith(b"\r\n", at) else 1
    return b"".join(parts) if parts else body


def inflated(body: bytes, encodings: str, limit: int) -> bytes | Skip:
    """Decompress a body. An uncompressed body is no error, because archives often keep the original header."""
    found = [name.strip().lower().removeprefix("x-") for name in encodings[:1_000].split(",")]
    found = [name for name in found if name not in ("", "identity")]
    if len(found) > MOST_ENCODINGS:
        return Skip.ENCODING
    for name in reversed(found):
        if name == "gzip" and body[:2] != b"\x1f\x8b":
            continue
        try:
            data = _once_inflated(body, name, limit)
        except (OSError, zlib.error):
            if body.lstrip()[:1] == b"<":
                continue
            return Skip.ENCODING
        if len(data) > limit:
            return Skip.OVERSIZE
        body = data
    return body


def _once_inflated(body: bytes, name: str, limit: int) -> bytes:
    """Decompress a body, up to one byte more than the limit. Raise OSError or zlib.error if that fails.

    As in browsers, an end that is missing and bytes after the end are no errors with gzip and deflate.
    """
    if name in ("gzip", "deflate"):
        data = b""
        for _ in range(MOST_MEMBERS):
            # Some servers send raw deflate, against the standard.
            inflate = zlib.decompressobj(47 if body[:1] in (b"\x1f", b"\x78") else -zlib.MAX_WBITS)
            data += inflate.decompress(body, limit + 1 - len(data))
            body = inflate.unused_data
            if len(data) > limit or body[:2] != b"\x1f\x8b":
                break
        if not data and not inflate.eof:
            raise zlib.error("damaged")
        return data
    record = WarcRecord()
    record.init_headers()
    record.is_http = True
    record.set_bytes_content(b"HTTP/1.1 200 OK\r\nContent-Encoding: " + name.encode("latin-1") + b"\r\n\r\n" + body)
    record.parse_http(auto_decode="content")
    found: bytes = record.reader.read(limit + 1)
    return found
