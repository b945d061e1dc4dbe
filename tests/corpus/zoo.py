"""Small archives as other tools write them, and hostile ones, with what should be read from each."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

from fastwarc.stream_io import BrotliWriter, Lz4Writer, ZstdWriter

PAGE = b"<!doctype html><title>Tides</title><p>Twice a day the water comes.</p>"
NEXT = b"<!doctype html><title>Next</title><p>The page after it.</p>"
URL = "http://a.example/tides"
LIMIT = 5_000_000
"""Size limit of a record."""
ID = "<urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb0>"
GZIP = b"Content-Encoding: gzip"
IDENTIFIED = "WARC-Identified-Payload-Type: text/html"
CHUNKED = b"Transfer-Encoding: chunked"


class Animal(NamedTuple):
    """An archive, the bodies of its pages, and the numbers of its skipped records by reason."""

    name: str
    data: bytes
    bodies: list[bytes]
    skipped: dict[str, int] = {}  # noqa: RUF012 (never changed)


def warc(
    kind: str,
    block: bytes,
    *fields: bytes | str,
    url: str | bytes | None = URL,
    media: str | None = "application/http; msgtype=response",
    length: object = None,
    version: str = "1.0",
    end: bytes = b"\r\n\r\n",
) -> bytes:
    """Return a record, written by hand: the fields of the header may be wrong."""
    lines = [f"WARC/{version}", f"WARC-Type: {kind}", f"WARC-Record-ID: {ID}", "WARC-Date: 2026-01-02T03:04:05Z"]
    lines += [f"Content-Type: {media}"] if media else []
    lines += [f"Content-Length: {len(block) if length is None else length}"] if length is not False else []
    head = [line.encode() for line in lines]
    head += [b"WARC-Target-URI: " + (url if isinstance(url, bytes) else url.encode())] if url is not None else []
    head += [field if isinstance(field, bytes) else field.encode() for field in fields]
    return b"\r\n".join(head) + b"\r\n\r\n" + block + end


def http(body: bytes, *fields: bytes, status: bytes = b"HTTP/1.1 200 OK", end: bytes = b"\r\n") -> bytes:
    """Return an HTTP response with a page."""
    return end.join([status, b"Content-Type: text/html; charset=utf-8", *fields, b"", body])


def response(body: bytes, *fields: bytes, **options: Any) -> bytes:
    """Return a record with an HTTP response."""
    return warc("response", http(body, *fields), **options)


def typed(body: bytes, type_: str | None = None, *fields: bytes, record: Sequence[str] = ()) -> bytes:
    """Return a record with an HTTP response of a media type."""
    fields = (*([f"Content-Type: {type_}".encode()] if type_ else []), *fields)
    return warc("response", b"\r\n".join([b"HTTP/1.1 200 OK", *fields, b"", body]), *record)


def chunked(body: bytes, size: int = 7) -> bytes:
    """Return a body in chunks."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def members(*records: bytes) -> bytes:
    """Return records that are compressed with gzip one by one."""
    return b"".join(map(gzip.compress, records))


def packed(writer: Callable[[Any], Any], *members: bytes) -> bytes:
    """Return members that are compressed one by one."""
    stream = io.BytesIO()
    for member in members:
        with writer(stream) as compressed:
            compressed.write(member)
    return stream.getvalue()


PLAIN, AFTER = response(PAGE), response(NEXT, url="http://a.example/next")
BOTH = [PAGE, NEXT]
INFO = warc("warcinfo", b"software: a tool\r\n", url=None, media="application/warc-fields")
REQUEST = warc("request", b"GET /tides HTTP/1.1\r\n\r\n", media="application/http; msgtype=request")
METADATA = warc("metadata", b"fetchTimeMs: 12\r\n", media="application/warc-fields")
REVISIT = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"

HONEST = [
    Animal(
        "wget",  # URLs in angle brackets, chunks as sent, and its own log as a resource
        members(
            INFO,
            REQUEST,
            response(chunked(PAGE), CHUNKED, url=f"<{URL}>"),
            AFTER,
            warc("resource", b"log", url="metadata://gnu.org/software/wget/warc/wget.log", media="text/plain"),
        ),
        BOTH,
        {"not_http": 1},
    ),
    Animal(
        "Heritrix",  # DNS first, then the response before its request
        members(INFO, warc("response", b"1.2.3.4", url="dns:a.example", media="text/dns"), PLAIN, REQUEST, METADATA)
        + gzip.compress(response(NEXT, version="0.18")),
        BOTH,
        {"not_http": 1},
    ),
    Animal(
        "warcio",  # compressed bodies as sent
        members(INFO, response(chunked(gzip.compress(PAGE)), CHUNKED, GZIP), REQUEST, AFTER),
        BOTH,
    ),
    Animal(
        "browsertrix",  # decoded bodies with the header kept, HTTP/2, and what the browser has made of a page
        members(
            INFO,
            warc("response", http(PAGE, b"content-encoding: br", status=b"HTTP/2 200")),
            warc("resource", b"Tides", url=f"urn:text:{URL}", media="text/plain"),
            warc("resource", b"{}", url=f"urn:pageinfo:{URL}", media="application/json"),
            warc("resource", NEXT, media="text/html; charset=utf-8", version="1.1"),
            warc("resource", b"\x89PNG", media="image/png"),
            typed(b"let tide = 1", "text/javascript", b"content-encoding: br"),
        ),
        BOTH,
        {"not_http": 2, "not_html": 2},
    ),
    Animal(
        "Common Crawl",
        members(
            INFO,
            REQUEST,
            warc(
                "response",
                http(PAGE, b"X-Crawl-Content-Encoding: br", b"X-Crawl-Transfer-Encoding: chunked"),
                IDENTIFIED,
            ),
            METADATA,
            warc("response", http(NEXT[:40]), "WARC-Truncated: length", version="1.1"),
        ),
        [PAGE, NEXT[:40]],
    ),
    Animal("WET", warc("conversion", b"Tides", media="text/plain") + AFTER, [NEXT]),
    Animal("revisit", PLAIN + warc("revisit", http(b""), REVISIT, version="1.1") + AFTER, BOTH, {"revisit": 1}),
    Animal(
        "segments",
        warc("response", http(PAGE[:40]), "WARC-Segment-Number: 1")
        + warc("continuation", PAGE[40:], "WARC-Segment-Number: 2", f"WARC-Segment-Origin-ID: {ID}", media=None)
        + AFTER,
        [PAGE[:40], NEXT],
        {"continuation": 1},
    ),
    Animal("uncompressed", INFO + PLAIN + AFTER, BOTH),
    Animal("one gzip member", gzip.compress(INFO + PLAIN + AFTER), BOTH),
    Animal("joined gzip files", gzip.compress(INFO + PLAIN) + gzip.compress(INFO + AFTER), BOTH),
    Animal("zstd", packed(ZstdWriter, INFO, PLAIN, AFTER), BOTH),
    Animal("one zstd frame", packed(ZstdWriter, INFO + PLAIN + AFTER), BOTH),
    Animal("lz4", packed(Lz4Writer, INFO, PLAIN, AFTER), BOTH),
    Animal("line feeds", warc("response", http(PAGE, end=b"\n")) + AFTER, BOTH),
    Animal("no space between records", response(PAGE, end=b"") + AFTER, BOTH),
    Animal("much space between records", b"\r\n" + response(PAGE, end=b"\r\n" * 9) + AFTER, BOTH),
    Animal("a kind of the future", warc("hologram", http(PAGE)) + AFTER, [NEXT]),
]

_member = gzip.compress(PLAIN)
_damaged = _member[:40] + b"\xff\xff" + _member[42:]
_zeros = bytes(20_000_000)


def _between(name: str, record: bytes, reason: str) -> Animal:
    """Return an archive with a record that is skipped, between two pages."""
    return Animal(name, PLAIN + record + AFTER, BOTH, {reason: 1})


def _read(name: str, record: bytes, body: bytes = PAGE) -> Animal:
    return Animal(name, record + AFTER, [body, NEXT])


def _lost(name: str, data: bytes, *reasons: str) -> Animal:
    """Return an archive that cannot be read after its first page."""
    return Animal(name, PLAIN + data, [PAGE], dict.fromkeys(reasons, 1))


def _none(name: str, data: bytes) -> Animal:
    """Return a file that is no archive."""
    return Animal(name, data, [], {"broken_archive": 1})


HOSTILE = [
    # URLs
    *(
        _between(f"URL {url}", response(PAGE, url=url), "invalid")
        for url in ("http://[", "http://a.example:99999999/", "http://", "http:///x", "https://:80/", "http://a:b/")
    ),
    *(
        _between(f"URL {url}", response(PAGE, url=url), "not_http")
        for url in ("", "//a.example/", "javascript:alert(1)", "data:text/html,x", None)
    ),
    *(
        _read(f"URL {url[:30]!r}", response(PAGE, url=url))
        for url in (
            *("HTTP://A.EXAMPLE/", "http://a b/", "http://ü.example/", "http://[::1]/", "http://a\\@b/"),
            *("http://a.example/\0x", b"http://a.example/\xe9\xff", "http://" + "a" * 50_000, URL + "b" * 90_000),
        )
    ),
    # Lengths of records
    *(
        _lost(f"length {number}", response(PAGE, length=number) + AFTER, "cut_off")
        for number in (10**9, 10**18, 10**19)
    ),
    *(
        _lost(f"length {number!r}", response(PAGE, length=number) + AFTER, "invalid", "broken_archive")
        for number in (-1, 0, 10**30, "abc", "1e3", "0x10")
    ),
    _lost("length too small", response(PAGE, length=7) + AFTER, "invalid", "broken_archive"),
    _lost("length empty", response(PAGE, length="") + AFTER, "cut_off", "broken_archive"),
    _lost("no length", response(PAGE, length=False) + AFTER, "cut_off", "broken_archive"),
    _lost("two lengths", response(PAGE, length="5\r\nContent-Length: 900") + AFTER, "invalid", "broken_archive"),
    _read("zeros before the length", response(PAGE, length=f"{len(http(PAGE)):030}")),
    # Headers of records
    _between("no type", PLAIN.replace(b"WARC-Type: response\r\n", b""), "invalid"),
    _between("no header", b"WARC/1.0\r\n\r\n", "cut_off"),
    _read("no id and no date", PLAIN.replace(b"WARC-Record-ID: " + ID.encode(), b"X: y").replace(b"WARC-Date", b"X")),
    _read("no date", PLAIN.replace(b"2026-01-02T03:04:05Z", b"\xff yesterday \0" + b"9" * 5_000)),
    _read("digests", warc("response", http(PAGE), b"WARC-Block-Digest: \xff:", b"WARC-Payload-Digest: sha1")),
    _read("long field", warc("response", http(PAGE), b"X: " + b"y" * 500_000)),
    _read("many fields", warc("response", http(PAGE), *[b"X: y"] * 50_000)),
    _lost("endless field", warc("response", http(PAGE), b"X: " + b"y" * 2_000_000) + AFTER, "broken_archive"),
    _lost("no such version", response(PAGE, version="x.y") + AFTER, "broken_archive"),
    Animal(
        "many empty records",
        b"WARC/1.0\r\nContent-Length: 0\r\n\r\n\r\n\r\n" * 9_999 + AFTER,
        [NEXT],
        {"invalid": 9_999},
    ),
    _read("a record in a page", response(PAGE + PLAIN), PAGE + PLAIN),
    # HTTP
    *(
        _between(f"status line {line!r}", warc("response", http(PAGE, status=line)), "invalid")
        for line in (b"", b"HTTP/1.1 abc", b"HTTP/1.1 20000", b"ICY 200 OK", b"HTTP/1.1  200 OK", b"http/1.1 200 ok")
    ),
    *(
        _read(f"status line {line!r}", warc("response", http(PAGE, status=line)))
        for line in (b"HTTP/1.1 200", b"HTTP/2 200", b"HTTP/1.1 200 \xff\0")
    ),
    _between("status 999", warc("response", http(PAGE, status=b"HTTP/1.1 999 x")), "status"),
    _between("no HTTP", warc("response", PAGE), "invalid"),
    _between("nothing", warc("response", b""), "invalid"),
    _between("a header only", warc("response", b"HTTP/1.1 200 OK\r\nContent-Type: text/html"), "empty"),
    _between("a long header", response(PAGE, b"X: " + b"y" * 2_000_000), "invalid"),
    _read("many headers", response(PAGE, *[b"X: y"] * 50_000)),
    _read("a folded header", response(PAGE, b"X: y" + b"\r\n z" * 50_000)),
    _read("odd headers", response(PAGE, b":" * 999, b": x", b"no colon", b"\0: \0", b"\xff: \xff")),
    _read("zeros in a page", response(PAGE + bytes(9)), PAGE + bytes(9)),
    _between("status 404", warc("response", http(PAGE, status=b"HTTP/1.1 404 Not Found")), "status"),
    _between("a redirect", warc("response", http(b"", b"Location: /", status=b"HTTP/1.1 301 Moved")), "status"),
    # Media types
    _read("XHTML", typed(PAGE, "application/xhtml+xml")),
    _read("no type", typed(PAGE)),
    _read("no type, compressed", typed(gzip.compress(PAGE), None, GZIP)),
    _read("plain text that the crawler took for HTML", typed(PAGE, "text/plain", record=[IDENTIFIED])),
    _between("JSON", typed(b"{}", "application/json"), "not_html"),
    _between("an empty page", response(b""), "empty"),
    _between("an empty page with a compression", response(b"", b"Content-Encoding: br"), "empty"),
    _between("white space", response(b" \r\n "), "empty"),
    # Compressed bodies
    _read("gzip", response(gzip.compress(PAGE), b"Content-Encoding: X-GZIP")),
    _read("deflate", response(zlib.compress(PAGE), b"Content-Encoding: deflate")),
    _read("deflate without its header", response(zlib.compress(PAGE)[2:-4], b"Content-Encoding: deflate")),
    _read("brotli", response(packed(BrotliWriter, PAGE), b"Content-Encoding: br")),
    _read("zstd", response(packed(ZstdWriter, PAGE), b"Content-Encoding: zstd")),
    _read("a header of gzip that is left over", response(PAGE, GZIP)),
    _read("identity", response(PAGE, b"Content-Encoding: identity")),
    _read("headers of chunks and gzip that are left over", response(PAGE, CHUNKED, GZIP)),
    _read("a header of gzip and chunks", response(chunked(PAGE), CHUNKED, GZIP)),
    _between("an unknown compression", response(b"\0\1", b"Content-Encoding: compress"), "encoding"),
    _between("10,000 compressions", response(PAGE, b"Content-Encoding: " + b"gzip, " * 10_000), "encoding"),
    _between("10,000 headers of compression", response(PAGE, *[GZIP] * 10_000), "encoding"),
    _read("five compressions", response(reduce(lambda data, _: gzip.compress(data), range(5), PAGE), *[GZIP] * 5)),
    _between("six", response(reduce(lambda data, _: gzip.compress(data), range(6), PAGE), *[GZIP] * 6), "encoding"),
    _read("many members", response(gzip.compress(PAGE) + gzip.compress(b"") * 9_000, GZIP)),
    _read("bytes after the end", response(gzip.compress(PAGE) + b"\0more", GZIP)),
    _read("no end", response(gzip.compress(PAGE)[:-8], GZIP)),
    _read("an unprintable compression", response(PAGE, b"Content-Encoding: \0gzip\xff")),
    *(
        _between(f"not {name}", response(data, b"Content-Encoding: " + name.encode()), "encoding")
        for name, data in (
            *(("gzip", b"\x1f\x8b wrong"), ("deflate", b"\x78\x9cxx"), ("br", b"\xff\xff\xff"), ("wrong", b"\0\1")),
            ("zstd", b"\x28\xb5\x2f\xfd\xff\xff\xff"),
        )
    ),
    _between("a bomb", response(gzip.compress(_zeros), GZIP), "oversize"),
    _between(
        "a bomb in a bomb", response(gzip.compress(gzip.compress(_zeros)), b"Content-Encoding: gzip, gzip"), "oversize"
    ),
    _between("a large record", response(bytes(LIMIT)), "oversize"),
    _between("a raw bomb", response(zlib.compress(_zeros)[2:-4], b"Content-Encoding: deflate"), "oversize"),
    # Chunks
    *(_read(f"chunk of {size!r}", response(size + b"\r\n" + PAGE, CHUNKED)) for size in (b"fff", b"ffffffff")),
    *(
        _read(f"chunk of {size[:9]!r}", response(size + b"\r\n" + PAGE, CHUNKED), size + b"\r\n" + PAGE)
        for size in (b"f" * 99, b"-5", b"0" * 5_000 + b"46")
    ),
    _read("chunk too small", response(b"5\r\n" + PAGE, CHUNKED), PAGE[:5]),
    _read("chunks that are cut off", response(chunked(PAGE)[:40], CHUNKED), PAGE[:22]),
    _read("chunks of a byte", response(chunked(PAGE, 1), CHUNKED)),
    _read("10,000 times chunked", response(PAGE, b"Transfer-Encoding: " + b"chunked, " * 10_000)),
    # Files
    Animal("bomb as a member", gzip.compress(response(_zeros)) + gzip.compress(AFTER), [NEXT], {"oversize": 1}),
    Animal("line feeds as a member", gzip.compress(b"\r\n" * 1_000_000) + gzip.compress(AFTER), [NEXT]),
    _none("zeros as a member", gzip.compress(_zeros) + gzip.compress(AFTER)),
    _none("a header as a member", gzip.compress(b"WARC/1.0\r\nX: " + b"y" * 20_000_000) + gzip.compress(AFTER)),
    _lost("cut off in a header", PLAIN[:90], "cut_off"),
    _lost("cut off in a page", PLAIN[:-40], "cut_off"),
    _lost("text in between", b"garbage\r\n\r\n" + AFTER, "broken_archive"),
    _lost("zeros in between", bytes(999) + AFTER, "broken_archive"),
    _lost("a compressed record after others", gzip.compress(AFTER), "broken_archive"),
    *(
        Animal(f"member cut off at {end}", gzip.compress(AFTER) + _member[:end], [NEXT], {"cut_off": 1})
        for end in (3, 12, 30, 120, 200)
    ),
    Animal("damaged member", gzip.compress(AFTER) + _damaged, [NEXT], {"broken_archive": 1}),
    Animal("wrong checksum", gzip.compress(AFTER) + _member[:-8] + bytes(8), [NEXT], {"broken_archive": 1}),
    Animal("zeros after the members", gzip.compress(AFTER) + bytes(512), [NEXT], {"broken_archive": 1}),
    Animal("zstd cut off", packed(ZstdWriter, AFTER) + packed(ZstdWriter, PLAIN)[:60], [NEXT], {"broken_archive": 1}),
    _none("empty", b""),
    _none("empty member", gzip.compress(b"")),
    _none("text", b"no archive\n" * 9),
    _none("compressed HTML", gzip.compress(PAGE)),
    _none("PDF", b"%PDF-1.4\n" + bytes(range(256))),
    _none("ARC", b"filedesc://a.arc 0.0.0.0 20260101000000 text/plain 76\n1 0 Archive\n"),
    *(
        _none(f"{magic.hex()} only", magic + b"x" * 99)
        for magic in (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
    ),
    # Records that are there twice
    Animal("the same record twice", PLAIN + PLAIN + AFTER, [PAGE, PAGE, NEXT]),
    Animal(
        "the same fingerprint twice",
        warc("response", http(PAGE), "Scrapy-Fingerprint: 00") + warc("response", http(NEXT), "Scrapy-Fingerprint: 00"),
        BOTH,
    ),
]
