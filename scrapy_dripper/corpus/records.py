"""Read the responses of a WARC file, raw or as HTML pages (ISO 28500, WARC 1.1)."""

from __future__ import annotations

import base64
import gzip
import hashlib
import logging
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import BinaryIO
from urllib.parse import urlsplit

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType
from scrapy.http import Headers
from scrapy.utils.gz import gunzip
from w3lib.encoding import http_content_type_encoding

logger = logging.getLogger(__name__)

HTML = ("text/html", "application/xhtml+xml")
_PAGES = (WarcRecordType.response, WarcRecordType.resource)
_DIGESTS = ("sha1", "sha256", "md5")

MOST_HEAD = 1_000_000
"""Maximum size of the header of a record or of an HTTP message, in bytes. FastWARC's default is 32 kB."""

MOST_ENCODINGS = 5
"""Maximum number of compressions of a body, one after the other. Servers use one."""

_status_line = re.compile(rb"(?i)HTTP/\S{0,8}[ \t]{1,8}(\d{3})(?!\S)").match
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
    headers: Headers
    body: bytes
    offset: int
    """Byte offset of the record in the archive, or of its member in a compressed archive."""
    truncated: str | None
    """Why the crawler only stored a part of the response (``length``, ``time``, ``disconnect``, ...); None if
    complete."""
    digest: str
    """SHA-1 of the body: ``sha1:`` and base 32."""
    is_intact: bool
    """False if the digest of the record in the archive is different."""
    payload_type: str
    """The media type that the crawler has detected; empty if it is not recorded."""
    extension: Mapping[str, str]
    """The record's header fields that begin with ``Scrapy-``."""

    @property
    def content_type(self) -> str:
        """The media type of the Content-Type header, in lower case."""
        return _text(self.headers.get(b"Content-Type")).partition(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The charset of the Content-Type header."""
        return http_content_type_encoding(_text(self.headers.get(b"Content-Type")))


def _text(value: bytes | None) -> str:
    return (value or b"").decode("latin-1")


def responses(
    stream: BinaryIO, limit: int, skip: Callable[[Skip], None], name: str = "the archive"
) -> Iterator[Recorded]:
    """Yield the HTTP responses of an archive, with any status and type, and the resources that have a URL of HTTP.

    ``limit`` is the size limit of a record in bytes. ``skip`` is called with the reason for each skipped record. A
    damaged archive is read up to the damage. Raise OSError if the stream cannot be read.
    """
    last: int | None = None
    found: Recorded | Skip | None = None
    try:
        for record in ArchiveIterator(stream, parse_http=False, max_header_len=MOST_HEAD):
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
    body = inflated(recorded, limit)
    if isinstance(body, Skip):
        return body
    if not body or body.isspace():
        return Skip.EMPTY
    if not kinds and not body[:1_024].lstrip().startswith(b"<"):
        return Skip.NOT_HTML
    return replace(recorded, body=body)


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
    declared = record.content_length
    kind, _, digest = (record.headers.get("WARC-Block-Digest") or "").partition(":")
    is_intact = not (digest and kind.strip().lower() in _DIGESTS) or record.verify_block_digest()
    if record.content_length < declared:
        return Skip.CUT_OFF
    is_http = record.record_type == WarcRecordType.response  # a resource is a page without the response it came in
    try:
        if is_http:
            record.parse_http(max_header_len=MOST_HEAD, quirks_mode=True)
    except OSError:
        return Skip.INVALID
    body = record.reader.read(record.content_length)
    if len(body) < record.content_length:
        return Skip.CUT_OFF
    fields: Iterable[tuple[bytes, bytes]]
    if is_http:
        line = _status_line(record.http_headers.status_line_bytes or b"")
        if line is None:
            return Skip.INVALID
        status, fields = int(line[1]), record.http_headers.items_bytes()
    else:
        kind = record.headers.get("Content-Type") or ""
        status, fields = 200, [(b"Content-Type", kind.encode("latin-1", "replace"))]
    sha1 = hashlib.sha1(body, usedforsecurity=False).digest()
    values = defaultdict(list)
    for name, value in fields:
        values[name.title()].append(value)
    if any(b"chunked" in value.lower() for value in values.pop(b"Transfer-Encoding", ())):
        body = _unchunked(body)
    is_segment = record.headers.get("WARC-Segment-Number") is not None
    return Recorded(
        url=url,
        id=record.headers.get("WARC-Record-ID") or "",
        date=record.headers.get("WARC-Date") or "",
        status=status,
        headers=Headers(values),  # appending one by one takes quadratic time
        body=body,
        offset=record.stream_pos,
        truncated=record.headers.get("WARC-Truncated") or ("segment" if is_segment else None),
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
    try:
        parts = urlsplit(url)
        return None if parts.hostname and parts.port != 0 else Skip.INVALID
    except ValueError:  # such as "http://[" and a port of eight digits
        return Skip.INVALID


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


def inflated(recorded: Recorded, limit: int) -> bytes | Skip:
    """Return the decompressed body. An uncompressed body is no error, because archives often keep the header."""
    body, names = recorded.body, _text(b",".join(recorded.headers.getlist(b"Content-Encoding")))[:1_000].split(",")
    names = [name.strip().lower().removeprefix("x-") for name in names]
    names = [name for name in names if name not in ("", "identity")]
    if len(names) > MOST_ENCODINGS:
        return Skip.ENCODING
    for name in reversed(names):
        if name == "gzip" and body[:2] != b"\x1f\x8b":
            continue
        try:
            body = _once_inflated(body, name, limit)
        except (OSError, EOFError, zlib.error):
            if body.lstrip()[:1] != b"<":
                return Skip.ENCODING
        except ValueError:  # Scrapy's for too many bytes
            return Skip.OVERSIZE
        if len(body) > limit:
            return Skip.OVERSIZE
    return body


def _once_inflated(body: bytes, name: str, limit: int) -> bytes:
    """Decompress a body, up to little more than the limit. Raise OSError, EOFError, zlib.error or ValueError."""
    if name == "gzip":
        return gunzip(body, max_size=limit)
    if name == "deflate":  # some servers send it raw, against the standard
        inflate = zlib.decompressobj(zlib.MAX_WBITS if body[:1] == b"\x78" else -zlib.MAX_WBITS)
        data = inflate.decompress(body, limit + 1)
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
