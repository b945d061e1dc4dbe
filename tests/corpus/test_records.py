"""Which WARC records count as pages, and how the others are counted."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import zlib
from collections import Counter
from typing import Any

import pytest
from fastwarc import GzipWriter, Lz4Writer, ZstdWriter
from fastwarc.warc import WarcRecordType
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.page.charset import decode_html
from tests.corpus.shards import HTML, record

pytest.importorskip("scrapy_dripper.corpus.records", reason="needs FastWARC 2", exc_type=ImportError)

from scrapy_dripper.corpus.records import Recorded, Skip, pages

URL = "https://example.org/"
PAGE = b"<!doctype html><title>Tides</title><p>Twice a day the water comes.</p>"
LIMIT = 100_000


def read(data: bytes, limit: int = LIMIT) -> tuple[list[Recorded], Counter[str]]:
    """Return the pages of an archive, and how many records were left out, by reason."""
    skipped: Counter[str] = Counter()
    found = list(pages(io.BytesIO(data), limit, lambda reason: skipped.update([reason.value])))
    return found, skipped


def chunked(body: bytes, size: int) -> bytes:
    """Return a body in chunks of a size."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def raw_deflate(body: bytes) -> bytes:
    """Return a body compressed without the header that the standard requires."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (HTML, PAGE),
        (b"Content-Type: application/xhtml+xml\r\n", PAGE),
        (b"", PAGE),
        (HTML + b"Content-Encoding: gzip\r\n", gzip.compress(PAGE)),
        (HTML + b"Content-Encoding: X-GZIP\r\n", gzip.compress(PAGE)),
        (HTML + b"Content-Encoding: deflate\r\n", zlib.compress(PAGE)),
        (HTML + b"Content-Encoding: deflate\r\n", raw_deflate(PAGE)),
        (HTML + b"Content-Encoding: gzip\r\n", PAGE),
        (HTML + b"Content-Encoding: identity\r\n", PAGE),
        (HTML + b"Transfer-Encoding: chunked\r\n", chunked(PAGE, 7)),
        (HTML + b"Transfer-Encoding: chunked\r\n", PAGE),
        (HTML + b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n", chunked(gzip.compress(PAGE), 9)),
        (b"Content-Encoding: gzip\r\n", gzip.compress(PAGE)),
    ],
    ids=(
        "plain xhtml untyped gzip x-gzip deflate raw-deflate stored-decompressed identity chunked stored-unchunked "
        "chunked-gzip untyped-gzip"
    ).split(),
)
def test_the_body_is_that_of_the_document(head: bytes, body: bytes) -> None:
    """Chunks and compression are undone; headers that no longer fit the archived body do no harm."""
    (page,), skipped = read(record(URL, body, head))

    assert page.body == PAGE
    assert page.url == URL
    assert not skipped


@given(st.binary(max_size=3_000).map(lambda tail: b"<p>" + tail), st.integers(1, 500))
def test_chunks_of_any_size_are_joined(body: bytes, size: int) -> None:
    """Their content does not matter, even if it looks like the size of a chunk."""
    (page,), _ = read(record(URL, chunked(body, size), HTML + b"Transfer-Encoding: chunked\r\n"))

    assert page.body == body


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (record(URL, PAGE, status="404 Not Found"), "status"),
        (record(URL, b"", b"Location: /\r\n", status="301 Moved"), "status"),
        (record(URL, b"{}", b"Content-Type: application/json\r\n"), "not_html"),
        (record(URL, b"%PDF-1.4", b""), "not_html"),
        (record(URL, b" \r\n "), "empty"),
        (record(URL, b""), "empty"),
        (record(URL, b"\x1f\x8b damaged", HTML + b"Content-Encoding: gzip\r\n"), "encoding"),
        (record(URL, b"\x00\x01", HTML + b"Content-Encoding: compress\r\n"), "encoding"),
        (record(URL, PAGE, kind=WarcRecordType.revisit), "revisit"),
        (record(URL, PAGE, kind=WarcRecordType.continuation), "continuation"),
        (record("dns:example.org", PAGE), "not_http"),
        (record(URL, b"x" * (LIMIT + 1)), "oversize"),
        (record(URL, gzip.compress(b"<p>" * LIMIT), HTML + b"Content-Encoding: gzip\r\n"), "oversize"),
        (record(URL, PAGE)[:-30], "cut_off"),
        (re.sub(rb"Content-Length: \d+", b"Content-Length: 1000000000", record(URL, PAGE), count=1), "cut_off"),
        (b"this is no archive" * 100, "broken_archive"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_page_is_counted(data: bytes, reason: str) -> None:
    """It is counted once; the page before it is read, and the one after it unless the archive ends there."""
    ends = reason in ("cut_off", "broken_archive")
    found, skipped = read(record(URL, PAGE) + data + (b"" if ends else record(URL, PAGE)))

    assert skipped == {reason: 1}
    assert [page.body for page in found] == [PAGE] * (1 if ends else 2)
    assert reason in {skip.value for skip in Skip}


@pytest.mark.parametrize("many", [b"X-Long: %s\r\n" % (b"a" * 12_000) * 8, b"X: a\r\n" * 20_000])
def test_headers_of_any_length_are_read(many: bytes) -> None:
    """A crawl writes what a server sends, and reading it back loses no page."""
    (page,), skipped = read(record(URL, PAGE, many + HTML), 10 * LIMIT)

    assert page.body == PAGE
    assert page.content_type == "text/html"
    assert not skipped


def test_a_long_field_does_not_end_the_archive() -> None:
    found, _ = read(record(URL, PAGE, fields={"X-Long": "a" * 100_000}) + record(URL, PAGE))

    assert [page.body for page in found] == [PAGE, PAGE]


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_headers_are_those_of_the_server(end: bytes) -> None:
    head = end.join([b"Content-Type:  text/html ;", b"\t charset=utf-8", b"no header", b"X:", b"x: 1 ", b""])
    (page,), _ = read(record(URL, PAGE, head))

    assert dict(page.headers) == {b"Content-Type": [b"text/html ; charset=utf-8"], b"X": [b"", b"1"]}


def test_records_that_are_no_responses_are_not_looked_at() -> None:
    """Requests and metadata of pages are not counted as losses."""
    kinds = (WarcRecordType.request, WarcRecordType.metadata, WarcRecordType.warcinfo)

    assert read(b"".join(record(URL, PAGE, kind=kind) for kind in kinds)) == ([], Counter())


def test_truncated_pages_are_kept_and_say_so() -> None:
    """Common Crawl truncates large pages and names the reason."""
    (cut, segment), _ = read(
        record(URL, PAGE, fields={"WARC-Truncated": "length"}) + record(URL, PAGE, fields={"WARC-Segment-Number": "1"})
    )

    assert (cut.truncated, segment.truncated) == ("length", "segment")


@pytest.mark.parametrize("kind", ["sha1", "sha256", "md5", "crc32"])
def test_digests_are_compared(kind: str) -> None:
    """One flipped bit is detected, whatever the kind of the digest. Unknown kinds are ignored."""
    intact = record(URL, PAGE)
    block = b"HTTP/1.1 200 OK\r\n" + HTML + b"\r\n" + PAGE
    digest = "ABC" if kind == "crc32" else hashlib.new(kind, block).hexdigest()
    intact = re.sub(rb"WARC-Block-Digest: .*", b"WARC-Block-Digest: %s:%s\r" % (kind.encode(), digest.encode()), intact)
    (good, bad), _ = read(intact + intact.replace(b"Twice", b"Thice"))

    assert (good.is_intact, bad.is_intact) == (True, kind == "crc32")
    assert good.digest != bad.digest


def test_what_the_crawler_took_it_for_counts() -> None:
    """A server may send a page as plain text."""
    fields = {"WARC-Identified-Payload-Type": "text/html"}
    (page,), _ = read(record(URL, PAGE, b"Content-Type: text/plain\r\n", fields=fields))

    assert page.body == PAGE


@pytest.mark.parametrize(
    ("head", "text", "encoding"),
    [
        (b"Content-Type: text/html; charset=shift_jis\r\n", "<p>満潮と干潮は一日に二度ずつある。</p>", "shift_jis"),
        (b"Content-Type: text/html\r\n", "<meta charset=windows-1251><p>Прилив бывает дважды</p>", "windows-1251"),
        (b"Content-Type: text/html; charset=latin-1\r\n", "<p>Größe</p>", "utf-8"),
    ],
)
def test_the_charset_is_found_as_in_a_crawl(head: bytes, text: str, encoding: str) -> None:
    """It comes from the header or the page, and UTF-8 wins over a wrong label."""
    (page,), _ = read(record(URL, text.encode(encoding), head))

    assert decode_html(page.body, page.charset) == text


@pytest.mark.parametrize("writer", [None, GzipWriter, ZstdWriter, Lz4Writer])
def test_archives_may_be_compressed(writer: Any) -> None:
    """Any format of FastWARC works, for each record by itself or for the whole file."""
    stream = io.BytesIO()
    for _ in range(2):
        if writer is None:
            stream.write(record(URL, PAGE))
        else:
            packed = writer(stream)
            packed.write(record(URL, PAGE))
            packed.finish()
            packed.flush()
    found, skipped = read(stream.getvalue())

    assert [page.body for page in found] == [PAGE, PAGE]
    assert not skipped


def test_a_disk_that_fails_is_no_broken_archive() -> None:
    """The task fails and has to run again, since the rest of the archive may be readable."""

    class Disk(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        list(pages(Disk(), LIMIT, lambda reason: None))


@pytest.mark.parametrize(
    "url", ["http://a.example:99999999/", "http://[", "http://", "https://:80/x", "http://a.example:x/"]
)
def test_a_url_for_which_no_request_can_be_made(url: str) -> None:
    """The record is counted, and the others are read."""
    found, skipped = read(record(url, PAGE) + record(URL, PAGE))

    assert [page.url for page in found] == [URL]
    assert skipped == {"invalid": 1}


@pytest.mark.parametrize("pages_", [1, 2, 10])
def test_an_archive_that_was_compressed_as_a_whole(pages_: int) -> None:
    """All of its records are read, as with each record compressed separately."""
    records = [record(f"{URL}{i}", PAGE) for i in range(pages_)]
    whole, _ = read(gzip.compress(b"".join(records)))
    separate, _ = read(b"".join(map(gzip.compress, records)))

    assert [page.url for page in whole] == [page.url for page in separate] == [f"{URL}{i}" for i in range(pages_)]


def test_a_compression_that_repeats() -> None:
    """Ten thousand names of compressions are no work."""
    found, skipped = read(record(URL, PAGE, HTML + b"Content-Encoding: " + b"gzip, " * 10_000 + b"gzip\r\n"))

    assert not found
    assert skipped == {"encoding": 1}
