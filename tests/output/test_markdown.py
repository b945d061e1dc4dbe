"""The content list to Markdown, beside the pages of tests/structured, and Main-HTML to Markdown with html2text."""

from __future__ import annotations

import re

import pytest

from scrapy_dripper.output import html2text_markdown
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.items import (
    CodeBlock,
    FootnoteMark,
    Formula,
    Item,
    List,
    ListItem,
    Paragraph,
    Text,
)

URL = "https://example.org/a/b"


def written(body: str, **options: str) -> str:
    return markdown(content_list(parse(f"<html><body>{body}</body></html>"), URL), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Paragraph((Text("$5\u00a0$ 6"),)), "\\$5\u00a0\\$ 6"),
        (Paragraph((Text("$a$"),)), "\\$a\\$"),
        (Paragraph((Formula("a\n b", "mathml"),)), "$a b$"),
        (Paragraph((Text("a"), FootnoteMark("1"), Text(": b"))), "a[^1]: b"),
        (Paragraph((FootnoteMark("1"), Text(": b"))), "[^1]\\: b"),
        (CodeBlock("a", "x `y"), "```xy\na\n```"),
        (Formula("a\n\n\nb", "mathml", True), "$$\na\nb\n$$"),
        (List("ordered", (ListItem((Paragraph((Text("a"),)),)),), 2_000_000_000), "999999998. a"),
    ],
)
def test_items_that_no_html_gives(item: Item, expected: str) -> None:
    """Markdown stays valid whatever the content list holds, as one that a user has made."""
    assert markdown((item,)) == expected


def test_links() -> None:
    """Links are kept, replaced by their text, or numbered, with each URL once."""
    html = "<p><a href=/x>one</a> <b><a href=/y>two</a></b> [z] <a href=/x>three</a></p><a href=/x><img src=/i.png></a>"
    image = "![](https://example.org/i.png)"
    assert written(html, links="drop") == f"one **two** [z] three\n\n{image}"
    assert written(html, links="citations") == (
        f"[one][1] **[two][2]** \\[z\\] [three][1]\n\n[{image}][1]\n\n"
        "[1]: https://example.org/x\n[2]: https://example.org/y"
    )


def test_links_of_players_and_tables_can_be_dropped() -> None:
    table = "<table><tr><th>a<th>b<tr><td rowspan=2><a href=/x>1</a><td>2<tr><td>3</table>"
    html = table + "<video src=/v.mp4 title=t></video>"
    assert "href" in written(html)
    assert "href" not in written(html, links="drop")
    assert written(html, links="drop").endswith("\n\nt")


@pytest.mark.parametrize(
    "html",
    [
        "<p>" + "- \n1. \n+ \n" * 30_000 + "</p>",
        "<p>" + "*_" * 100_000 + "</p>",
        "<p>" + "[" * 100_000 + "](" * 70_000 + "</p>",
        "<p>" + "$a_1 " * 30_000 + "</p>",
        "<p>" + "`" * 100_000 + "</p>",
        "<p>a<b>" + "!" * 100_000 + "</b>b</p>",
        "<p>" + "a<b>!!</b>" * 10_000 + "</p>",
        "<p>" + "中\n" * 70_000 + "</p>",
    ],
)
def test_marks_take_linear_time(html: str) -> None:
    """With anything quadratic, these inputs would take minutes or hours."""
    assert len(written(html)) < 5 * len(html)


@pytest.mark.parametrize(
    ("start", "content", "end"),
    [
        ("<blockquote>", "<pre>a" + "\na" * 50_000 + "</pre>", "</blockquote>"),
        ("<blockquote>", "a<br>" * 10_000, "</blockquote>"),
        ("<ul><li>", "<li>x</li>" * 5_000, "</li></ul>"),
        ("<ul><li>a", "", "</li></ul>"),
        ("<blockquote><ol start=999999998><li>", "<pre>a" + "\na" * 50_000 + "</pre>", "</li></ol></blockquote>"),
    ],
)
def test_nesting_is_bounded(start: str, content: str, end: str) -> None:
    """Lines in a thousand quotes or lists do not begin with a thousand markers."""
    html = start * 1_000 + content + end * 1_000
    result = written(html)
    assert len(result) < 100_000 + 10 * len(html)
    assert re.sub(r"\W", "", result)


def test_depth_that_is_shown() -> None:
    """Common nesting is kept, and deeper text moves to the last level."""
    assert "> > > b" in written("<blockquote>" * 3 + "<p>a</p><p>b</p>" + "</blockquote>" * 3)
    deep = written("<blockquote>" * 20 + "<p>a</p><p>b</p>" + "</blockquote>" * 20)
    assert "> " * 10 + "b" in deep
    assert "> " * 11 not in deep


# ---------------------------------------------------------------------- html2text
@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p><a href='/x'>link</a></p>", "[link](https://example.org/x)"),
        ("<p><a href='https://[x]/'>link</a></p>", "[link](https://\\[x\\]/)"),
        ("<p>" + "word " * 100 + "</p>", ("word " * 100).strip()),
        ("<p>é—“q”</p>", "é—“q”"),
        ("<p><b>b</b> <i>i</i></p>", "**b** *i*"),
    ],
)
def test_html2text(html: str, expected: str) -> None:
    """Links are absolute, lines are not wrapped, and characters stay Unicode."""
    assert html2text_markdown(f"<html><body>{html}</body></html>", "https://example.org/a/b") == expected


KATEX = (
    '<span class="katex"><span class="katex-mathml"><math><semantics><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow>'
    '<annotation encoding="application/x-tex">{}</annotation></semantics></math></span><span class="katex-html" '
    'aria-hidden="true"><span>x</span><span>2</span></span></span>'
)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (f"<p>Let {KATEX.format('x^2')} be.</p>", "Let $x^2$ be."),
        (f"<p>{KATEX.format('a_1')}, {KATEX.format('{*b*}')}</p>", "$a_1$, ${*b*}$"),
        ("<p>so <span class='katex-display'>" + KATEX.format(r"\left\{x\right\}") + "</span> and</p>",
         "so \n\n$$\\left\\{x\\right\\}$$\n\nand"),
        ("<p>a <math><msup><mi>x</mi><mn>2</mn></msup></math> b</p>", "a $x^2$ b"),
        ("<p>a\ufdd07\ufdd0b</p>", "ab"),
        ("<p>a<img src='/i.png' alt='alt'>b<script>x</script></p>", "a![alt](https://example.org/i.png)b"),
    ],
)  # fmt: skip
def test_formulas_are_their_latex_in_html2text_as_well(html: str, expected: str) -> None:
    """html2text itself writes x^2 of KaTeX as ``xx^2x2``, and escapes signs of LaTeX."""
    assert html2text_markdown(f"<html><body>{html}</body></html>", "https://example.org/") == expected
