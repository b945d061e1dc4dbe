"""Trees as rows and back: the same tree, whatever the parser let through, and nothing but a tree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml.html import HtmlElement

from scrapy_dripper.page.errors import PageError
from scrapy_dripper.page.parse import parse
from scrapy_dripper.page.recover import MAX_ATTRIBUTES
from scrapy_dripper.sandbox.trees import from_json, to_json

MOST = 100_000


def nodes(root: HtmlElement) -> list[tuple[Any, ...]]:
    """Return all that there is to a tree."""
    number = {node: i for i, node in enumerate(root.iter())}
    return [
        (number.get(node.getparent()), node.tag, node.text, node.tail, node.items(), node.prefix, type(node))
        for node in root.iter()
    ]


PIECES = """
<p> </p> <div> </div> <b> </i> </html> <body> <head> <table> <td> <script> </script> <pre> <br> <svg> <template> <title>
<textarea> <select> <option> <frameset> <o:p> <p"x> <loading="lazy"> <x'y> <a&b> <a{b}> <p\xa0a= ' " &#0; &#1; &#13;
&#x80; &#xfffe; \x01 \x0b \x0c \r \x7f \x85 \ufffe \ufdd0 \U0001ffff = { } {a}b {{x}} @c :d [e] (f) *g #h xmlns xml:lang
<svg\x20xmlns="http://x"\x20xmlns:y="z"\x20y:q="1">
<p\x20{a}b=1\x20'=2\x20\x01=3\x20<=4\x20a\x01="\x02\r"> &amp; &lt;
]]>
""".replace("\n", " ")
MARKUP = st.lists(
    st.text(max_size=6) | st.sampled_from([piece.replace("\\x20", " ") for piece in PIECES.split(" ")] + [" ", "\n"]),
    max_size=30,
).map("".join)


@given(MARKUP)
def test_any_tree_comes_back_as_it_was(source: str) -> None:
    """Names that are none, namespaces that are none, control characters: nothing is changed, nothing is lost."""
    try:
        root = parse(source)
    except PageError:
        return
    expected = nodes(root)
    assert nodes(from_json(to_json(root), MOST)) == expected


ODD = [
    "<html {x=1 lang=de><body \x01>x\x02y</body></html>",
    "<p '=1>a</p>b\x01c<p>d",
    '<loading="lazy" src=x>text\x0c</p>tail',
    "<p>\x0b</p>\x0c<pre>\n\x01\n</pre>\n",
    "<script>if (a < b && c) { '\x01' }</script>\x02",
    "<p title='&amp;quot; \"x\" &lt;b&gt; \x03\r\n'>&amp;amp; \x04 &lt;b&gt;",
    "<table><tr><td>\x01</table>\x02<option>\x03",
]


@pytest.mark.parametrize("source", ODD)
def test_odd_names_and_characters(source: str) -> None:
    root = parse(source)
    expected = nodes(root)
    assert nodes(from_json(to_json(root), MOST)) == expected


def test_a_deep_tree() -> None:
    """No recursion, neither way."""
    root = parse("<div>" * 2_000 + "x" + "</div>y" * 2_000)
    expected = nodes(root)
    assert nodes(from_json(to_json(root), MOST)) == expected


def test_absurdly_many_attributes() -> None:
    """The first ones come back, as they do of a recovered page."""
    root = parse("<p " + " ".join(f"a{i}" for i in range(2_000)) + ">x<p b=1>y")
    first, second = from_json(to_json(root), MOST).iter("p")
    assert first.keys() == [f"a{i}" for i in range(MAX_ATTRIBUTES)]
    assert (first.text, second.items()) == ("x", [("b", "1")])


GOOD = [[-1, "html", 0, 0, 0], [0, "body", {"a": "b"}, "x", "y"]]


@pytest.mark.parametrize(
    "rows",
    [
        None,
        7,
        [],
        {},
        [GOOD[1]],
        [GOOD[0], GOOD[0]],
        [GOOD[0], [5, "p", 0, 0, 0]],
        [GOOD[0], [-2, "p", 0, 0, 0]],
        [GOOD[0], [0, 7, 0, 0, 0]],
        [GOOD[0], [0, "p", [1], 0, 0]],
        [GOOD[0], [0, "p", {"a": 7}, 0, 0]],
        [GOOD[0], [0, "p", {f"a{i}": "" for i in range(MAX_ATTRIBUTES + 1)}, 0, 0]],
        [GOOD[0], [0, "p", 0, 7, 0]],
        [GOOD[0], [0, "p", 0, 0]],
        [GOOD[0], [0, "", 0, 0, 0]],
        [GOOD[0], [0, "p", {"": "x"}, 0, 0]],
        [GOOD[0], *[GOOD[1]] * 20],
        [GOOD[0], ["0", "p", 0, 0, 0]],
        [GOOD[0], [0.0, "p", 0, 0, 0]],
    ],
)
def test_what_is_no_tree(rows: Any) -> None:
    """An answer that makes no sense is a ValueError, not some other trouble."""
    with pytest.raises(ValueError, match=r".+"):
        from_json(json.dumps(rows).encode(), 10)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b"[" * 100_000, b'[[-1,"html",0,0,0]', b"[" + b"9" * 5_000 + b"]"]
)
def test_what_is_no_json(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        from_json(data, 10)


def test_what_is_a_tree() -> None:
    """The rows that the cases above are made of."""
    assert [node.tag for node in from_json(json.dumps(GOOD).encode(), 10).iter()] == ["html", "body"]
