"""Main-HTML to items, beside the pages of tests/structured."""

from __future__ import annotations

from typing import get_args

import pytest
from lxml import etree

from scrapy_dripper.config import CONTENT_TYPES
from scrapy_dripper.output.content_list import content_list, numeral
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.items import (
    CodeBlock,
    Footnote,
    FootnoteMark,
    Footnotes,
    Item,
    Items,
    Link,
    List,
    ListItem,
    Paragraph,
    Quote,
    Sup,
    Table,
    Text,
    only,
)

URL = "https://example.org/a/b"


def items(body: str, url: str = URL) -> Items:
    return content_list(parse(f"<html><body>{body}</body></html>"), url)


def paragraph(text: str) -> Paragraph:
    return Paragraph((Text(text),))


def test_invalid_url_of_the_page() -> None:
    (item,) = items("<p><a href='/x'>x</a></p>", "http://[x")
    assert item == Paragraph((Link("/x", (Text("x"),)),))


@pytest.mark.parametrize(("length", "kept"), [(900, True), (1_001, False)])
def test_the_longest_title_of_a_link(length: int, kept: bool) -> None:
    (item,) = items(f'<p><a href="/x" title="{"t" * length}">Tide</a></p>')
    assert item == Paragraph((Link("https://example.org/x", (Text("Tide"),), "t" * length if kept else ""),))


def test_numerals_of_browsers() -> None:
    assert [numeral(n, "a") for n in (1, 26, 27, 703, 0)] == ["a", "z", "aa", "aaa", "0"]
    assert [numeral(n, "I") for n in (4, 9, 1994, 3999, 4000, -1)] == ["IV", "IX", "MCMXCIV", "MMMCMXCIX", "4000", "-1"]


@pytest.mark.parametrize(
    "html",
    [
        f"<ul class=tabs><li>{'npm ' * 60}<li>yarn</ul><div class=tab-content><div>One.</div><div>Two.</div></div>",
        f"<ul class=tabs>{'<li>npm' * 1_000}<li>yarn</ul><div class=tab-content>{'<div>One.</div>' * 1_001}</div>",
    ],
    ids=["long", "many"],
)
def test_tabs_that_are_none_for_their_size_stay(html: str) -> None:
    assert "- yarn" in markdown(items(html))


def test_a_mark_of_a_footnote_stands_at_its_word() -> None:
    text = "<p><span>The price</span><sup><a href=#n id=r>[1]</a></sup><span> rises.</span></p>"
    assert markdown(items(f"{text}<p><a href=#r id=n>[1]</a> By two.</p>")).startswith("The price[^1] rises.")


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
