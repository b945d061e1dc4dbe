"""Archives of any tool, and hostile ones: all pages are read, and what cannot be read is counted."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.page.charset import decode_html
from tests.corpus.shards import record
from tests.corpus.zoo import CHUNKED, HONEST, HOSTILE, LIMIT, PAGE, URL, Animal, chunked, response
from tests.programs import python

pytest.importorskip("scrapy_dripper.corpus.records", reason="needs FastWARC 2", exc_type=ImportError)

from scrapy_dripper.corpus.records import Recorded, charset, pages

ZOO = [*HONEST, *HOSTILE]
MOST_MEMORY = 64_000
"""KiB that reading all archives may take beyond their own size. The largest would take 20 MB, if it was not a bomb."""

READ_ALL = """
import io, resource
from scrapy_dripper.corpus.records import pages
from tests.corpus.zoo import HONEST, HOSTILE, LIMIT
zoo = [*HONEST, *HOSTILE]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for animal in zoo:
    for _ in pages(io.BytesIO(animal.data), LIMIT, lambda reason: None):
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def read(data: bytes) -> tuple[list[Recorded], Counter[str]]:
    """Return the pages of an archive, and how many records were left out, by reason."""
    skipped: Counter[str] = Counter()
    found = list(pages(io.BytesIO(data), LIMIT, lambda reason: skipped.update([reason])))
    return found, skipped


@pytest.mark.parametrize("animal", ZOO, ids=lambda animal: animal.name)
def test_all_that_can_be_read_is_read_and_the_rest_counted(animal: Animal) -> None:
    found, skipped = read(animal.data)

    assert [page.body for _, page in found] == animal.bodies
    assert skipped == animal.skipped


def test_no_archive_takes_much_time_or_memory() -> None:
    done = python("-c", READ_ALL)

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MOST_MEMORY


@given(st.binary(max_size=3_000).map(lambda tail: b"<p>" + tail), st.integers(1, 500))
def test_chunks_of_any_size_are_joined(body: bytes, size: int) -> None:
    """Their content does not matter, even if it looks like the size of a chunk."""
    ((_, page),), _ = read(response(chunked(body, size), CHUNKED))

    assert page.body == body


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_headers_are_those_of_the_server(end: bytes) -> None:
    head = end.join([b"Content-Type:  text/html ;", b"\t charset=utf-8", b"no header", b"X:", b"x: 1 ", b""])
    ((_, page),), _ = read(record(URL, PAGE, head))

    assert dict(page.headers) == {b"Content-Type": [b"text/html ; charset=utf-8"], b"X": [b"", b"1"]}


def test_the_charset_of_the_header_is_known() -> None:
    text = "<p>満潮と干潮は一日に二度ずつある。</p>"
    head = b"Content-Type: text/html; charset=shift_jis\r\n"
    ((_, page),), _ = read(record(URL, text.encode("shift_jis"), head))

    assert decode_html(page.body, charset(page)) == text


def test_a_disk_that_fails_is_no_broken_archive() -> None:
    """The task fails and has to run again, since the rest of the archive may be readable."""

    class Disk(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        list(pages(Disk(), LIMIT, lambda reason: None))
