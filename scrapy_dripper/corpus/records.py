"""Read and write the HTTP responses of WARC files (ISO 28500, WARC 1.1) with FastWARC."""

from __future__ import annotations

import gzip
import hashlib
import io
import logging
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from fastwarc.stream_io import BrotliReader, GzipReader, ZstdReader
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType
from scrapy.http import Headers, Response, TextResponse
from scrapy.responsetypes import responsetypes
from scrapy.utils.gz import gunzip
from w3lib.encoding import http_content_type_encoding

logger = logging.getLogger(__name__)

FINGERPRINT = "Scrapy-Fingerprint"
"""The fingerprint of the request, with which a replay finds the response."""
ENCODING = "Scrapy-Encoding"
"""The explicit encoding of a response, if it has one. It takes precedence over the Content-Type."""

UNREADABLE = ("broken_archive", "cut_off", "encoding", "invalid")
"""The reasons to skip a record that are damage. The record, or the rest of an archive, may have been a page."""
MAX_HEADER = 1_000_000
"""Maximum size of the header of a record or of an HTTP message, in bytes. FastWARC's default is 32 kB."""
MAX_CODINGS = 5
"""Maximum number of compressions of a body, one after the other. Servers use one."""

_HTML = ("text/html", "application/xhtml+xml")
_READ = (WarcRecordType.response, WarcRecordType.resource)
_READERS: dict[str, Callable[[BinaryIO], Any]] = {
    "deflate": partial(GzipReader, zlib=True),
    "br": BrotliReader,
    "zstd": ZstdReader,
}

_chunk_size = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\n]{0,1000})?\r?\n").match


class SkipError(Exception):
    """A record is not read. The argument is the reason under which it is counted (docs/guides/corpus.md)."""


Recorded = tuple[WarcRecord, Response]
"""A record, and its response."""


def responses(
    stream: BinaryIO, limit: int, skip: Callable[[str], None], name: str = "the archive"
) -> Iterator[Recorded]:
    """Yield the HTTP responses of an archive, with any status and type, and the resources that have a URL of HTTP.

    Chunks are joined; a body may be compressed. ``limit`` is the size limit of a record in bytes. ``skip`` is called
    with the reason for each skipped record. A damaged archive is read up to the damage. Raise OSError if the stream
    cannot be read.
    """
    start: int | None = None
    reason = ""
    try:
        for record in ArchiveIterator(stream, parse_http=False, max_header_len=MAX_HEADER):
            start, reason = record.stream_pos, ""
            try:
                response = _response(record, limit)
            except SkipError as error:
                reason = str(error)
                skip(reason)
                continue
            if response is not None:
                yield record, response
    except OSError as error:
        if error.errno is not None:  # FastWARC's own errors have none, so the disk or the network has failed
            raise
        logger.error("%(name)s cannot be read any further: %(error)s", {"name": name, "error": error})
        skip("broken_archive")
    else:
        if start is None:
            logger.error("%(name)s has no records", {"name": name})
            skip("broken_archive")
        elif reason != "cut_off" and stream.seekable() and _ends_within_a_member(stream, start):
            skip("cut_off")


def pages(stream: BinaryIO, limit: int, skip: Callable[[str], None], name: str = "the archive") -> Iterator[Recorded]:
    """Yield the HTML pages of an archive, with decompressed bodies. The parameters are those of :func:`responses`.

    A page is HTML if the crawler or the server says so, or if neither gives a type and it begins with a tag.
    """
    for record, response in responses(stream, limit, skip, name):
        try:
            page = _page(record, response, limit)
        except SkipError as error:
            skip(str(error))
            continue
        yield record, page


def recorded_at(
    path: str, offset: int, wanted: tuple[str | None, str], limit: int, skip: Callable[[str], None] = lambda _: None
) -> Response | None:
    """Return the response of the record with the id and the URL in ``wanted``, or None if it is gone.

    If the archive is compressed as a whole, the offset is that of a later record. If the body cannot be decompressed,
    ``skip`` is called with the reason, and None is returned.
    """
    with open(path, "rb") as stream:
        for start in (offset, 0):
            stream.seek(start)
            for record, response in responses(stream, limit, lambda _: None, path):
                if (record.headers.get("WARC-Record-ID"), response.url) == wanted:
                    try:
                        return decompressed(record, response, limit)
                    except SkipError as error:
                        skip(str(error))
                        return None
    return None


def _page(record: WarcRecord, response: Response, limit: int) -> Response:
    if not 200 <= response.status < 300:
        raise SkipError("status")
    stated = (record.headers.get("WARC-Identified-Payload-Type"), _text(response.headers.get("Content-Type")))
    types = [type_.partition(";")[0].strip().lower() for type_ in stated if type_]
    if types and not any(type_ in _HTML for type_ in types):
        raise SkipError("not_html")
    response = decompressed(record, response, limit)
    if not response.body or response.body.isspace():
        raise SkipError("empty")
    if not types and not response.body[:1_024].lstrip().startswith(b"<"):
        raise SkipError("not_html")
    return response


def charset(response: Response) -> str | None:
    """Return the charset of the Content-Type header."""
    return http_content_type_encoding(_text(response.headers.get("Content-Type")))


def _text(value: bytes | None) -> str:
    return (value or b"").decode("latin-1")


def _response(record: WarcRecord, limit: int) -> Response | None:
    """Return the response of a record; None if it is of a kind that has none. Raise :exc:`SkipError`."""
    url = (record.headers.get("WARC-Target-URI") or "").strip("<> ")
    _check(record, url)
    if record.record_type not in _READ:
        return None
    length = record.content_length
    if length > limit:
        # If the declared length of a record is too large, FastWARC reads the following records as part of it. Such a
        # record is reported as cut off, not as oversize.
        raise SkipError("oversize" if record.reader.consume(length) == length else "cut_off")
    record.freeze()
    if record.content_length < length:
        raise SkipError("cut_off")
    headers: dict[bytes, list[bytes]] = defaultdict(list)  # filling Scrapy's headers one by one takes quadratic time
    status: int | None = 200
    if record.record_type == WarcRecordType.resource:  # a page without the response that it came in
        headers[b"Content-Type"] = [(record.headers.get("Content-Type") or "").encode("latin-1", "replace")]
    else:
        try:
            record.parse_http(max_header_len=MAX_HEADER, quirks_mode=True)
        except OSError:
            raise SkipError("invalid") from None
        status = record.http_headers.status_code
        for name, value in record.http_headers.items_bytes():
            headers[name.title()].append(value)
    if status is None or status > 999:
        raise SkipError("invalid")
    body = record.reader.read(record.content_length)
    if any(b"chunked" in value.lower() for value in headers.pop(b"Transfer-Encoding", ())):
        body = _unchunked(body)
    return Response(url, status, Headers(headers), body)


def _check(record: WarcRecord, url: str) -> None:
    """Raise :exc:`SkipError` if a record is to be counted as one without a response, according to its header."""
    if not record.headers.get("Content-Length"):
        raise SkipError("cut_off")
    if not record.headers.get("WARC-Type"):
        raise SkipError("invalid")
    if record.record_type in (WarcRecordType.revisit, WarcRecordType.continuation):
        raise SkipError(record.headers["WARC-Type"].lower())
    if record.record_type not in _READ:
        return
    if not url.lower().startswith(("http://", "https://")):
        raise SkipError("not_http")
    try:
        parts = urlsplit(url)
        is_valid = bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as "http://[" and a port of eight digits
        is_valid = False
    if not is_valid:
        raise SkipError("invalid")


def _unchunked(body: bytes) -> bytes:
    """Join the chunks of a body. A body without chunks is returned unchanged, even if its header says otherwise.

    FastWARC's reader of chunks accepts no extensions, and returns nothing of a body that was cut off.
    """
    parts, at = [], 0
    while (size := _chunk_size(body, at)) is not None:
        begin = size.end()
        at = begin + int(size[1], 16)
        parts.append(body[begin:at])
        if at == begin:
            break
        at += 2 if body.startswith(b"\r\n", at) else 1
    return b"".join(parts) if parts else body


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


def decompressed(record: WarcRecord, response: Response, limit: int) -> Response:
    """Return a response with its body decompressed, and of Scrapy's class for its type. Raise :exc:`SkipError`.

    An uncompressed body is no error, because archives often keep the header.
    """
    headers, body = response.headers.copy(), response.body
    names = _text(b",".join(headers.pop("Content-Encoding", [])))[:1_000].lower().split(",")
    codings = [name for name in (name.strip().removeprefix("x-") for name in names) if name not in ("", "identity")]
    if len(codings) > MAX_CODINGS:
        raise SkipError("encoding")
    for coding in reversed(codings if body else []):
        try:
            body = _decompressed(body, coding, limit)
        except (OSError, EOFError, KeyError, zlib.error):  # damaged or of an unknown kind
            if body.lstrip()[:1] not in (b"<", b"{", b"["):
                raise SkipError("encoding") from None
        except ValueError:  # Scrapy's for too many bytes
            raise SkipError("oversize") from None
        if len(body) > limit:
            raise SkipError("oversize")
    kind = responsetypes.from_args(headers=headers, url=response.url, body=body)
    typed = kind(response.url, response.status, headers, body)
    encoding = record.headers.get(ENCODING)
    return typed.replace(encoding=encoding) if encoding and isinstance(typed, TextResponse) else typed


def _decompressed(body: bytes, coding: str, limit: int) -> bytes:
    """Undo one compression, up to little more than the limit."""
    if coding == "gzip":
        return gunzip(body, max_size=limit) if body[:2] == b"\x1f\x8b" else body
    if coding == "deflate" and body[:1] != b"\x78":
        body = b"\x78\x9c" + body  # some servers leave out this header, against the standard
    found: bytes = _READERS[coding](io.BytesIO(body)).read(limit + 1)
    if not found:
        raise EOFError("damaged")
    return found


def response_record(response: Response, fields: Mapping[str, str]) -> bytes:
    """Return a response as an uncompressed record with additional header ``fields``."""
    record = WarcRecord()
    record.init_headers(record_type=WarcRecordType.response)
    record.headers["WARC-Target-URI"] = response.url
    if response.ip_address is not None:
        record.headers["WARC-IP-Address"] = str(response.ip_address)
    if "dataloss" in response.flags or "partial" in response.flags:
        record.headers["WARC-Truncated"] = "disconnect"
    if encoding := getattr(response, "_encoding", None):
        record.headers[ENCODING] = encoding
    for field, text in fields.items():
        record.headers[field] = text
    record.is_http = True
    # The status line and the header as received, except that the downloader has joined the chunks.
    lines = [b"HTTP/1.1 %d " % response.status]  # the reason phrase may be empty (RFC 9112, 4)
    for name, values in response.headers.items():
        if name.lower() != b"transfer-encoding":
            lines += [(name + b": " + value).replace(b"\r", b" ").replace(b"\n", b" ") for value in values]
    record.set_bytes_content(b"\r\n".join(lines) + b"\r\n\r\n" + response.body)
    stream = io.BytesIO()
    digest = hashlib.sha1(response.body, usedforsecurity=False).digest()
    record.write(stream, checksum_data=True, payload_digest=digest)
    return stream.getvalue()
