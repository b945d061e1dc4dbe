"""Cutting a tree into blocks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml.html import fragment_fromstring

from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.nodes import in_sentence
from scrapy_dripper.page.page import NOBODY, Flag, gap_before
from scrapy_dripper.page.parse import parse
from scrapy_dripper.testing import page
from tests.html_strategies import documents, worded

CASES = json.loads(Path(__file__).with_name("native_cases.json").read_text(encoding="utf-8"))
LONG = "long " * 99 + "long"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["rule"])
def test_rule_of_the_cut(case: dict[str, Any]) -> None:
    """The text of each block is what a reader sees as one piece, even around tags that libxml2 does not know."""
    assert cut(parse(case["body"])).blocks.text == case["blocks"]


@pytest.mark.parametrize(
    ("body", "blocks"),
    [
        (f"<table><tr><td>{LONG}<td>b</table>", [LONG, "b"]),
        (f"<table><caption>{LONG}</caption><tr><td>a<td>b</table>", [LONG, "a", "b"]),
        (f"<ul>{'<li>' + LONG[:180]}{'<li>' + LONG[:360]}</ul>", [f"{LONG[:179]}\n{LONG[:359]}"]),
        # Text between many unseen elements is joined in linear time. In quadratic time, this would take a minute.
        ("<p>x" + "<script>a</script>word " * 200_000, ["x" + ("word " * 200_000).strip()]),
        (f"<div>Text{'<i></i>' * 40}<x-card>one</x-card></div>", ["Text", "one"]),
    ],
    ids=["cell", "caption", "entries", "scripts", "elements"],
)
def test_blocks_of_many_words_or_elements(body: str, blocks: list[str]) -> None:
    assert cut(parse(body)).blocks.text == blocks


@pytest.mark.parametrize(
    ("body", "flag"),
    [
        ("<nav><p>x</p></nav>", Flag.NAV),
        ("<div role=navigation>x</div>", Flag.NAV),
        ("<header>x</header>", Flag.HEADER),
        ("<div><footer><b>x</b></footer></div>", Flag.FOOTER),
        ("<aside>x</aside>", Flag.ASIDE),
        ("<main>x</main>", Flag.MAIN),
        ("<p hidden>x</p>", Flag.HIDDEN),
        ("<p style='color:red; DISPLAY : none'>x</p>", Flag.HIDDEN),
        ("<p style='visibility:hidden'>x</p>", Flag.HIDDEN),
        ("<div aria-hidden=true><p>x</p></div>", Flag.HIDDEN),
        ("<div aria-label=x><p>x</p></div>", Flag.ARIA),
        ("<div role=note>x</div>", Flag.ARIA),
        ("<div aria-hidden=false>x</div>", Flag.ARIA),
        ("<noscript>x</noscript>", Flag.NOSCRIPT),
        ("<form>x</form>", Flag.FORM),
        ("<a href=/>x</a>", Flag.LINK),
        ("<h3>x</h3>", Flag.HEADING),
    ],
)
def test_flags(body: str, flag: int) -> None:
    """Flags say in which parts of the page a block is. No block is dropped for its flags."""
    found = page(body)

    assert found.blocks.text == ["x"]
    assert found.tree.flags[found.blocks.leaf[0]] & flag


@pytest.mark.parametrize(
    "body", ["<p aria-hidden=false>x</p>", "<p data-hidden=true>x</p>", "<p style=color:red>x</p>"]
)
def test_visible_is_what_nothing_hides(body: str) -> None:
    found = page(body)
    assert not found.tree.flags[found.blocks.leaf[0]] & Flag.HIDDEN


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("", "https://example.org/a/b"),
        ("<base href='/c/'>", "https://example.org/c/"),
        ("<base href='https://other.org/'>", "https://other.org/"),
        ("<base href='http://['>", "https://example.org/a/b"),
        ("<base href='javascript:x()'>", "https://example.org/a/b"),
        ("<base href='data:text/html,x'>", "https://example.org/a/b"),
        ("<base href='//other.org/x'>", "https://other.org/x"),
    ],
)
def test_base_url(base: str, expected: str) -> None:
    """Links resolve against <base> as in a browser. An invalid <base> is ignored."""
    root = parse(f"<html><head>{base}</head><body>x</body></html>")

    assert cut(root, "https://example.org/a/b").base_url == expected


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title> A \n title </title><p>x", "A title"),
        ("<p>x", None),
        ("<svg><title>Icon</title></svg><p>x", None),
    ],
)
def test_title(html: str, title: str | None) -> None:
    assert cut(parse(html)).title == title


@pytest.mark.parametrize(("more", "is_read"), [("", True), ("color:red;" * 140, True), ("color:red;" * 300, False)])
def test_what_style_sheets_say_of_classes(more: str, is_read: bool) -> None:
    sheet = f"@media print {{ .b {{ display: none }} }} /* poems */ .poem p, div.poem {{ {more} white-space: pre-wrap}}"
    assert cut(parse(f"<style>{sheet}</style><p>x")).styles == (
        {"poem": ";white-space: pre-wrap" * 2} if is_read else {}
    )


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ("#poem", ("white-space:pre",)),
        (".page #poem p", ("white-space:pre",)),
        (".chat > .item .text .poem p", ("white-space:pre",)),
        ("main > .poem", ("white-space:pre", "display:none")),
        (".a .b .c .d .e .poem", ()),
        (".poem:hover", ()),
        (".poem p a", ()),
    ],
)
def test_what_an_id_or_a_class_far_below_others_hides_is_not_told(selector: str, told: tuple[str, ...]) -> None:
    styles = cut(parse(f"<style>{selector} {{white-space:pre;display:none}}</style><p>x")).styles
    assert tuple(filter(None, styles.get("poem", "").split(";"))) == told


def test_only_classes_have_a_case_in_style_sheets() -> None:
    styles = cut(parse("<style>DIV.Poem {White-Space: PRE; DISPLAY:NONE}</style><p>x")).styles
    assert styles == {"Poem": ";white-space: pre;display:none"}


def test_columns() -> None:
    """Links, bold text and images are counted per block."""
    blocks = page("<p><a>four</a> <b>bold!</b> x</p><img src=a><p>y <img src=b></p>").blocks

    assert blocks.links.tolist() == [1, 0]
    assert blocks.link_chars.tolist() == [4, 0]
    assert blocks.bold_chars.tolist() == [5, 0]
    assert blocks.images.tolist() == [0, 2]


def owners(body: str, tag: str) -> list[int]:
    """Return the owners of all elements with a tag."""
    tree = page(body).tree
    return [int(owner) for node, owner in zip(tree.nodes, tree.self_owner, strict=True) if node.tag == tag]


@pytest.mark.parametrize(
    ("body", "tag", "expected"),
    [
        ("<p>a</p><img src=x><p>b</p>", "img", gap_before(1)),
        ("<p>a</p><p>b <img src=x></p>", "img", 1),
        ("<p>a</p><hr><p>b</p>", "hr", gap_before(1)),
        ("<p>a</p><iframe src=x></iframe><p>b</p>", "iframe", gap_before(1)),
        ("<p>a</p><p>b<iframe src=x></iframe></p>", "iframe", 1),
        ("<p>a<br>b</p>", "br", 0),
        ("<p>a</p><p>b</p><img src=x>", "img", gap_before(2)),
        ("<p>a</p><p>b <script type=math/tex>x</script></p>", "script", 1),
        ("<p>a</p><div>b</div>", "div", NOBODY),
    ],
)
def test_what_has_no_text_belongs_to_a_block_or_a_gap(body: str, tag: str, expected: int) -> None:
    assert owners(body, tag) == [expected]


@pytest.mark.parametrize(
    ("body", "tags"),
    [
        ("<iframe src=x></iframe>", ["iframe"]),
        ("<iframe data-src=x>no frames</iframe>", ["iframe"]),
        ("<iframe></iframe>", []),
        ("<script>x</script>", []),
        ("<script type=' Math/TeX '>x</script>", ["script"]),
        ("<mjx-container><svg><g></g></svg></mjx-container>", ["mjx-container", "svg", "g"]),
        (
            "<mjx-container><svg></svg><mjx-assistive-mml><math></math></mjx-assistive-mml></mjx-container>",
            ["mjx-container", "mjx-assistive-mml", "math"],
        ),
        ("<video>none<source src=a><p>no</p></video>", ["video", "source"]),
    ],
)
def test_what_is_left_of_elements_without_text(body: str, tags: list[str]) -> None:
    assert [node.tag for node in page(f"<p>a</p><div>{body}</div>").tree.nodes[4:]] == tags


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "<div><p>a</p><hr><ul><li>b<li>c</ul></div><p>d <i></i>e</p>",
            "body 0 3, div 0 2, p 0 1, hr 1 1, ul 1 2, li 1 2, li 1 2, p 2 3, i 2 2",
        ),
        # A list without words has no block, and the ranges of the nodes around it stay as they are.
        (
            "<p>a</p>b<ul><li>*<li><b>*</b></ul><p>c</p>",
            "body 0 3, p 0 1, ul 2 2, li 2 2, li 2 2, b 2 2, p 2 3",
        ),
    ],
)
def test_a_node_knows_its_blocks(body: str, expected: str) -> None:
    """A node has its first block and one past its last. An empty range is where the next block begins."""
    tree = page(body).tree
    ranges = zip(tree.nodes, tree.block_start, tree.block_end, strict=True)
    assert ", ".join(f"{node.tag} {start} {end}" for node, start, end in list(ranges)[1:]) == expected


def squeezed(text: str) -> str:
    return re.sub(r"\W", "", text)


@given(worded())
def test_every_visible_word_is_in_exactly_one_block(document: tuple[str, list[str], list[str]]) -> None:
    """Each word that a browser shows is in exactly one block, and no other words are."""
    html, shown, _ = document
    found = re.findall(r"[wh]\d+z", "\n".join(cut(parse(html)).blocks.text))

    assert sorted(found) == sorted(shown)


@given(documents())
def test_all_text_of_the_cut_tree_is_in_a_block(html: str) -> None:
    found = cut(parse(html))
    root = found.tree.nodes[0]

    assert squeezed("".join(found.blocks.text)) == squeezed("".join(root.itertext()))


@given(documents())
def test_owners_name_the_block_that_holds_the_text(html: str) -> None:
    """Each piece of text with a word belongs to a block that contains it."""
    found = cut(parse(html))
    tree = found.tree
    for node, text_owner, tail_owner in zip(tree.nodes, tree.text_owner, tree.tail_owner, strict=True):
        for text, owner in ((node.text, text_owner), (node.tail, tail_owner)):
            if text and squeezed(text):
                assert owner >= 0
                assert squeezed(text) in squeezed(found.blocks.text[owner])


@given(documents())
def test_subtrees_are_slices(html: str) -> None:
    """``end`` and the block ranges of a node match its real subtree."""
    tree = cut(parse(html)).tree
    number = {node: i for i, node in enumerate(tree.nodes)}
    for i, node in enumerate(tree.nodes):
        inside = [number[n] for n in node.iter()]
        assert inside == list(range(i, tree.end[i]))
        assert tree.block_start[i] <= tree.block_end[i]


@given(documents(), st.integers(0, 8))
def test_head_owns_no_more_than_its_blocks(html: str, n: int) -> None:
    """The first part of a page has the same first blocks, and no text belongs to other blocks."""
    whole = cut(parse(html))
    part = whole.first_blocks(n)

    assert part.blocks.text == whole.blocks.text[:n]
    for owner in (part.tree.text_owner, part.tree.tail_owner, part.tree.self_owner):
        assert ((owner < len(part.blocks)) & (owner >= -2 - len(part.blocks)) | (owner == NOBODY)).all()


# ---------------------------------------------------------------------- what is inline within a sentence
FORMULA = (
    "<mjx-container><mjx-math>{}</mjx-math>"
    "<mjx-assistive-mml><math><mi>x</mi></math></mjx-assistive-mml></mjx-container>"
)


def test_a_drawn_formula_of_any_size_is_inline() -> None:
    assert page(f"<p>Let {FORMULA.format('<mjx-mi></mjx-mi>' * 200)} be even.</p>").blocks.text == ["Let x be even."]


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("one", True),
        ("<i>one</i>", True),
        ("<div>one</div>", False),
        ("<i>one</i><br>", False),
        ("<i></i>" * 200 + "one", True),
        ("<i></i>" * (200 + 1) + "one", False),
    ],
    ids=range(6),
)
def test_what_a_part_of_a_sentence_may_hold(inside: str, expected: bool) -> None:
    """Neither a block nor a line break, nor very much."""
    (element,) = fragment_fromstring(f"<div>The <x-term>{inside}</x-term> is here.</div>")

    assert in_sentence(element) == expected


def test_many_of_them() -> None:
    """For each element, only its neighbours are checked."""
    terms = "<x-term>a</x-term>, " * 20_000

    assert len(page(f"<p>Terms: {terms}</p>").blocks) == 1
    assert len(page("<p>Terms: " + "<x-term>" * 200 + "a" + "</x-term>" * 200 + " end.</p>").blocks) == 1
