"""The content list to Markdown."""

from __future__ import annotations

import re

import pytest

from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.items import (
    Code,
    CodeBlock,
    FootnoteMark,
    Formula,
    Image,
    Item,
    Link,
    List,
    ListItem,
    Paragraph,
    Run,
    Strong,
    Text,
    Title,
)

URL = "https://example.org/a/b"


def written(body: str, **options: str) -> str:
    return markdown(content_list(parse(f"<html><body>{body}</body></html>"), URL), **options)  # type: ignore[arg-type]


def line(*runs: Run) -> str:
    return markdown((Paragraph(runs),))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h3>a<br>b</h3>", "### a b"),
        ("<h1><a href='/a/b#top'>The page itself</a></h1>", "# The page itself"),
        (
            "<h2><a href='https://example.org/%61/b/'>The page</a> and <a href='c'>more</a></h2>",
            "## The page and [more](https://example.org/a/c)",
        ),
        ("<p><a href='/a/b'>in a text</a></p>", "[in a text](https://example.org/a/b)"),
        ("<p>Tea<em>™</em> or<strong>,</strong>better, c<em>o</em>ffee</p>", "Tea™ or,better, c*o*ffee"),
        ("<pre class=language-python>```\n</pre>", "````python\n```\n````"),
        ("<p>a<sup><a href=#fn1>1</a></sup></p><ol><li id=fn1><p>n</p><p>m</p></li></ol>", "a[^1]\n\n[^1]: n\n\n    m"),
        ("", ""),
        # Content of an entry is indented by its marker. Adjacent lists stay apart, and definitions have colons.
        ("<ul><li>a<ol start=3><li>b</ol></ul>", "- a\n\n  3. b"),
        ("<ul><li>a<pre>x\n\n y</pre><li>c</ul>", "- a\n\n  ```\n  x\n\n   y\n  ```\n\n- c"),
        ("<ul><li>a</ul><ul><li>b</ul><ul><li>c</ul>", "- a\n\n* b\n\n- c"),
        ("<ol><li>a</ol><ol><li>b</ol>", "1. a\n\n1) b"),
        ("<ol type=I start=3999><li>a<li>b</ol>", "- MMMCMXCIX. a\n- 4000\\. b"),
        ("<ul><li>a<hr></ul>", "- a\n\n  ___"),
        ("<dl><dt>t<dd><pre>x</pre><dd>d</dl>", "t\n\n```\nx\n```\n\nd"),
        ("<dl><dt>t<dd><ul><li>a</ul><dt>u<dd>d</dl>", "t\n\n- a\n\nu\n: d"),
        ("<dl><dd>d<dd>e</dl>", "d\n\ne"),
        ("<dl><dl><dd>d</dl></dl>", "d"),
        ("<ul><li>a</ul><dl><dt>t</dt></dl>", "- a\n\n* t"),
        ("<dl><dt>t<dd><ul><li>a</ul><dd><ul><li>b</ul></dl>", "t\n\n- a\n\n* b"),
        ("<dl><dt>$5<dd>6$</dl>", "\\$5\n: 6\\$"),  # one paragraph, to a reader without definition lists
        ("<table><tr><th>$/m<th>US$<tr><td>$5<td>$6</table>", "| \\$/m | US\\$ |\n| --- | --- |\n| $5 | $6 |"),
        ("<p>pay<br>$5<br>$ 10 off</p>", "pay\\\n\\$5\\\n\\$ 10 off"),
        ("<p>pay a<b>$5</b> in <code>\\$1</code></p>", "pay a\\$**5** in `\\$1`"),
        ("<p>US<b>$5</b></p>", "US$**5**"),
        ("<dl><dt><dd>d<dt>t<dd>e<dt><dd>f</dl>", "d\n\nt\n: e\n\nf"),  # terms that were not kept
        ("<dl><dt>t</dt><dt>u</dt></dl>", "- t\n- u"),
        ("<dl><dt></dt></dl>", ""),
        ("<ul><li>a<li><ul><li><ul><li>b</ul></ul><li>c</ul>", "- a\n- b\n- c"),  # levels without a text of their own
        (
            "<table><tr><th>h<th>i<tr><td>m<td><code>GET</code><br><code>PUT</code></table>",
            "| h | i |\n| --- | --- |\n| m | `GET`<br>`PUT` |",
        ),
        ("<p>a</p><hr role=presentation><p>b</p>", "a\n\nb"),
        # What moves out of a format takes its escape along, and is escaped together with the text around it.
        (r"<p>C<b>:\Users\me</b>ok</p>", r"C:\\**Users\me**ok"),
        ("<p>[x]<b>(</b>y) a&amp;<i><b>#</b></i>60; c&amp;lt<b>;d</b>", r"[x\](y) a&amp;#60; c&amp;lt;**d**"),
        (
            "<p><a href=c>a]:b</a> <a href=d>[a]: b</a>",
            r"[a\]&#58;b](https://example.org/a/c) [\[a\]: b](https://example.org/a/d)",
        ),
        ("<p><b><i>a</i> b<i>c</i></b>d <s>~e</s>", r"<strong>*a* b*c*</strong>d ~~\~e~~"),
    ],
)
def test_markdown(html: str, expected: str) -> None:
    assert written(html) == expected


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
    ("text", "expected"),
    [
        ("_a_ __init__", "\\_a\\_ \\_\\_init\\_\\_"),
        ("$5 and $6, US$7, $8-$9", "$5 and $6, US$7, $8-$9"),
        ("$5 and 6$", "\\$5 and 6\\$"),
        ("$5, US$ 7", "\\$5, US\\$ 7"),
        ("$5 and 6$\u0665", "\\$5 and 6\\$\u0665"),  # a digit is one of ten
        ("$5\u00a0$ 6", "\\$5\u00a0\\$ 6"),
        ("5$ and $6", "5$ and $6"),
        ("$a$", "\\$a\\$"),
        ("$$", "\\$\\$"),  # which would go on until the next such price
        ("a < b <3", "a < b <3"),
        ("<b> </b> <!-- <?x", "&lt;b> &lt;/b> &lt;!-- &lt;?x"),
        ("&amp; & &c", "&amp;amp; & &c"),
        ("C:\\dir \\* \\", "C:\\dir \\\\\\* \\\\"),
        ("[a] [b](c)", "[a] [b\\](c)"),
        ("[a]: b", "\\[a\\]: b"),
        ("[[a]]", "\\[[a]]"),
        ("{a} b", "{a} b"),
        ("a {b}", "a \\{b}"),
        ("[^1]", "\\[^1]"),
        ("~5 km ~~x~~", "~5 km \\~\\~x\\~\\~"),
        ("#a", "#a"),
        ("-a", "-a"),
        ("* a", "\\* a"),
        ("1. a", "1\\. a"),
        ("1.5 a", "1.5 a"),
        ("2020) a", "2020\\) a"),
        ("===", "\\==="),
        ("[ ] a", "\\[ ] a"),
        ("~~~", "\\~\\~\\~"),
        ("| - |", "\\| - |"),
        (": a", "\\: a"),
        ("a # b", "a # b"),
    ],
)
def test_text_stays_text(text: str, expected: str) -> None:
    """Characters that would be syntax in their place are escaped, and others are not."""
    assert line(Text(text)) == expected


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ((Strong((Text("Note:"),)), Text("text")), "**Note**:text"),
        ((Text("a"), Strong((Text("“b”"),)), Text("c")), "a“**b**”c"),
        ((Text("中"), Strong((Text("（强）"),)), Text("文")), "中（**强**）文"),
        ((Text("a"), Strong((Text("b"),)), Text("c")), "a**b**c"),
        ((Text("a"), Strong((Code("b"),)), Text("c")), "a<strong>`b`</strong>c"),
        ((Text("a "), Strong((Code("b"),)), Text(".")), "a **`b`**."),
        ((Text("Hi!"), Link("/x", (Text("b"),))), "Hi\\![b](/x)"),
        ((Link("/x", (Text("[a] ]"),)),), "[\\[a\\] \\]](/x)"),
        ((Link("/x (1", (Text("a"),)),), "[a](/x%20%281)"),
        ((Link("/x_(1)", (Text("a"),)),), "[a](/x_(1))"),
        ((Link("/x&lt;=<>", (Text("a"),)),), "[a](/x&amp;lt;=%3C%3E)"),
        ((Image("/i", "a]*b", 't"'),), '![a\\]\\*b](/i "t\\"")'),
        ((Code("`a"),), "`` `a ``"),
        ((Code("a``b`c"),), "```a``b`c```"),
        ((Formula("a\n b", "mathml"),), "$a b$"),
        ((Text("a"), FootnoteMark("1"), Text(": b")), "a[^1]: b"),
        ((FootnoteMark("1"), Text(": b")), "[^1]\\: b"),
    ],
)
def test_runs(runs: tuple[Run, ...], expected: str) -> None:
    """Emphasis that Markdown cannot delimit is HTML. URLs, alternative texts and code keep their characters."""
    assert line(*runs) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Title(1, (Text("C #"),)), "# C \\#"),
        (Title(1, (Text("1. a"),)), "# 1. a"),
        (CodeBlock("a\n\n````\nb", "c++"), "`````c++\na\n\n````\nb\n`````"),
        (CodeBlock("a", "x `y"), "```xy\na\n```"),
        (Formula("a\n\n\nb", "mathml", True), "$$\na\nb\n$$"),
        (List("ordered", (ListItem((Paragraph((Text("a"),)),)),), 2_000_000_000), "999999998. a"),
    ],
)
def test_items(item: Item, expected: str) -> None:
    assert markdown((item,)) == expected


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
