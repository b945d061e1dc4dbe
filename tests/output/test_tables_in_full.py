"""Every kind of item in a table cell, in HTML tables and in simple ones; and footnotes with unusual marks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.output import write
from scrapy_dripper.output.markdown import markdown as write_markdown
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.parse import parse

NOTE = "<p>Behind it<ol><li id=fn1>note</ol>"


def markdown(html: str, **options: Any) -> str:
    page = cut(parse(html), "https://e.org/")
    return write_markdown(write(page, np.ones(len(page.blocks), dtype=np.bool_), Config()).content, **options)


@pytest.mark.parametrize(
    ("cell", "as_html", "as_line"),
    [
        ("k", "k", "k"),
        ("<p>p<p>q", "<p>p</p><p>q</p>", "p q"),
        ("<h3>t</h3>u", "<h3>t</h3><p>u</p>", "t u"),
        ("<pre>a\nb</pre>", "<pre><code>a\nb</code></pre>", "`a b`"),
        ("<ul><li>i<li>j</ul>", "<ul><li>i</li><li>j</li></ul>", "i j"),
        ("<dl><dt>T<dd>D</dl>", "<dl><dt>T</dt><dd>D</dd></dl>", "T D"),
        ("<math display=block><mi>x</mi></math>", "$$x$$", "$x$"),
        ("<blockquote>q</blockquote>", "<blockquote><p>q</p></blockquote>", "q"),
        ("<hr>", "<hr>", ""),
        ("a<br>b", "a<br>b", "a<br>b"),
        ("<ruby>漢<rt>kan</rt></ruby>", "<ruby>漢<rt>kan</rt></ruby>", "漢(kan)"),
        (
            "<a href=/l><img src=/i.png alt=I></a>",
            '<a href="https://e.org/l"><img src="https://e.org/i.png" alt="I"></a>',
            "[![I](https://e.org/i.png)](https://e.org/l)",
        ),
        ("a<sup><a href=#fn1>1</a></sup>", "a[^1]", "a[^1]"),
    ],
)
def test_what_is_in_a_cell(cell: str, as_html: str, as_line: str) -> None:
    """HTML loses nothing. In a simple table, the content is one line, repeated in each row and column of the span."""
    table = f"<table><tr><th>a<th>b<th>c<tr><td rowspan=3>{cell}<td>x<td>y<tr><td>1<td>2<tr><td colspan=2>3</table>"

    kept, lined = markdown(table + NOTE), markdown(table + NOTE, tables="linear")

    assert f'<tr><td rowspan="3">{as_html}</td><td>x</td><td>y</td></tr>' in kept
    assert '<tr><td colspan="2">3</td></tr>' in kept
    assert lined.startswith(
        f"| a | b | c |\n| --- | --- | --- |\n| {as_line} | x | y |\n| {as_line} | 1 | 2 |\n| {as_line} | 3 | 3 |\n"
    )


def test_a_table_within_a_cell_is_text_in_a_line() -> None:
    """Its cells follow each other."""
    inner = "<table><tr><th>a<th>b<tr><td>1<td>2</table>"
    table = f"<table><tr><th>a<th>b<th>c<tr><td rowspan=2>{inner}<td>x<td>y<tr><td>1<td>2</table>"
    assert "\n| a b 1 2 | x | y |\n" in markdown(table, tables="linear")


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (
            "<figure><img src=http://x.test/a.png><figcaption>An apple</figcaption></figure>",
            "![](http://x.test/a.png) An apple",
        ),
        ("<video src=http://x.test/a.mp4></video>", "<http://x.test/a.mp4>"),
        ("<audio src=http://x.test/a.mp3 title=Song></audio>", "[Song](http://x.test/a.mp3)"),
    ],
)
def test_pictures_and_players_within_a_cell_stand_in_its_line(cell: str, expected: str) -> None:
    """Captions are separated from them, and players become links."""
    table = f"<table><tr><th>a<th>b<th>c<tr><td rowspan=2>1<td>{cell}<td>y<tr><td>1<td>2</table>"
    assert f"\n| 1 | {expected} | y |\n" in markdown(table, tables="linear")


def test_a_cell_that_spans_very_many_is_not_repeated_for_ever() -> None:
    """A few cells with spans of 60,000 would become 60 million cells in Markdown."""
    rows = "".join(f"<tr><td colspan=1000 rowspan=60>r{i}" for i in range(60))

    written = markdown(f"<table><tr><th>a<th>b{rows}</table>", tables="linear")

    assert all(f"r{i} " in written for i in range(60))
    assert written.count("|") < 50_000


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (
            "<p>a<a class=footnote-ref href=#n1>*</a> b<a class=footnote-ref href=#n2>*</a> c</p>"
            "<ol><li id=n1>x<li id=n2>y</ol>",
            "a[^1] b[^2] c\n\n[^1]: x\n\n[^2]: y",
        ),
        (
            "<p>a<sup><a href=#fn2>2</a></sup> b<sup><a href=#fn1>2</a></sup></p><ol><li id=fn1>x<li id=fn2>y</ol>",
            "a[^2] b[^2a]\n\n[^2a]: x\n\n[^2]: y",
        ),
        (
            "<p>a<sup><a href=#fn1>1</a></sup></p>"
            "<ol><li id=fn1>n <a>x</a> <a href=/away>2</a> <a href=#ref1>1</a></ol>",
            "a[^1]\n\n[^1]: n x [2](https://e.org/away)",
        ),
        ("<p id=fn1>self<sup><a href=#fn1>1</a></sup></p>", "self<sup>1</sup>"),
        (
            "<p>a<sup><a href=#fn1>1</a></sup></p>"
            "<section><b><i><u><s><em><span id=fn1>n</span></em></s></u></i></b></section>",
            "a<sup>1</sup>",
        ),
    ],
)
def test_footnotes_with_unusual_marks(html: str, expected: str) -> None:
    """Marks that are stars or duplicates get new numbers. Marks without a footnote become text."""
    assert markdown(html).startswith(expected)
