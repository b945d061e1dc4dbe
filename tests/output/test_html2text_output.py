"""Conversion of Main-HTML to Markdown with html2text."""

from __future__ import annotations

import pytest

from scrapy_dripper.output import with_html2text as markdown


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h2>Title</h2><p>Text</p>", "## Title\n\nText"),
        ("<p><a href='/x'>link</a></p>", "[link](https://example.org/x)"),
        ("<p><a href='y'>link</a></p>", "[link](https://example.org/a/y)"),
        ("<p><a href='https://[x]/'>link</a></p>", "[link](https://\\[x\\]/)"),
        ("<p><img src='/i.png' alt='alt'></p>", "![alt](https://example.org/i.png)"),
        ("<p>" + "word " * 100 + "</p>", ("word " * 100).strip()),
        ("<p>é—“q”</p>", "é—“q”"),
        ("<p><b>b</b> <i>i</i></p>", "**b** *i*"),
        ("<ul><li>a</li><li>b</li></ul>", "* a\n  * b"),
    ],
)
def test_markdown(html: str, expected: str) -> None:
    """Links are absolute, lines are not wrapped, and characters stay Unicode."""
    assert markdown(f"<html><body>{html}</body></html>", "https://example.org/a/b") == expected


def test_links_dropped() -> None:
    html = "<p><a href='/x'>link</a></p><blockquote><a href=y>b</a></blockquote>"
    assert markdown(html, "https://example.org/", links=False) == "link\n\n> b"
