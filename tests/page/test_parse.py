"""Parsing loses no text, takes bounded time, and gives every tree a body."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from lxml.html import HtmlElement

from scrapy_dripper.characters import looks_binary
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.page import recover as recover_module
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.page import PageError
from scrapy_dripper.page.parse import MAX_DEPTH, has_attribute_run, parse, without_templates
from scrapy_dripper.page.recover import recover
from scrapy_dripper.page.tags import ENDS_PARAGRAPH


def words(root: HtmlElement) -> list[str]:
    return "".join(root.itertext()).split()


def html(root: HtmlElement) -> str:
    return etree.tostring(root, method="html", encoding="unicode")


def depth(root: HtmlElement) -> int:
    deepest, here = 0, 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        here += 1 if event == "start" else -1
        deepest = max(deepest, here)
    return deepest


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("hello", "<html><body>hello</body></html>"),
        ("<p>x</p>", "<html><body><p>x</p></body></html>"),
        ("<title>t</title>", "<html><head><title>t</title></head><body></body></html>"),
        ("<html>", "<html><body></body></html>"),
        ("<!-- c -->", "<html><body></body></html>"),
        ("<!--", "<html><body></body></html>"),
        ("<frameset><frame src=a></frameset>", '<html><frameset><frame src="a"></frameset></html>'),
        ("<p>a<!-- c -->b<?pi?>c", "<html><body><p>abc</p></body></html>"),
        ("\ufeff<p>x", "<html><body><p>x</p></body></html>"),
    ],
)
def test_root(source: str, expected: str) -> None:
    """Fragments, plain text and empty documents get a root with a body or a frameset. Comments are removed."""
    assert html(parse(source)) == expected


@pytest.mark.parametrize(
    ("source", "body"),
    [
        ("<html><body><p>a</p></body><p>b</p>c</html>", "<p>a</p><p>b</p>c"),
        ("<html><body><p>a</p></body></html><p>b</p>c", "<p>a</p><p>b</p>c"),
        ("<html><body>a</body></html> b", "a b"),
        ("<html><body>a</body></html>\n<html><body>b</body></html>", "a b"),
        ("\x08</html>a", "\ufffd a"),
        ("<html><body>a</body><body>b</body></html>", "ab"),
        ("<html></html><html><head><title>t</title></head><body>b", "<title>t</title>b"),
        ("<title>t</title><bgsound src=/x>a<meta><p>c</p>d", "a<meta><p>c</p>d"),
        ("<title>t</title><bgsound>a", "a"),
        ("<link><label>a<body></head>b<dl></dl><body>c", "<label>a<body></body></label>b<dl></dl>c"),
        ("<html><body>a</body><head><title>t</title></head>b</html>", "a<title>t</title>b"),
    ],
)
def test_content_beside_the_body(source: str, body: str) -> None:
    """Content after </body> or </html>, or before the body, is kept in its order, because browsers show it. 2 % of
    pages have text there.
    """
    root = parse(source)
    assert len(root.findall("body")) == 1
    assert html(root.find("body")) == f"<body>{body}</body>"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a\0b<p>c\0</p>", "abc"),
        ("<p\0>x</p\0>y", "xy"),
        ("a\ud800b", "a?b"),
        ("a&nbsp;b&amp;c&unknown;&lt;", "a\xa0b&c&unknown;<"),
        ("a&#0;b&#x110000;c&#xD800;d", "a\ufffdb\ufffdc\ufffdd"),
        ("<!DOCTYPE html SYSTEM 'http://127.0.0.1:9/x.dtd'><p>x", "x"),
        *(
            (f"<?xml version='1.0' encoding='{label}'?><html><meta charset={label}><p>café 日本</p>", "café 日本")
            for label in ("shift_jis", "utf-16", "no-such-charset")
        ),
    ],
)
def test_characters(source: str, text: str) -> None:
    """NULs, lone surrogates and invalid references do not cut the document off. Text that is already decoded is not
    decoded again, whatever it declares.
    """
    assert "".join(parse(source).itertext()) == text


RANDOM = zlib.compress(bytes(range(256)) * 20 + b"some data to press" * 7, 9) * 9
BINARY = {
    "a PDF": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<</Type/Catalog>>",
    "a PNG image": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0",
    "a JPEG image": b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xdb",
    "a GIF image": b"GIF89a\1\0\1\0\x80\0\0",
    "a RIFF file (WebP, WAV or AVI)": b"RIFF\x24\xfa\1\0WEBPVP8 ",
    "a ZIP archive or an Office file": b"PK\3\4\x14\0\0\0\x08\0",
    "a gzip file": b"\x1f\x8b\x08\0\0\0\0\0\0\3",
    "an Office file": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0",
    "an MP4 or AVIF file": b"\0\0\0\x20ftypisom\0\0",
    "a font": b"wOF2\0\1\0\0",
    "binary data": RANDOM,
}


@pytest.mark.parametrize("kind", BINARY)
@pytest.mark.parametrize("guess", ["utf-8", "cp1252", "latin-1"])
def test_not_html(kind: str, guess: str) -> None:
    """Other formats are recognised after decoding, too, whatever encoding was guessed."""
    text = BINARY[kind].decode(guess, "replace")
    assert looks_binary(BINARY[kind]) == looks_binary(text) == kind
    with pytest.raises(PageError, match=re.escape(kind)) as caught:
        parse(text)
    assert caught.value.reason is FallbackReason.NOT_HTML


@pytest.mark.parametrize(
    "source",
    ["BMW is a car", "GIF or PNG?", "<p>\x01</p>", "a\0b\0c\0" * 300, "PK", "%PDF is a format", "<pre>\x1b[0m</pre>"],
)
def test_html_that_is_not_binary(source: str) -> None:
    assert looks_binary(source) is None
    parse(source)


# ---------------------------------------------------------------------------------------------------------- recovery

DEEP = {
    "divs": "<div>" * 5_000 + "<p>inner </p>" + "</div>" * 5_000 + "<p>after</p>",
    "200,000 divs": "<div>" * 200_000 + "<p>inner </p>" + "</div>" * 200_000 + "<p>after</p>",
    "never closed": "<div>" * 5_000 + "<p>inner </p><p>after</p>",
    "spans": "<p>" + "<span>" * 5_000 + "inner " + "</span>" * 5_000 + "after",
    "tables": "<table><tr><td>" * 3_000 + "inner " + "</table>" * 3_000 + "after",
    "lists": "<ul><li>" * 3_000 + "inner " + "</ul>" * 3_000 + "after",
    "misnested": "<b><i><font>" * 3_000 + "inner " + "</b></font></i>" * 3_000 + "after",
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_nesting(name: str) -> None:
    """All text beyond the parser's depth limit is kept in order, in a tree that allows recursion."""
    root = parse(DEEP[name])
    assert words(root) == ["inner", "after"]
    assert depth(root) < 210


def test_deep_nesting_keeps_order_and_blocks() -> None:
    """Beyond the limit, blocks become siblings, and later text of an outer block comes after inner blocks."""
    n = 3_000
    source = "<div>" * n + "a<p>b <b>c</b></p>d<h2>e</h2>f" + "</div>g" * n + "<p>h</p>"
    root = parse(source)
    assert "".join(root.itertext()) == "ab cdef" + "g" * n + "h"
    assert 150 < depth(root) < 210
    assert [element.text for element in root.iter("h2")] == ["e"]
    assert [element.text for element in root.iter("p")] == ["b c", "h"]


def test_a_late_head_in_a_deep_page_stays_where_it_is() -> None:
    """Content after a late head comes after the content before it."""
    root = parse("first<head><td>second</td>third" + "<div>" * 3_000 + "fourth")

    assert "".join(root.find("body").itertext()) == "firstsecondthirdfourth"


def test_unclosed_tags() -> None:
    """With 20,000 unclosed tags, no word is lost or duplicated."""
    tags = ["<div>", "<p>", "<b>", "<i>", "<font color=red>", "<table><td>", "<li>"]
    source = " ".join(f"{tags[(i * i) % 7]}w{i}" for i in range(20_000))
    found = "".join(parse(source).itertext())
    assert re.findall(r"w\d+", found) == [f"w{i}" for i in range(20_000)]


ATTRIBUTE_RUNS = {
    "values": " ".join(f"a{i}=1" for i in range(100_000)),
    "quoted": " ".join(f'a{i}="x y"' for i in range(100_000)),
    "bare": " ".join(f"a{i}" for i in range(100_000)),
    "slashes": "/".join(f"a{i}" for i in range(100_000)),
    "no spaces": "".join(f'a{i}="1"' for i in range(100_000)),
    "hidden ends": " ".join(f'a{i}="<b>it\'s</b>"' for i in range(100_000)),
    "some hidden ends": " ".join(f"a{i}" if i % 500 else f"a{i}='<b class=\"x\">y</b>'" for i in range(100_000)),
}


@pytest.mark.parametrize("name", ATTRIBUTE_RUNS)
def test_absurd_attributes(name: str) -> None:
    """100,000 attributes in a tag take minutes in the usual parser. Here, the first ones and all text are kept."""
    root = parse(f"<p>before </p><p {ATTRIBUTE_RUNS[name]}>inner </p><p>after</p>")
    assert words(root) == ["before", "inner", "after"]
    assert [len(element.attrib) for element in root.iter("p")] == [0, 1_000, 0]


@pytest.mark.parametrize(
    ("source", "alarm"),
    [
        ('<div data-x="' + "{&quot;a b c&quot;:1} " * 20_000 + '">x</div>', False),
        ("<p " + " ".join(f"data-{i}='the value {i}'" for i in range(700)) + ">x", False),
        ("<p " + " ".join(f"a{i}" for i in range(2_000)) + ">x", False),  # so few are read at once
        ("<p " + " ".join(f"a{i}" for i in range(3_500)) + ">x", True),
    ],
)
def test_attribute_alarm(source: str, alarm: bool) -> None:
    """Long values are not mistaken for attributes, so such pages take the fast path."""
    assert has_attribute_run(source.encode()) is alarm


REPEATED = {
    "ends": "a" + "</html>x" * 40_000,
    "bodies": "a" + "</body></html><body>x" * 40_000,
    "deep ends": "<div>" * 2_500 + "a" + "</html>x" * 40_000,
    "deep bodies": "<div>" * 2_500 + "a" + "<body>x" * 40_000,
    "deep returns": "<div>" * 40_000 + "a" + "</div>x" * 40_000,
    "deep formatting": "<div>" * 2_500 + "a" + "<b>x</b>" * 40_000,
    "deep breaks": "<div>" * 2_500 + "a" + "<br>x" * 40_000,
    "deep pictures": "<svg><p>" * 900 + "<b></b>" * 40_000 + "ax",
    "deep entities": "<div>" * 2_500 + "a" + "x&amp;" * 40_000,
}


@pytest.mark.parametrize("name", REPEATED)
def test_text_in_many_pieces(name: str) -> None:
    """A text in 40,000 pieces is collected in linear time. In quadratic time, this test would take minutes."""
    text = "".join(parse(REPEATED[name]).itertext())
    assert text.replace(" ", "").replace("&", "") == "a" + "x" * REPEATED[name].count("x")


def test_over_the_limits_of_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that cannot be recovered completely is an error, and no part of it is returned."""
    monkeypatch.setattr(recover_module, "MAX_NODES", 4_000)
    with pytest.raises(PageError, match="4,000 elements") as caught:
        parse("<div>x" * 5_000)
    assert caught.value.reason is FallbackReason.TRUNCATED_PARSE


def test_end_tags_without_a_start() -> None:
    """Each one is compared with every open tag, so 33,000 of them in 50,000 open tags are rejected."""
    assert words(parse("<div>" * 50_000 + "x" + "</b>" * 14_000)) == ["x"]
    with pytest.raises(PageError, match="end tags") as caught:
        parse("<div>" * 50_000 + "x" + "</b>" * 33_000)
    assert caught.value.reason is FallbackReason.TRUNCATED_PARSE


@pytest.mark.parametrize(
    "source",
    [
        "<!DOCTYPE html><html lang=en><head><title>t</title><meta charset=utf-8></head><body class=b>"
        "<p>a<b>c</b>d<br>e</p><ul><li>f<li>g</ul><table><tr><td>h<td>i</table>"
        "<script>j<k</script><pre>\n l </pre></body></html>",
        "text <p>a<p>b</div></b><o:p>c</o:p>&amp;&nbsp;<img src=x alt=y>",
        "<html><body>a</body></html><p>b</p>",
        "<p class='row'id=x>a</p><form><input value=1><select><option>b</select></form>",
    ],
)
def test_recovery_gives_the_same_tree(source: str) -> None:
    """For a page that needs no recovery, the result is the same."""

    def nodes(root: HtmlElement) -> list[tuple[str, str, str, dict[str, str]]]:
        # White space around <head> and <body>, and the value of a bare attribute, may differ.
        return [(str(e.tag), (e.text or "").strip(), (e.tail or "").strip(), dict(e.attrib)) for e in root.iter()]

    assert nodes(recover(source.encode(), MAX_DEPTH)) == nodes(parse(source))


PIECES = """
<p> </p> <div> </div> <b> </i> <html> </html> <body> </body> <head> </head> <table> <td> <tr> <!-- --> <script>
</script> <frameset> </frameset> <title> <p\xa0a= ' " &#0; &#1; <![CDATA[ <?xml <!DOCTYPE\xa0html> \0 \x01 \ufffe
&amp <svg> <template> <plaintext> <p"x> <o:p>
"""
MARKUP = st.lists(st.text(max_size=8) | st.sampled_from(PIECES.split(" ")), max_size=40).map("".join)


@pytest.mark.parametrize("read", [parse, lambda text: recover(text.encode("utf-8", "replace"), MAX_DEPTH)])
@given(source=MARKUP)
def test_any_text_is_a_page(read: Callable[[str], HtmlElement], source: str) -> None:
    """Any text gives a serialisable <html> with a body or a frameset, or a PageError. Recovery accepts any text."""
    try:
        root = read(source)
    except PageError:
        assert read is parse
        return
    assert root.tag == "html"
    assert root.find("body") is not None or root.find("frameset") is not None
    assert isinstance(root, HtmlElement)
    html(root)


@pytest.mark.parametrize("tag", ENDS_PARAGRAPH)
def test_a_paragraph_ends_before_a_section(tag: str) -> None:
    """Paragraphs end as in a browser if ``</p>`` is omitted, so that a hidden one hides no article. The content after
    them stays in order.
    """
    root = parse(f"<div><p hidden>One<b>bold</b> two<{tag}><p>Three</{tag}>four<i>five</i></div>six")
    (paragraph, section, italic) = root.find(".//div")

    assert paragraph.text_content() == "Onebold two"
    assert (section.tag, section.text_content(), section.tail) == (tag, "Three", "four")
    assert (italic.tag, italic.tail) == ("i", None)
    assert root.text_content() == "Onebold twoThreefourfivesix"


def test_paragraphs_that_hold_each_other_all_end() -> None:
    """At any depth, text stays in order, and each paragraph keeps what comes before its section."""
    n = 300
    nested = "".join(f"<p class=c{i}>a{i}<b>b{i}</b><section>" for i in range(n))
    root = parse(nested + "<i>x</i>" * 1_000 + "</div>end")

    paragraphs = list(root.iter("p"))
    assert [p.text_content() for p in paragraphs] == [f"a{i}b{i}" for i in range(n)]
    assert [p.get("class") for p in paragraphs] == [f"c{i}" for i in range(n)]
    assert root.text_content() == "".join(f"a{i}b{i}" for i in range(n)) + "x" * 1_000 + "end"


@pytest.mark.parametrize("attribute", ["shadowrootmode", "shadowmode"])
def test_declarative_shadow_trees_are_shown(attribute: str) -> None:
    """Also nested ones, around other templates, which are not shown, and as Chromium writes them in MHTML."""
    inner = "<x-text><template shadowrootmode=closed><p>The text.</p></template></x-text>"
    other = "<template><p>Not this.</p></template>"
    shown = f'<template shadowrootmode="open"><style>p{{}}</style><div><h1>Title</h1>{inner}{other}</div></template>'
    html = f"<x-page>{shown}<p>Light.</p></x-page><p>After.</p>".replace("shadowrootmode", attribute)
    page = cut(parse(html))

    assert page.blocks.text == ["Title", "The text.", "Light.", "After."]


@pytest.mark.parametrize(
    "html",
    [
        "<link rel=x><label>w<body></head>{}<p>five",
        "<head><bgsound>{}<p>x</head><body>y",
        '<div hidden id="S:0"><p>a</div>{}<template id="B:0"></template><!--/$-->',
    ],
)
def test_text_with_a_control_can_be_moved(html: str) -> None:
    """libxml2 takes references to controls, but lxml does not."""
    assert "four\ufffd" in parse(html.format("four&#1;")).text_content()


@pytest.mark.parametrize("tag", ["textarea", "xmp", "plaintext", "title"])
def test_tags_in_literal_text_are_text(tag: str) -> None:
    """Nothing in it is read as a shadow tree, and a plaintext never ends."""
    literal = "a </p><template shadowrootmode=open><p>Text</p></template>"
    root = parse(f"<p>First<{tag}>{literal}</{tag}><template shadowrootmode=open><p>Last")
    (element,) = root.iter(tag)
    end = "</plaintext><template shadowrootmode=open><p>Last" if tag == "plaintext" else ""

    assert element.text == literal + end
    assert len(list(root.iter("shadow-root"))) == (tag != "plaintext")


@pytest.mark.parametrize(("nested", "left"), [(1, 0), (4, 0), (5, 1)])
def test_templates_in_templates_are_left_out(nested: int, left: int) -> None:
    """Four levels of them, so that the time is linear."""
    data = b"<p>First" + b"<template><div>" * nested + b"x" + b"</div></template>" * nested + b"<p>Last"

    assert without_templates(data).count(b"<template>") == left
