"""Conversion of Main-HTML to Markdown with html2text."""

from __future__ import annotations

import re

import pytest

from scrapy_dripper.output.html2text_output import markdown


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h2>Title</h2><p>Text</p>", "## Title\n\nText"),
        ("<p><a href='/x'>link</a></p>", "[link](https://example.org/x)"),
        ("<p><a href='y'>link</a></p>", "[link](https://example.org/a/y)"),
        ("<p><img src='/i.png' alt='alt'></p>", "![alt](https://example.org/i.png)"),
        ("<p>" + "word " * 100 + "</p>", ("word " * 100).strip()),
        ("<p>é—“q”</p>", "é—“q”"),
        ("<p><b>b</b> <i>i</i></p>", "**b** *i*"),
        ("<ul><li>a</li><li>b</li></ul>", "* a\n  * b"),
        ("", ""),
    ],
)
def test_markdown(html: str, expected: str) -> None:
    """Links are absolute, lines are not wrapped, and characters stay Unicode."""
    assert markdown(f"<html><body>{html}</body></html>", "https://example.org/a/b") == expected


def test_links_dropped() -> None:
    html = "<p><a href='/x'>link</a></p><blockquote><a href=y>b</a></blockquote>"
    assert markdown(html, "https://example.org/", links=False) == "link\n\n> b"


IMG = "&lt;img src=x onerror=a()&gt;"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (f"<p>{IMG}</p>", "&lt;img src=x onerror=a()>"),
        ("<p>&lt;/p> &lt;!-- &lt;?php</p>", "&lt;/p> &lt;!-- &lt;?php"),
        ("<p>&#60;b></p>", "&lt;b>"),
        ("<p>a &lt; b &lt;= 3 &lt;3</p>", "a < b <= 3 <3"),
        ("<p>so <code>List&lt;int></code></p>", "so `List<int>`"),
        ("<p>so <code><kbd>&lt;b></kbd></code></p>", "so `<b>`"),
        ("<p>a</p><pre>x &lt;b>\ny</pre>", "a\n    \n    \n    x <b>\n    y"),
        ("<pre>x &lt;b>\ny</pre>", "    x <b>\n    y"),
        ("<p><a href='http://e.org/'>http://e.org/</a></p>", "<http://e.org/>"),
    ],
)
def test_text_stays_text(html: str, expected: str) -> None:
    """Text that looks like a tag is escaped, but not in code or comparisons."""
    assert markdown(html) == expected


@pytest.mark.parametrize(
    "html",
    [
        f"<p>&lt;<span>{IMG[4:]}</span></p>",
        f"<p>`<code>{IMG}</code></p>",
        f"<p><code>{IMG}`</code></p>",
        f"<p><code>{IMG}</code><code></code></p>",
        f"<p>\\<code>{IMG}</code></p>",
        f"<code>x<p>{IMG}</p></code>",
        "<p><code>a<br>&lt;div onerror=a()&gt;</code></p>",
        f"<table><tr><td>a</td><td>b</td></tr><tr><td>x</td><td><code>a|{IMG}</code></td></tr></table>",
        f"<pre>{IMG}</pre>",
        f"<pre>a&#13;{IMG}</pre>",
        f"<pre><code>a<pre>b</pre></code></pre><p>{IMG}</p>",
        f"<pre><ul><li>{IMG}</li></ul></pre>",
        f"<ul><li><pre>{IMG}</pre></li></ul>",
        f"<ul><li><a href=x><pre>{IMG}</pre></a></li></ul>",
        f"<ul><li>a<ul><li>b</li></ul><pre>{IMG}</pre></li></ul>",
        f"<ul><li>a</li></ul><pre>{IMG}</pre><pre>{IMG}</pre>",
        f"<ol start=9><li>a</li><li>b<pre>{IMG}</pre></li></ol>",
        f"<a href='x {IMG}'>t</a>",
        f"<a href='x' title='\" {IMG}'>t</a>",
        f"<img src='a b' alt='{IMG}'>",
        f"<abbr title='{IMG}'>a</abbr>",
        "<a href='a://img src=x onerror=a()'>a://img src=x onerror=a()</a>",
    ],
)
def test_a_renderer_finds_no_html(html: str) -> None:
    """Text of the page never becomes an element, whatever is around it."""
    renderer = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable("table")
    rendered = renderer.render(markdown(html, "http://e.org/"))
    without_attributes = re.sub(r'(?:alt|title|href|src)="[^"]*"', "", rendered)
    assert not re.search(r"<[^>]*onerror", without_attributes)


@pytest.mark.parametrize("url", ["https://[your-domain]/", "http://[x", "//[x"])
@pytest.mark.parametrize("base", ["http://example.org/", "http://[x", ""])
def test_invalid_urls(url: str, base: str) -> None:
    """URLs that cannot be resolved are kept, and html2text escapes their brackets."""
    written = url.replace("[", "\\[").replace("]", "\\]")
    assert markdown(f"<p><a href='{url}'>link</a> <img src='{url}' alt='a'></p>", base) == (
        f"[link]({written}) ![a]({written})"
    )


@pytest.mark.parametrize("value", ["", "x", "9" * 4_300])
def test_invalid_start_of_a_list(value: str) -> None:
    assert markdown(f"<ol start='{value}'><li>a</li><li>b</li></ol>") == "1. a\n  2. b"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>a" + "\n" * 1_000_000 + "b</p>", "a b"),
        ("<p>a" + " \n\t" * 300_000 + "- b</p>", "a \\- b"),
        ("<p>a</p>" + ("\n" * 10_000 + "<b></b>") * 50 + "<p>b</p>", None),
        ("<pre>" + "\n" * 1_000_000 + "x</pre>", None),
        ("<p>" + "- \n1. \n+ \n" * 100_000 + "</p>", None),
        ("<p>" + "1" * 3_000_000 + "</p>", None),
    ],
)
def test_white_space_and_marks_take_linear_time(html: str, expected: str | None) -> None:
    """With anything quadratic in white space, these inputs would take minutes or hours."""
    result = markdown(html)
    assert expected is None or result == expected


@pytest.mark.parametrize(
    ("start", "content", "end"),
    [
        ("<blockquote>", "<pre>a" + "\na" * 50_000 + "</pre>", "</blockquote>"),
        ("<blockquote>", "a<br>" * 10_000, "</blockquote>"),
        ("<ul><li>", "<li>x</li>" * 5_000, "</li></ul>"),
        ("<ul><li>a", "", "</li></ul>"),
        ("<blockquote><ol><li>", "<pre>a" + "\na" * 50_000 + "</pre>", "</li></ol></blockquote>"),
    ],
)
def test_nesting_is_bounded(start: str, content: str, end: str) -> None:
    """Lines in a thousand quotes or lists do not begin with a thousand markers."""
    html = start * 1_000 + content + end * 1_000
    assert len(markdown(html)) < 100_000 + 10 * len(html)


def test_base_url_is_bounded() -> None:
    """A long base URL is not copied to so many links that the Markdown is much larger than the page."""
    html = "<a href=x>y</a> " * 20_000
    for base in ("http://e.org/" + "a/" * 1_000, "http://e.org/" + "a/" * 100_000):
        assert len(markdown(html, base)) < 100_000 + 10 * len(html)


def test_depth_that_is_shown() -> None:
    """Common nesting is kept, and deeper text moves to the last level."""
    assert ">>> b" in markdown("<blockquote>" * 3 + "<p>a</p><p>b</p>" + "</blockquote>" * 3)
    deep = markdown("<blockquote>" * 20 + "<p>a</p><p>b</p>" + "</blockquote>" * 20)
    assert ">" * 10 + " b" in deep
    assert ">" * 11 not in deep
