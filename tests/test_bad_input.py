"""Bad input that a crawl receives as HTML, from bytes to extraction. Each page is made here; none is stored."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.testing import FakeEngine

SECONDS = 300
"""Far more than any of these pages takes; what goes over it hangs."""


def extract(html: str | bytes, charset: str | None = None, **options: object) -> Extraction:
    config = Config(**options)  # type: ignore[arg-type]
    [result] = Extractor(config, FakeEngine()).extract([Document(html, "http://example.com/", charset)])
    return result


@cache
def _elsewhere() -> ProcessPoolExecutor:
    """Return a separate process that a hang cannot outlive."""
    return ProcessPoolExecutor(1, get_context("spawn"))


def _made_and_extracted(make: Callable[[], str | bytes], options: dict[str, object]) -> Extraction:
    return extract(make(), **options)  # type: ignore[arg-type]


def extract_or_kill(make: Callable[[], str | bytes], **options: object) -> Extraction:
    """Extract in a separate process. If the process dies or hangs at a page, the test of that page fails."""
    process = _elsewhere()
    try:
        return process.submit(_made_and_extracted, make, options).result(SECONDS)
    except (futures.TimeoutError, BrokenProcessPool) as error:
        for child in list((process._processes or {}).values()):
            child.kill()
        _elsewhere.cache_clear()
        pytest.fail(f"no extraction: {error!r}")


# ------------------------------------------------------------------------------------------------------ not a page


@pytest.mark.parametrize("body", [b"", b" \r\n\t", b"\0" * 100, b"\xef\xbb\xbf", b"\xff\xfe", ""])
def test_empty_body(body: str | bytes) -> None:
    result = extract(body)
    assert result.fallback_reason is FallbackReason.EMPTY_BODY
    assert (result.main_html, result.markdown, result.text) == ("", "", "")


@pytest.mark.parametrize(
    "body",
    [
        "<html><body></body></html>",
        "<html><head><title>t</title></head></html>",
        "<body><script>document.write('x')</script><style>p { color: red }</style></body>",
        "<body><div><img src=x><br><hr></div></body>",
        "<!-- only a comment -->",
        "<frameset><frame src=a><frame src=b></frameset>",
    ],
)
def test_no_visible_text(body: str) -> None:
    result = extract(body)
    assert result.fallback_reason is FallbackReason.NO_BLOCKS
    assert not result.text


# ---------------------------------------------------------------------------------------------------------- characters


def test_control_characters_and_surrogates() -> None:
    """Characters that XML forbids do not cost the page."""
    result = extract("<p title='\x08'>a\x01b\x0b</p><p>c\ud800d</p><p>e&#1;&#x110000;f\ufffe</p>")
    assert result.fallback_reason is None
    assert result.details["blocks"] == 3
    assert result.main_html is not None
    result.main_html.encode()


# ------------------------------------------------------------------------------------------------------------- shapes


def deep() -> str:
    return "<h1>top</h1>" + "<div>" * 5_000 + "<p>inner text</p>" + "</div>" * 5_000 + "<p>text after</p>"


def deepest() -> str:
    return "<h1>top</h1>" + "<div>" * 200_000 + "<p>inner text</p>" + "</div>" * 200_000 + "<p>text after</p>"


def attributes() -> str:
    return "<h1>top</h1><p " + " ".join(f"a{i}=1" for i in range(100_000)) + ">inner text</p><p>text after</p>"


def quoted_attributes() -> str:
    return "<h1>top</h1><p " + " ".join(f"a{i}='<b>'" for i in range(100_000)) + ">inner text</p><p>text after</p>"


def long_text() -> str:
    return "<h1>top</h1><p>inner text " + "word " * 1_900_000 + "</p><p>text after</p>"


def long_value() -> str:
    return "<h1>top</h1><p>inner text<img src='data:image/png;base64," + "A" * 9_000_000 + "'></p><p>text after</p>"


def long_script() -> str:
    return "<h1>top</h1><p>inner text</p><script>" + "x = 1; " * 1_300_000 + "</script><p>text after</p>"


@pytest.mark.parametrize(
    "make",
    [deep, deepest, attributes, quoted_attributes, long_text, long_value, long_script],
    ids=lambda make: make.__name__,
)
def test_absurd_shapes(make: Callable[[], str]) -> None:
    """No text is lost to a parser's limit, within the absurd part or after it."""
    result = extract_or_kill(make)
    assert result.fallback_reason is None
    assert result.text is not None
    lines = result.text.split("\n")
    assert (lines[0], lines[1][:10], lines[-1]) == ("top", "inner text", "text after")


def many_blocks() -> str:
    return "".join(f"<p>Paragraph number {i} of the page.</p>" for i in range(20_000))


def many_elements() -> str:
    return "<p>Paragraph number 0 of the page.</p>" + "<i></i>" * 150_000


def huge() -> bytes:
    """Return a page of over 18 megabytes."""
    return b"".join(
        b"<div class=c%d><p>Paragraph number %d of the page.</p></div>" % (i % 9, i) for i in range(330_000)
    )


TRUNCATE: dict[str, object] = {"oversize": "truncate", "limits": {"bytes": 1_000_000, "blocks": 1_000}}


@pytest.mark.parametrize(
    ("make", "options", "source", "truncated", "last"),
    [
        (many_blocks, {"limits": {"blocks": 20_000}}, "fake", False, 19_999),
        (many_blocks, {}, "fallback:trafilatura", False, 19_999),
        (many_elements, {"fallback": "html"}, "fallback:html", True, 0),
        (huge, {"limits": {"bytes": 2_000_000}}, "fallback:trafilatura", True, None),
        (huge, TRUNCATE, "fake", True, 999),
    ],
    ids=["blocks that are allowed", "blocks", "elements", "20 megabytes", "20 megabytes, truncated"],
)
def test_a_page_that_is_too_large(
    make: Callable[[], str | bytes], options: dict[str, object], source: str, truncated: bool, last: int | None
) -> None:
    """It goes to the fallback, which gets as much of it as a limit allows, or the model labels its first blocks. The
    result says so.
    """
    result = extract_or_kill(make, **options)
    assert (result.source, result.truncated) == (source, truncated)
    assert result.fallback_reason == (None if source == "fake" else FallbackReason.OVERSIZE)
    assert result.text is not None
    lines = result.text.split("\n")
    assert lines[0] == "Paragraph number 0 of the page."
    assert last is None or lines[-1] == f"Paragraph number {last} of the page."
    assert "Paragraph number 329999 of" not in result.text


def test_one_bad_page_of_a_batch() -> None:
    """There is one extraction per document, in order. Bad pages do not change the results of the good ones."""
    documents = ["<p>first</p>", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0", b"", deep(), "<p>last</p>"]
    results = Extractor(Config(), FakeEngine()).extract(documents)
    assert Extractor(Config(), FakeEngine()).extract([]) == []
    assert [r.fallback_reason for r in results] == [
        None,
        FallbackReason.NOT_HTML,
        FallbackReason.EMPTY_BODY,
        None,
        None,
    ]
    assert [results[0].text, results[-1].text] == ["first", "last"]
