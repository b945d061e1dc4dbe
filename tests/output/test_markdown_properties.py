"""Properties of Markdown for any page: writing never raises, loses and moves no text, and the result can be parsed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Literal, get_args

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from lxml import etree

from scrapy_dripper.checks import CONTENT_TYPES
from scrapy_dripper.choose import mask_of
from scrapy_dripper.config import Config
from scrapy_dripper.output import write
from scrapy_dripper.output.content_json import ContentError, from_json, to_json
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.items import (
    Card,
    Code,
    Deleted,
    Emphasis,
    Formula,
    Image,
    Item,
    Items,
    Link,
    Paragraph,
    Post,
    Ruby,
    Run,
    Runs,
    Strong,
    Sub,
    Sup,
    only,
    plain_text,
)
from tests.html_strategies import documents, seen_documents
from tests.structured.measures import Rendered

_words = re.compile(r"\w+").findall
_inline = frozenset("a b i em strong del s sub sup code span img".split())
_TAGS = "p p p div span b b i em strong del a code h2 ul ol li blockquote td tr table dl dt dd pre sub sup q br hr img"

_marks = st.text(st.sampled_from("ab1*_`[]()<>#+-.!|\\$~&: \n'\"=中（）é"), max_size=14).map(
    lambda text: text.replace("&", "&amp;").replace("<", "&lt;")
)


def _element(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def build(tag: str, inner: list[str]) -> str:
        if tag in ("br", "hr"):
            return f"<{tag}>"
        if tag == "img":
            return "<img src=/i.png alt='a*b]'>"
        return f"<{tag} href='/x y(z'>{''.join(inner)}</{tag}>"

    return st.builds(build, st.sampled_from(_TAGS.split()), st.lists(children, max_size=5))


def pages_of_marks() -> st.SearchStrategy[str]:
    """Return pages whose text is full of Markdown syntax."""
    return st.lists(st.recursive(_marks, _element, max_leaves=20), min_size=1, max_size=4).map(
        lambda parts: f"<html><body>{''.join(parts)}</body></html>"
    )


pages = st.one_of(documents(), pages_of_marks())


def text_of(tree: etree._Element) -> str:
    """Return the text that a reader sees, with spaces between elements that do not share a line."""
    pieces: list[str] = []
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        if element.tag not in _inline:
            pieces.append(" ")
        pieces.append((element.text if event == "start" else element.tail) or "")
    return "".join(pieces)


def has_formulas(items: Items) -> bool:
    return Formula.__name__ + "(" in repr(items)


def whole(html: str) -> tuple[Page, np.ndarray[Any, np.dtype[np.bool_]]]:
    page = cut(parse(html), "https://example.org/")
    return page, np.ones(len(page.blocks), dtype=np.bool_)


@given(pages)
def test_rendered_markdown_has_the_words_of_the_text(html: str) -> None:
    """The words are in order, whatever their characters mean in Markdown."""
    items = only(content_list(parse(html), "https://example.org/"), set(CONTENT_TYPES) - {"video", "audio"})
    if not has_formulas(items):  # they are for another renderer
        assert _words(text_of(Rendered(markdown(items)).tree)) == _words(plain_text(items))


_FORMS: dict[type, str] = {
    Emphasis: "em", Strong: "strong", Deleted: "s", Sub: "sub", Sup: "sup", Link: "a", Code: "code"
}  # fmt: skip
_signs = st.text(st.sampled_from("ab6中文é *_`[]()<>#!\\\\$~&:;.{}^。「\"='"), min_size=1, max_size=6).map(escape)
_pieces = st.one_of(_signs, st.sampled_from([r"C:\me", "&amp;lt;", "&amp;#60;", "](x)", "[x]", "]:", "<br>", "a b"]))
_picture = "<img src=/i.png alt='a*[]`&amp;lt;_'>"


def _formatted(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    tags = st.sampled_from("b b i i s code sub sup ruby".split())
    inner = st.lists(children, min_size=1, max_size=4).map("".join)
    return st.one_of(
        st.builds("<{0}>{1}</{0}>".format, tags, inner),
        st.builds("<a href='{}'>{}</a>".format, st.sampled_from(["/x", "/a_b(c*", "/?a=1&amp;b=2"]), inner),
        st.just(_picture),
    )


lines = st.lists(st.recursive(_pieces, _formatted, max_leaves=10), min_size=1, max_size=5).map("".join)
Marked = Iterator[tuple[str, frozenset[str]]]


def _said(runs: Runs, forms: frozenset[str] = frozenset()) -> Marked:
    """Yield the characters of runs, and pictures, with their formats."""
    for run in runs:
        own = forms | {_FORMS[type(run)]} if type(run) in _FORMS else forms
        if isinstance(run, Image):
            yield f"![{run.alt}]", own
        yield from _said(getattr(run, "runs", ()), own)
        text = f"({run.reading})" if isinstance(run, Ruby) else getattr(run, "text", "")
        yield from ((character, own) for character in text)


def _shown(element: etree._Element, forms: frozenset[str] = frozenset()) -> Marked:
    """Yield the same for rendered Markdown."""
    own = forms | {element.tag} if element.tag in _FORMS.values() else forms
    if element.tag == "img":
        yield f"![{element.get('alt')}]", own
    yield from ((character, own) for character in element.text or "")
    for child in element:
        yield from _shown(child, own)
        yield from ((character, own) for character in child.tail or "")


def _seen(marked: Marked) -> list[tuple[str, frozenset[str]]]:
    """Return what a reader must see. Bold or italic signs may lose their format, as it can need a word to work."""
    found = [(one, forms if re.search(r"\w", one) else forms & {"a", "code"}) for one, forms in marked if one != "\n"]
    return [(one, forms - {"code"} if one.isspace() else forms) for one, forms in found]


@given(lines, st.sampled_from(["keep", "drop", "citations"]))
@example(r"C<b>:\Users\me</b>ok", "keep")
@example("[x]<b>(</b>y)", "citations")
@example("<code>a<a href=/x>b</a></code>", "drop")
def test_rendered_lines_have_the_text_and_the_formats(html: str, links: Literal["keep", "drop", "citations"]) -> None:
    """Character by character: an escape stays with its sign, whatever moves out of a format."""
    items = content_list(parse(f"<p>{html}"), "https://example.org/")
    assume(len(items) == 1 and isinstance(items[0], Paragraph) and not has_formulas(items))
    runs = items[0].runs  # type: ignore[union-attr]
    (shown,) = Rendered(markdown(items, links=links)).tree

    dropped = {"a"} if links == "drop" else set()
    expected = [(one, forms - dropped) for one, forms in _seen(_said(runs))]
    assert shown.tag == "p"
    assert _seen(_shown(shown)) == expected


@given(seen_documents())
def test_text_is_that_of_the_blocks(html: str) -> None:
    """The content list loses, adds and moves no text.

    But for what stands in a table and in no cell, which comes before the table as in browsers, and for what generators
    put around code.
    """
    assume(not re.search("<(?:pre|code|xmp|listing)", html))
    page, main = whole(html)
    found = write(page, mask_of(page, main), Config())
    if not has_formulas(found.content):
        got, expected = ("".join(_words(text)) for text in (found.text, "\n".join(page.blocks.text)))
        assert sorted(got) == sorted(expected)
        assert got == expected or page.tree.nodes[0].find(".//table") is not None


@given(pages, st.sampled_from(["keep", "drop", "citations"]), st.sampled_from(["html", "linear"]))
def test_no_option_makes_writing_fail(html: str, links: str, tables: str) -> None:
    page, main = whole(html)
    assert write(page, mask_of(page, main), Config(markdown={"links": links, "tables": tables})).main_html


@given(pages)
def test_json_round_trip(html: str) -> None:
    items = content_list(parse(html), "https://example.org/")
    assert from_json(json.loads(json.dumps(to_json(items)))) == items


EVERYTHING = """<h2>T</h2><p>a <b>b</b> <i>c</i> <del>d</del> <code>e</code> H<sub>2</sub><sup>2</sup>
<a href=/x title=t>f</a><br>g <ruby>字<rt>じ</rt></ruby> <img src=/i.png alt=h> \\(x\\)
<sup><a href=#fn1>1</a></sup></p><hr><pre class=language-c>i</pre><p>\\[y\\]</p>
<table><caption>c</caption><tr><th>a<th colspan=2>b<tr><td>1<td>2<td>3</table>
<ol start=2><li>a<ul><li>b</ul></ol><dl><dt>t<dd>d</dl><figure><img src=/j.png><figcaption>k</figcaption></figure>
<video src=/v.mp4 poster=/p.png title=l></video><audio src=/s.mp3></audio><blockquote>q</blockquote>
<ol><li id=fn1>n</li></ol>"""


def everything() -> Items:
    root = parse(EVERYTHING)
    posts = {next(root.iter("figure")): Post(1, "Ann", "2024-05-06")}
    return (*content_list(root, "https://example.org/", posts=posts), Card("Cup", "https://e.org/cup", price="$4"))


def types(value: object) -> set[str]:
    """Return the types of all items and runs."""
    if isinstance(value, dict):
        own = {value["type"]} if "type" in value else set()
        return own.union(*(types(one) for one in value.values()))
    return set[str]().union(*(types(one) for one in value)) if isinstance(value, list) else set()


def test_every_type_in_json() -> None:
    """Every type survives a round trip."""
    values = to_json(everything())
    assert types(values) == {kind.type for kind in (*get_args(Item), *get_args(Run))}
    assert from_json(values) == everything()


@pytest.mark.parametrize(
    "values",
    [
        [{"type": "chart"}],
        [{"type": "paragraph"}],
        [{"type": "paragraph", "runs": [{"type": "title", "level": 1, "runs": []}]}],
        [{"type": "rule", "width": 3}],
        [{"type": "code", "text": ["x"]}],
        [{"type": "quote", "items": {}}],
        ["text"],
        [None],
        "paragraph",
        None,
    ],
)
def test_json_that_is_not_a_content_list(values: Sequence[Any]) -> None:
    with pytest.raises(ContentError):
        from_json(values)


def test_text_has_formulas_and_captions_but_no_alternative_texts() -> None:
    text = plain_text(everything())
    assert text.splitlines()[:3] == ["T", "a b c d e H22 f", "g 字(じ)  x [1]"]
    assert "k" in text.splitlines()
    assert "h" not in text.splitlines()
