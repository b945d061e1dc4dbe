"""Main-HTML to items."""

from __future__ import annotations

from typing import get_args

import pytest
from lxml import etree

from scrapy_dripper.checks import CONTENT_TYPES
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.items import (
    Code,
    CodeBlock,
    Footnote,
    FootnoteMark,
    Footnotes,
    Image,
    Item,
    Items,
    LineBreak,
    Link,
    List,
    ListItem,
    Paragraph,
    Quote,
    Run,
    Strong,
    Sup,
    Table,
    Text,
    Title,
    Video,
    only,
)

URL = "https://example.org/a/b"


def items(body: str, url: str = URL) -> Items:
    return content_list(parse(f"<html><body>{body}</body></html>"), url)


def runs(body: str) -> tuple[Run, ...]:
    """Return the runs of the only paragraph."""
    (item,) = items(body)
    assert isinstance(item, Paragraph)
    return item.runs


def paragraph(text: str) -> Paragraph:
    return Paragraph((Text(text),))


def titles(body: str) -> list[str]:
    """Return the titles as levels and texts, and other items by their type."""
    return [
        f"{item.level} {''.join(run.text for run in item.runs if isinstance(run, (Text, Code)))}"
        if isinstance(item, Title)
        else item.type
        for item in items(body)
    ]


# ---------------------------------------------------------------------- lines
@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p><b>a</b><b>b</b></p>", (Strong((Text("ab"),)),)),
        ("<p><b>a</b> <strong>b</strong></p>", (Strong((Text("a b"),)),)),
        ("<p><b>a</b>, <b>b</b></p>", (Strong((Text("a"),)), Text(", "), Strong((Text("b"),)))),
        ("<p>ภาษา&#8203;ไทย</p>", (Text("ภาษา\u200bไทย"),)),  # where no space parts words
        ("<p>29 €<span class='price sr-only'>Now it is 29 €.</span> each</p>", (Text("29 € each"),)),
        ("<p>15 reviews<span class=sr-only>of 5 stars</span></p>", (Text("15 reviews of 5 stars"),)),
        ("<p>the map<span class=sr-only>(opens in a new tab)</span></p>", (Text("the map"),)),
        (
            "<p>Rated<span class=sr-only>4 of 5</span>by us</p>",
            (Text("Rated 4 of 5 by us"),),
        ),  # it is said nowhere else
        ("<p>ก&#8203;<b>ข</b></p>", (Text("ก\u200b"), Strong((Text("ข"),)))),
        ("<p><b>a<b>b</b></b></p>", (Strong((Text("ab"),)),)),
        ("<p><code> a <b>b</b>c</code></p>", (Code("a bc"),)),
        ("<p><code><a href=/x>F</a>()</code></p>", (Link("https://example.org/x", (Code("F"),)), Code("()"))),
        ("<p><b>a<br></b>b</p>", (Strong((Text("a"),)), LineBreak(), Text("b"))),
    ],
)
def test_runs(html: str, expected: tuple[Run, ...]) -> None:
    """White space collapses and is outside of formats. Adjacent formats of the same kind are merged."""
    assert runs(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<a href=/1>one</a><a href=/2>two</a>", "one two"),
        ("<a href=/1>ba</a><a href=/1>con</a> fat", "bacon fat"),
        ("the <span>N</span><span>ew</span><span> York</span>", "the New York"),
        ("<span>K</span><small>aspar’s</small> time", "Kaspar’s time"),
        ("includin<span><span>g</span></span><span><b>é</b>t</span>", "includingét"),
        ("<span>Anna Brix</span><span>Editor</span>", "Anna Brix Editor"),
        ("<span>@anna</span><span>https://x.example</span>", "@anna https://x.example"),
        ("<span>12</span><span>pages</span>", "12 pages"),
        ("<code>git</code><span></span><code>push</code>", "git push"),
        ("<span>Price:</span><span>$5</span>", "Price: $5"),
        ("<span>weave</span><span>(</span><span>x</span>", "weave(x"),
        ("日本\n<b>語</b>", "日本語"),
        ("日本\nword", "日本 word"),
        ("a\u00a0b", "a b"),
    ],
)
def test_spaces(html: str, expected: str) -> None:
    """Adjacent links are separated as on the page, and so are names. A word that tags split is one word. No space is
    invented between CJK characters.
    """
    assert "".join(etree_text(run) for run in runs(f"<p>{html}</p>")) == expected


def etree_text(run: Run) -> str:
    return run.text if isinstance(run, (Text, Code)) else "".join(map(etree_text, getattr(run, "runs", ())))


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("http://e.org/x", "http://e.org/x"),
        ("/x?a=1", "https://example.org/x?a=1"),
        ("x", "https://example.org/a/x"),
        ("../x", "https://example.org/x"),
        ("//e.org/x", "https://e.org/x"),
        ("?q", "https://example.org/a/b?q"),
        ("#part", "https://example.org/a/b#part"),
        (" /x ", "https://example.org/x"),
        ("mailto:a@e.org", "mailto:a@e.org"),
        ("https://[your-domain]/", "https://[your-domain]/"),
        ("//[z", "//[z"),
    ],
)
def test_urls(href: str, expected: str) -> None:
    """URLs are made absolute if they can be resolved."""
    (run,) = runs(f"<p><a href='{href}'>x</a></p>")
    assert isinstance(run, Link)
    assert run.href == expected


@pytest.mark.parametrize("href", ["", "#", "javascript:x()", " java\tscript:x()", "data:text/html,x"])
def test_invalid_links(href: str) -> None:
    assert runs(f"<p><a href='{href}'>x</a></p>") == (Text("x"),)


def test_invalid_url_of_the_page() -> None:
    (item,) = items("<p><a href='/x'>x</a></p>", "http://[x")
    assert item == Paragraph((Link("/x", (Text("x"),)),))


def test_a_link_around_blocks_is_the_first_of_them() -> None:
    """A card becomes one link and not one for each line. A link around its picture leaves the link of its text."""
    link = Link("https://example.org/x", (Text("T"),))
    image = Image("https://example.org/i.jpg", href=link.href)
    assert items("<a href=/x><h3>T</h3><p>T</p></a>") == (Title(3, (link,)), paragraph("T"))
    assert items("<a href=/x><img src=/i.jpg><h3>T</h3><p>T</p></a>") == (image, Title(3, (link,)), paragraph("T"))
    assert items("<div>By A. <a href=/x><div>T</div></a></div>") == (paragraph("By A."), Paragraph((link,)))


@pytest.mark.parametrize(
    ("amount", "entry", "is_joined"),
    [
        ("2 dl", "flour", True),
        ("250 g or 1 cup heap", "x" * 60, True),
        ("250 g or about 1 cup, and more", "flour", False),
        ("2 dl", "x" * 100, False),
    ],
)
def test_an_amount_stands_beside_its_entry(amount: str, entry: str, is_joined: bool) -> None:
    [found] = items(f"<ul><li><div>{amount}</div><div>{entry}</div></li></ul>")
    assert isinstance(found, List)
    assert len(found.items[0].items) == (1 if is_joined else 2)


@pytest.mark.parametrize(
    ("title", "kept"),
    [
        ("Tide tables of 2026", "Tide tables of 2026"),
        ("TIDE", ""),  # the text of the link
        ("External link - https://sea.example.org", ""),  # its site
        ("sea:tide", ""),  # its URL
        ("Opens in a new window", ""),
        ("\u00bb", ""),
        ("Tide#", ""),
        ("Ti", "Ti"),
        ("t" * 900, "t" * 900),
        ("t" * 1_001, ""),
    ],
)
def test_title_of_a_link(title: str, kept: str) -> None:
    """The title is kept if it adds something to the text and the URL."""
    (item,) = items(f'<p><a href="https://sea.example.org/sea:tide" title="{title}">Tide</a></p>')
    assert item == Paragraph((Link("https://sea.example.org/sea:tide", (Text("Tide"),), kept),))


def test_a_block_in_the_ruby_of_a_heading_leaves_the_rest_of_the_page_as_it_is() -> None:
    assert titles("<h2>a<ruby>b<span><p>c</p></span></ruby></h2><p>d</p><p>e</p>") == [
        "2 ab c",
        "paragraph",
        "paragraph",
    ]


# ---------------------------------------------------------------------- blocks
def test_empty_lines_in_a_layout_table_part_paragraphs() -> None:
    html = "<table role=presentation><tr><td>one<br><br>two</td></tr></table>"
    assert items(html) == (paragraph("one"), paragraph("two"))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h2><b>T</b></h2>", ["2 T"]),
        ("<h2><div>T</div><div>U</div></h2>", ["2 T U"]),
        ("<h2>T<p>a</p><p>b</p></h2>", ["2 T", "paragraph", "paragraph"]),
        ("<h2>T<ul><li>a</ul></h2>", ["2 T", "list"]),
        ("<h2>T<pre>a</pre></h2>", ["2 T", "code"]),
        ("<h2>T<table><tr><th>a<th>b<tr><td>c<td>d</table></h2>", ["2 T", "table"]),
        ("<h2>T <a class=permalink href=/page#t>Permalink</a></h2>", ["2 T"]),
        ("<h2><code>f</code></h2>", ["2 f"]),
    ],
)
def test_titles(html: str, expected: list[str]) -> None:
    """A title is one line, and ends before blocks that it cannot contain. Permalink signs are removed."""
    assert titles(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>x <img src=i.png> y</p>", [Paragraph((Text("x "), Image("https://example.org/a/i.png"), Text(" y")))]),
        ("<img data-src=/i.png src=b.gif><p><img src=/i.png alt=a></p>", [Image("https://example.org/i.png", "a")]),
        (
            "<figure><a href=/x><img src=/i.png></a><figcaption>c <b>d</b></figcaption></figure>",
            [Image("https://example.org/i.png", "", "", (Text("c "), Strong((Text("d"),))), "https://example.org/x")],
        ),
        ("<figure><pre>x</pre><figcaption>c</figcaption></figure>", [CodeBlock("x"), paragraph("c")]),
        (
            "<figure><figcaption><span class=sr-only>Terminal window</span></figcaption><pre>x</pre></figure>",
            [CodeBlock("x")],
        ),
        (
            "<figure><figcaption><span class=sr-only>A map</span></figcaption><p>x</p></figure>",
            [paragraph("A map"), paragraph("x")],
        ),
        ("<figure><figcaption>c</figcaption>y<pre>x</pre></figure>", [paragraph("c"), paragraph("y"), CodeBlock("x")]),
        ("<figure>y<figcaption>c</figcaption><pre>x</pre></figure>", [paragraph("y"), paragraph("c"), CodeBlock("x")]),
        (
            "<figure><img src=/i.png><figcaption><h3>t</h3><p>c</p></figcaption></figure>",
            [Image("https://example.org/i.png"), Title(3, (Text("t"),)), paragraph("c")],
        ),
        (
            "<figure><img src=/i.png><figcaption><p>c</p></figcaption></figure>",
            [Image("https://example.org/i.png", caption=(Text("c"),))],
        ),
        (
            "<iframe src=https://www.youtube.com/embed/x></iframe>"
            "<div><iframe src=https://www.youtube.com/embed/x></iframe></div>",
            [Video("https://www.youtube.com/embed/x")],
        ),
        ("<figure><figcaption>c</figcaption></figure>", [paragraph("c")]),
        (
            "<figure><img src=/b.png><figure><img src=/a.png><figcaption>c</figcaption></figure></figure>",
            [Image("https://example.org/b.png"), Image("https://example.org/a.png", caption=(Text("c"),))],
        ),
        (
            "<picture><img src=/i.png><figcaption>c</figcaption></picture>",
            [Image("https://example.org/i.png", caption=(Text("c"),))],
        ),
    ],
)  # fmt: skip
def test_media(html: str, expected: list[Item]) -> None:
    """Images in a line stay there, and others become items. Figures give them captions, and duplicates are dropped."""
    assert list(items(html)) == expected


# ---------------------------------------------------------------------- footnotes
def test_footnotes_of_word() -> None:
    """Marks refer to their footnotes. Links back and brackets are removed."""
    html = "<p>a<a href=#_ftn1 name=_ftnref1>[1]</a></p><p><a href=#_ftnref1 name=_ftn1>[1]</a> n</p>"
    expected = (Paragraph((Text("a"), FootnoteMark("1"))), Footnotes((Footnote("1", (paragraph("n"),)),)))
    assert items(html) == expected


def test_notes_without_a_mark_are_in_the_list_too() -> None:
    html = "<p>a<sup><a href=#fn2>2</a></sup></p><ol><li id=fn1>n</li><li id=fn2>m</li></ol>"
    notes = (Footnote("1", (paragraph("n"),)), Footnote("2", (paragraph("m"),)))
    assert items(html)[1] == Footnotes(notes)


@pytest.mark.parametrize(
    "html",
    [
        "<p>see <a href=#part>1</a></p><div id=part>text</div>",
        "<p>a<sup><a href=#top>the long way up</a></sup></p><p id=top>text</p>",
    ],
)
def test_links_within_the_page_that_are_not_footnotes(html: str) -> None:
    """They lead to no footnote, or their text is not a mark."""
    found = items(html)
    assert not any(isinstance(item, Footnotes) for item in found)
    assert "Link(" in repr(found)


def test_mark_of_a_footnote_that_was_not_kept() -> None:
    """The mark becomes text, because it has no target. A word is never a mark."""
    (item,) = items("<p>a <a class='reference internal' href='#api'>API</a></p>")
    assert "Link(" in repr(item)
    assert items("<p>a<sup><a href=#fn1>1</a></sup></p>") == (Paragraph((Text("a"), Sup((Text("1"),)))),)


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
            "a[^1]\n\n[^1]: n x [2](https://example.org/away)",
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
    assert markdown(items(html)).startswith(expected)


def test_a_tree_that_is_not_html() -> None:
    """Comments, processing instructions and unknown tags cause no errors."""
    tree = etree.fromstring("<x>a<!-- b --><?c d?><y-z>e</y-z><o:p xmlns:o='o'>f</o:p></x>")
    assert content_list(tree) == (paragraph("aef"),)


# ---------------------------------------------------------------------- types
def test_only_some_types() -> None:
    html = "<h2>T</h2><p>a <img src=i.png></p><ul><li>c<pre>d</pre></ul><blockquote>e</blockquote><pre>f</pre>"
    found = items(html)
    assert [item.type for item in only(found, ("title", "code"))] == ["title", "code"]
    assert only(found, ("paragraph",)) == (paragraph("a "),)
    in_list = (paragraph("c"), CodeBlock("d"))
    assert only(found, ("list",)) == (List("unordered", (ListItem(in_list),)),)
    assert only(found, ("quote",)) == (Quote((paragraph("e"),)),)
    assert only(found, ("quote", "paragraph")) == (paragraph("a "), Quote((paragraph("e"),)))
    assert only(found, [item.type for item in found] + ["image"]) == found


def test_only_some_types_within_links_notes_and_tables() -> None:
    """A link without its image keeps its text. An image alone leaves nothing."""
    html = "<p>a <a href=/l><img src=i.png> b</a></p><p><a href=/l><img src=i.png></a></p>"
    html += "<p>m<sup><a href=#fn1>1</a></sup></p><ol><li id=fn1>n <img src=i.png></ol>"
    html += "<table><tr><th>o<th><img src=i.png><tr><td>p<td><img src=i.png> q</table>"
    kept = only(items(html), ("paragraph", "footnotes", "table"))
    assert [item.type for item in kept] == ["paragraph", "paragraph", "footnotes", "table"]
    assert "Image(" not in repr(kept)
    assert kept[0] == Paragraph((Text("a "), Link("https://example.org/l", (Text(" b"),))))
    assert kept[2] == Footnotes((Footnote("1", (paragraph("n "),)),))


def test_the_types_of_the_setting_are_those_of_the_items() -> None:
    assert {*CONTENT_TYPES, "post"} == {kind.type for kind in get_args(Item)}  # marks of posts always stay
    assert Table.type in CONTENT_TYPES
