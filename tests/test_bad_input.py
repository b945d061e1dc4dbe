"""Bad input that a crawl receives as HTML, from bytes to extraction. Each page is made here; none is stored."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.testing import FakeEngine
from scrapy_dripper.workers.pool import Pool
from scrapy_dripper.workers.wire import Task
from tests.workers.children import SECONDS


def extract(html: str | bytes, charset: str | None = None, **options: object) -> Extraction:
    config = Config(**options)  # type: ignore[arg-type]
    [result] = Extractor(config, FakeEngine()).extract([Document(html, "http://example.com/", charset)])
    return result


def extract_in_a_worker(html: str | bytes, **options: object) -> Extraction:
    """Extract in a separate process. If it dies or hangs at a page, the test of that page fails."""
    config = Config(engine="tests.workers.engines.AllMain", timeout=SECONDS, worker_memory=4_096, **options)  # type: ignore[arg-type]
    pool = Pool(config, 1)
    try:
        [result] = pool.extract([Task(Document(html, "http://example.com/"), config)])
    finally:
        pool.close()
    return result


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


SHAPES: dict[str, Callable[[], str]] = {
    "deepest": lambda: "<div>" * 200_000 + "<p>inner text</p>" + "</div>" * 200_000,
    "quoted attributes": lambda: "<p " + " ".join(f"a{i}='<b>'" for i in range(100_000)) + ">inner text</p>",
    "long text": lambda: "<p>inner text " + "word " * 1_900_000 + "</p>",
    "long value": lambda: "<p>inner text<img src='data:image/png;base64," + "A" * 9_000_000 + "'></p>",
    "long script": lambda: "<p>inner text</p><script>" + "x = 1; " * 1_300_000 + "</script>",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_absurd_shapes(shape: str) -> None:
    """No text is lost to a parser's limit, within the absurd part or after it."""
    result = extract_in_a_worker(f"<h1>top</h1>{SHAPES[shape]()}<p>text after</p>")
    assert result.fallback_reason is None
    assert result.text is not None
    lines = result.text.split("\n")
    assert (lines[0], lines[1][:10], lines[-1]) == ("top", "inner text", "text after")


LARGE: dict[str, Callable[[], str | bytes]] = {
    "blocks": lambda: "".join(f"<p>Paragraph number {i} of the page.</p>" for i in range(20_000)),
    "elements": lambda: "<p>Paragraph number 0 of the page.</p>" + "<i></i>" * 150_000,
    "18 megabytes": lambda: b"".join(
        b"<div class=c%d><p>Paragraph number %d of the page.</p></div>" % (i % 9, i) for i in range(330_000)
    ),
}
TRUNCATE: dict[str, object] = {"oversize": "truncate", "limits": {"bytes": 1_000_000, "blocks": 1_000}}


@pytest.mark.parametrize(
    ("name", "options", "source", "truncated", "last"),
    [
        ("blocks", {"limits": {"blocks": 20_000}}, "all", False, 19_999),
        ("blocks", {}, "fallback:trafilatura", False, 19_999),
        ("elements", {"fallback": "html"}, "fallback:html", True, 0),
        ("18 megabytes", {"limits": {"bytes": 2_000_000}}, "fallback:trafilatura", True, None),
        ("18 megabytes", TRUNCATE, "all", True, 999),
    ],
)
def test_a_page_that_is_too_large(
    name: str, options: dict[str, object], source: str, truncated: bool, last: int | None
) -> None:
    """It goes to the fallback, which gets as much of it as a limit allows, or the model labels its first blocks. The
    result says so.
    """
    result = extract_in_a_worker(LARGE[name](), **options)
    assert (result.source, result.truncated) == (source, truncated)
    assert result.fallback_reason == (None if source == "all" else FallbackReason.OVERSIZE)
    assert result.text is not None
    lines = result.text.split("\n")
    assert lines[0] == "Paragraph number 0 of the page."
    assert last is None or lines[-1] == f"Paragraph number {last} of the page."
    assert "Paragraph number 329999 of" not in result.text
