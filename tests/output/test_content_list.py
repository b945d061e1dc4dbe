"""Main-HTML to items, beside the pages of tests/structured."""

from __future__ import annotations

from typing import get_args

import pytest
from lxml import etree

from scrapy_dripper.checks import CONTENT_TYPES
from scrapy_dripper.output.content_list import content_list, numeral
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.items import (
    CodeBlock,
    Footnote,
    Footnotes,
    Item,
    Items,
    Link,
    List,
    ListItem,
    Paragraph,
    Quote,
    Table,
    Text,
    only,
)

URL = "https://example.org/a/b"


def items(body: str, url: str = URL) -> Items:
    return content_list(parse(f"<html><body>{body}</body></html>"), url)


def paragraph(text: str) -> Paragraph:
    return Paragraph((Text(text),))


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
        "<ul class=tabs><li>npm<li>yarn</ul>",
    ],
    ids=["long", "many", "without panels"],
)
def test_tabs_without_panels_and_too_large_ones_stay(html: str) -> None:
    assert "- yarn" in markdown(items(html))


def test_a_tree_that_is_not_html() -> None:
    """Comments, processing instructions and unknown tags cause no errors."""
    tree = etree.fromstring("<x>a<!-- b --><?c d?><y-z>e</y-z><o:p xmlns:o='o'>f</o:p></x>")
    assert content_list(tree) == (paragraph("aef"),)


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
    html += "<p>m<sup><a href=#fn1>1</a></sup></p><ol><li id=fn1>n <img src=n.png></ol>"
    html += "<table><tr><th>o<th><img src=i.png><tr><td>p<td><img src=i.png> q</table>"
    kept = only(items(html), ("paragraph", "footnotes", "table"))
    assert [item.type for item in kept] == ["paragraph", "paragraph", "footnotes", "table"]
    assert "Image(" not in repr(kept)
    assert kept[0] == Paragraph((Text("a "), Link("https://example.org/l", (Text(" b"),))))
    assert kept[2] == Footnotes((Footnote("1", (paragraph("n "),)),))


def test_the_types_of_the_setting_are_those_of_the_items() -> None:
    assert {*CONTENT_TYPES, "post"} == {kind.type for kind in get_args(Item)}  # marks of posts always stay
    assert Table.type in CONTENT_TYPES
