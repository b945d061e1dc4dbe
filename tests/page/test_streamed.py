"""Late parts of React pages are moved to the places where React's scripts put them."""

from __future__ import annotations

import re

import pytest
from lxml import etree

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.page import read
from scrapy_dripper.page.parse import parse


def sent(html: str) -> str:
    """Return a document whose parts have the ids that React writes."""
    return re.sub(r"id=(S:\w+)", r'id="\1"', f"<html><body>{html}</body></html>")


def body(html: str, streamed: bool = True) -> str:
    tree = parse(sent(html), streamed=streamed)
    written: str = etree.tostring(tree.find("body"), encoding="unicode", method="html", with_tail=False)
    return written.removeprefix("<body>").removesuffix("</body>")


SLOT = '<!--$?--><template id="B:{0}"></template>{1}<!--/$-->'


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (f"<p>a</p>{SLOT.format(0, '<i>Loading</i> ...')}<p>c</p><div hidden id=S:0><p>b</p></div>",
         "<p>a</p><p>b</p><p>c</p>"),
        (f"a {SLOT.format('1f', '')} c<div hidden id=S:1f>b</div> d", "a b c d"),
        # what is shown meanwhile has boundaries of its own
        (SLOT.format(0, "<!--$-->x<!--/$-->y") + "<p>c</p><div hidden id=S:0><p>b</p></div>", "<p>b</p><p>c</p>"),
        # a part in a part, whichever comes first
        (f"{SLOT.format(0, 'w')}<div hidden id=S:1>b</div><div hidden id=S:0><p>a</p>{SLOT.format(1, 'w')}</div>",
         "<p>a</p>b"),
        ("<ul><li><template id=\"P:3\"></template></li></ul><div hidden id=S:3>b</div>", "<ul><li>b</li></ul>"),
        # React 18 numbers places and parts apart, and only its scripts say what belongs where
        ('<p>a<template id="P:3"></template></p><!--$?--><template id="B:3"></template>w<!--/$-->'
         '<div hidden id=S:3>b</div><div hidden id=S:5>c</div><script>$RS("S:3","P:3");$RC("B:3","S:5")</script>',
         '<p>ab</p>c<script>$RS("S:3","P:3");$RC("B:3","S:5")</script>'),
        ('<template id="P:3"></template><template id="B:3"></template><div hidden id=S:3>b</div>',
         '<div hidden id="S:3">b</div>'),
        # the first place is that of the id; nothing is put where nobody sees it
        ('<p><template id="P:3"></template></p><i><template id="P:3"></template></i><div hidden id=S:3>b</div>',
         "<p>b</p><i></i>"),
        ('<svg><g><template id="P:3"></template></g></svg><p>a</p><div hidden id=S:3>b</div>',
         '<svg><g></g></svg><p>a</p><div hidden id="S:3">b</div>'),
        # nothing is lost where the marks are not those of React
        ("<p>a</p><div hidden id=S:0>b</div>", '<p>a</p><div hidden id="S:0">b</div>'),
        ("<p>a</p><template id=\"B:0\"></template><p>w</p><div hidden id=S:0>b</div>", "<p>a</p>b<p>w</p>"),
        (f"{SLOT.format(0, 'w')}<div id=S:0>b</div>", 'w<div id="S:0">b</div>'),
        ("<div hidden id=S:0><p>a<template id=\"B:0\"></template>b</p></div>", '<div hidden id="S:0"><p>ab</p></div>'),
        # no server sends two parts that hold each other: one is moved into the other, and no text is lost
        ("".join(f'<div hidden id=S:{i}>{a}<template id="B:{1 - i}"></template></div>' for i, a in enumerate("ab")),
         '<div hidden id="S:1">ba</div>'),
        # so many adjacent text nodes would take quadratic time to read, and the page is not changed
        ("a<!--$-->" * 20_000 + "<div hidden id=S:0>b</div>", "a" * 20_000 + '<div hidden id="S:0">b</div>'),
    ],
)  # fmt: skip
def test_parts_stand_where_they_belong(html: str, expected: str) -> None:
    assert body(html) == expected


def test_other_pages_stay_as_they_are() -> None:
    html = "<p>a</p><template><p>t</p></template><!--$-->b<!--/$-->"
    assert body(html) == body(html, streamed=False)


def test_only_marks_of_the_text_are_marks() -> None:
    """Marks in scripts, titles and attributes are ignored."""
    script = '<script type="math/tex">a <!--$--> <template id="B:1"></template></script>'
    html = f"<html lang=en><head><title>a <!--$-->b</title></head><body>{script}<i title='<!--$-->'>x</i></body></html>"
    tree = parse(html + '<div hidden id="S:0">b</div>')
    assert (tree.get("lang"), tree.findtext(".//title")) == ("en", "a <!--$-->b")
    assert tree.find(".//script").text == 'a <!--$--> <template id="B:1"></template>'
    assert tree.find(".//i").text == "x"


def test_blocks_come_in_the_order_in_which_they_are_read() -> None:
    main = f"<main><p>Before.</p>{SLOT.format(0, '<p>Loading</p>')}<p>After.</p></main>"
    html = f"{main}<div hidden id=S:0><p>Here.</p></div>"
    page = read(Document(sent(html)), Config())
    assert page.blocks.text == ["Before.", "Here.", "After."]


def test_many_parts() -> None:
    """Parts beyond the limit stay in place, with their text."""
    slots = "".join(SLOT.format(format(i, "x"), "w") for i in range(3_000))
    parts = "".join(f"<div hidden id=S:{i:x}>part {i}</div>" for i in range(3_000))
    text = body(slots + parts)
    moved = "".join(f"part {i}" for i in range(1_000))
    left = "".join(f'<div hidden id="S:{i:x}">part {i}</div>' for i in range(1_000, 3_000))
    assert text == moved + "w" * 2_000 + left
