"""YAML parsers read front matter correctly for any metadata; and links of the content are collected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from scrapy_dripper.characters import without_controls
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, FallbackReason, fingerprints
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.fallback import fall_back
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.markdown import front_matter
from scrapy_dripper.output.urls import Outlink, outlinks
from scrapy_dripper.page.parse import parse

ANY = st.text(alphabet=st.characters(exclude_categories=()), max_size=30)
MARKED = st.text(st.sampled_from("ab1 <>[]()*_`~$!\\\\&#;:/\"'|{}^@=-.\x85\u2028é中"), max_size=40)
MARKUP = st.sampled_from(["&lt;b>", "<img src=x>", "[a](b)", "<x:y>", "<!--", "<![CDATA[", "--- ", "![a](b)", "**a**"])
VALUES = ANY | st.lists(MARKED | MARKUP, max_size=5).map("".join)
RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@given(VALUES, VALUES)
def test_yaml_reads_what_was_written(title: str, author: str) -> None:
    """Each value is a string on one line. Characters that YAML does not allow are left out, and no value adds
    syntax, neither of YAML nor of Markdown."""
    yaml = pytest.importorskip("yaml")
    written = front_matter([("title", title), ("author", author)])
    given = {"title": title, "author": author}
    known = {name: words for name, value in given.items() if (words := " ".join(without_controls(value).split()))}
    if not known:
        assert written == ""
        return
    first, *lines, last = written.split("\n")
    assert first == last == "---"
    assert len(lines) == len(known) == len(written.splitlines()) - 2
    found = yaml.safe_load("\n".join(lines))
    assert list(found.items()) == list(known.items())
    shown = RENDERER.parse(written)
    assert [token.tag for token in shown] == ["hr", "h2", "", "h2"]
    assert {token.type for token in shown[2].children or ()} <= {"text", "softbreak"}


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Åse & 中文: “a” | b's (1/2), no. 3!", '"Åse & 中文: “a” | b\'s (1/2), no. 3!"'),
        ("https://e.org/a_b?c=1&d=2#e", '"https://e.org/a_b?c=1&d=2#e"'),
        ("<b> [a](b) &lt; \\", r'"\x3Cb\x3E \x5Ba\x5D(b) \x26lt; \x5C"'),
        ('say "a"', r'"say \"a\""'),
        ("t" * 1_500, f'"{"t" * 1_000}"'),
    ],
)
def test_front_matter_is_readable(title: str, expected: str) -> None:
    """A long title is cut, but a long URL would lead elsewhere."""
    url = "https://e.org/" + "a" * 1_500
    assert front_matter([("title", title), ("url", url)]) == f'---\ntitle: {expected}\nurl: "{url}"\n---'


def test_markdown_with_front_matter() -> None:
    """It has the page's metadata in order. A page without content has none."""
    html = """<html lang=en><head><title>T</title><meta name=author content="Ada Example">
    <meta property="article:published_time" content="2026-04-01"><meta property="og:title" content='Tides: "a" guide'>
    </head><body><article><p>The tide comes in.</p></article></body></html>"""
    config = Config(markdown={"front_matter": True}, fallback="html", limits={"blocks": 1})

    def markdown(html: str, config: Config) -> str | None:
        return Extractor(config).extract([Document(html + "<p>x</p><p>y</p>", "https://e.org/t")])[0].markdown

    found = markdown(html, config)
    assert found is not None
    assert found.startswith(
        '---\ntitle: "Tides: \\"a\\" guide"\nurl: "https://e.org/t"\ndate: "2026-04-01"\n'
        'author: "Ada Example"\nlanguage: "en"\n---\n\nThe tide comes in.'
    )
    assert found.endswith(markdown(html, Config(fallback="html", limits={"blocks": 1})) or "-")
    assert markdown(html, Config(markdown={"front_matter": True}, fallback="empty", limits={"blocks": 1})) == ""
    assert markdown(html, Config(markdown={"front_matter": True}, fallback="none", limits={"blocks": 1})) is None


def test_links_of_the_content() -> None:
    """All links are included, in order, absolute and without duplicates. Images count by their alternative text."""
    html = """<p>See <a href="/a">the <b>first</b></a> and <a href="/a">the first</a>, <a href="/a">again</a>.</p>
    <ul><li><a href="b#c">In a list</a></li></ul><dl><dt><a href="/t">Term</a></dt><dd>x</dd></dl>
    <table><tr><th>x</th><th>y</th></tr><tr><td><a href="https://o.org/">In a table</a></td><td>z</td></tr></table>
    <blockquote><p><a href="/q">Quoted</a></p></blockquote><p><a href="javascript:x()">no link</a></p>
    <p><a href="/big.jpg"><img src="/small.jpg" alt="A boat"></a></p>"""
    assert outlinks(content_list(parse(html), "https://e.org/d/")) == (
        Outlink("https://e.org/a", "the first"),
        Outlink("https://e.org/a", "again"),
        Outlink("https://e.org/d/b#c", "In a list"),
        Outlink("https://e.org/t", "Term"),
        Outlink("https://o.org/", "In a table"),
        Outlink("https://e.org/q", "Quoted"),
        Outlink("https://e.org/big.jpg", "A boat"),
    )


def test_what_a_fallback_finds_is_cut_too() -> None:
    """A page with a fallback has chunks and links. With the fallback "none", it has none."""
    document = Document("<h1>One</h1><p>Text of <a href='/x'>it</a>.</p>", "https://e.org/")
    config = Config(fallback="html", chunks_field="c", links_field="l", meta_field="m")
    found = fall_back(document, config, FallbackReason.TIMEOUT)
    assert found.chunks is not None
    assert [chunk["headings"] for chunk in found.chunks] == [["One"]]
    assert found.links == [{"url": "https://e.org/x", "text": "it"}]
    assert found.details.items() >= fingerprints(found.text).items()

    none = fall_back(document, Config(fallback="none", chunks_field="c", links_field="l"), FallbackReason.TIMEOUT)
    assert (none.chunks, none.links) == (None, None)
