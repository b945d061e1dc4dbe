"""Pages of the profile v1.0, and the transfer of labels between profiles."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree, html

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.qwen3.draft import carry, native_copy
from scrapy_dripper.engines.qwen3.profile import PROFILES, V1Page
from scrapy_dripper.engines.qwen3.simplify import simplify
from scrapy_dripper.output.main_html import main_tree, to_html
from scrapy_dripper.page import read
from scrapy_dripper.page.page import NOBODY, Page, Wishes
from tests.html_strategies import documents, seen_documents


def v1(body: str, head: str = "", url: str = "", profile: str = "v1.0") -> Page:
    rules = PROFILES[profile]
    return rules.cut(rules.parse(f"<html><head>{head}</head><body>{body}</body></html>"), url)


def kept(body: str, *numbers: int, profile: str = "v1.0") -> str:
    """Return what is inside <body> of the Main-HTML if the blocks with these numbers are main."""
    found = v1(body, profile=profile)
    made = to_html(main_tree(found, np.isin(np.arange(len(found.blocks)), numbers)))
    return made.removeprefix("<html><body>").removesuffix("</body></html>")


def carried(body: str, values: list[float]) -> list[float]:
    """Return the values of native blocks after their transfer to the blocks of the profile v1.0."""
    found = v1(body)
    copy, nodes = native_copy(found)
    assert len(copy.blocks) == len(values), copy.blocks.text
    return [round(float(value), 3) for value in carry(np.array(values), copy, found, nodes)]


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ("<p>one <b>two</b></p>", ["one two"]),
        ("<p>one<br>two</p>", ["one\ntwo"]),
        ("<ul><li>a<li>b<li>c<li>d</ul>", ["a\nb\nc\nd"]),
        ("<table><tr><th>a<td>b</table>", ["a b"]),
        ("<pre>a\n  b</pre>", ["a\n  b"]),
        ("<div>lead<p>one</p>trail</div>", ["lead", "one", "trail"]),
        ("<p>one<script>x</script> two</p>", ["one two"]),
        ("<div>one<select><option>a</select></div>", ["one"]),
        ("<p><img src=a.png></p>", [""]),
        ("<span>one<div>two</div></span>", ["one\ntwo"]),
    ],
)
def test_text_of_blocks_is_that_of_the_page(body: str, texts: list[str]) -> None:
    """Blocks have their whole text, even if the simplified HTML shortens it."""
    assert v1(body).blocks.text == texts


def test_page_knows_its_title_and_base() -> None:
    found = v1("<p>x</p>", "<title>T</title><base href=/c/>", "https://example.org/a")

    assert (found.title, found.base_url, found.url) == ("T", "https://example.org/c/", "https://example.org/a")


@pytest.mark.parametrize(
    ("body", "main", "expected"),
    [
        ("<div><p>a</p><p>b</p></div>", [1], "<div><p>b</p></div>"),
        ("<p>a <b>b</b></p><p>c</p>", [0], "<p>a <b>b</b></p>"),
        ("<div>lead<p>in</p>trail</div>", [2], "<div>trail</div>"),
        ("<ul><li>a<li>b<li>c<li>d</ul>", [0], "<ul><li>a</li><li>b</li><li>c</li><li>d</li></ul>"),
        ("<table><tr><th>a<th>b<tr><td>c<td>d</table>", [1], "<table><tr><td>c</td><td>d</td></tr></table>"),
        ("<p><img src=a.png></p><p>b</p>", [0], '<p><img src="a.png"></p>'),
        # What the reference loses on its way to the model stays in the page: in its block ...
        ("<p>one<script>x</script> two</p>", [0], "<p>one two</p>"),
        ("<div>one<script>x</script> two<p>three</p></div>", [0], "<div>one two</div>"),
        # ... or, without a block of its own, where the blocks on both sides are.
        ("<p>a</p><p><img data-src=b.png></p><p>c</p>", [0, 1], '<p>a</p><p><img data-src="b.png"></p><p>c</p>'),
        ("<p>a</p><p><img data-src=b.png></p><p>c</p>", [0], "<p>a</p>"),
        ("<p>a</p><hr><p>c</p>", [0, 1], "<p>a</p><hr><p>c</p>"),
        ("<p>a</p><script>x</script>lost<p>c</p>", [0, 1], "<p>a</p>lost<p>c</p>"),
        # The same words again, which have no number, follow the first.
        ("<div>foo<p>a</p>foo</div>", [0], "<div>foo<p></p>foo</div>"),
        # What is taken out on purpose is nobody's, and so is what nobody sees as text.
        ("<p>a</p><nav>b</nav><p>c</p>", [0, 1], "<p>a</p><p>c</p>"),
        ("<p>a<span style='display:none'>b</span>c</p>", [0], "<p>ac</p>"),
        ("<form>a<select><option>b</select></form>", [0], "<form>a</form>"),
    ],
)
def test_main_html(body: str, main: list[int], expected: str) -> None:
    """Main blocks stay with their ancestors."""
    assert kept(body, *main) == expected


@pytest.mark.parametrize(
    ("body", "values", "expected"),
    [
        ("<p>a</p><p>b</p>", [0.25, 1], [0.25, 1]),
        # A block of several native ones has their mean, weighted by characters.
        ("<ul><li><p>aaa</p><li><p>b</p></ul>", [1, 0], [0.75]),
        # A native block over several has one value for all.
        ("<table><tr><th>a<tr><td>b</table>", [0.5], [0.5, 0.5]),
        # The text behind an icon has joined the text before it in the native page.
        ("<p><svg><path/></svg> home</p><p>b</p>", [0.5, 0], [0.5, 0]),
        ("<p>a</p><p><svg></svg><svg></svg> b <select></select> c</p>", [0, 0.5], [0, 0.5]),
        # What the profile drops has no say.
        ("<nav>menu</nav><p>b</p>", [0, 1], [1]),
        # An image is the lower of the native blocks around it, as in Main-HTML.
        ("<p>a</p><p><img src=x></p><p>b</p>", [1, 1], [1, 1, 1]),
        ("<p>a</p><p><img src=x></p><p>b</p>", [1, 0.25], [1, 0.25, 0.25]),
        ("<p>a</p><p><img src=x></p>", [1], [1, 1]),
        # So is what has nothing in common with any.
        ("<p>a</p><div><select><option>o</select></div><p>b</p>", [1, 0.5], [1, 0.5, 0.5]),
        ("<div><select><option>o</select></div>", [], [0]),
    ],
)
def test_carry(body: str, values: list[float], expected: list[float]) -> None:
    """Values are transferred from native blocks to blocks of the profile v1.0 that share text with them."""
    assert carried(body, values) == expected


def test_carry_takes_labels() -> None:
    found = v1("<p>a</p><p>b</p>")

    result = carry(np.array([True, False]), found, found, np.arange(len(found.tree.nodes)))

    assert result.dtype == np.float32
    assert result.tolist() == [1, 0]


def test_a_native_copy_has_the_same_wishes() -> None:
    """The tagger drafts labels on a native copy, so the copy has the page's wishes."""
    page = read(Document("<p>text"), Config(favor="recall", comments="drop", min_quality=0.5), PROFILES["v1.0"])

    assert native_copy(page)[0].wishes == page.wishes == Wishes("recall", "drop", 0.5)


def test_native_copy_is_the_native_page() -> None:
    """A native copy has the same blocks as the native page of the document, and the original tree stays whole."""
    body = (
        "<nav>menu</nav><p>a <svg><path/></svg>b</p><select><option>o</select><ul><li>c<li>d</ul>"
        """<script type="application/ld+json">{"@type": "Product"}</script>"""
    )
    found = v1(body)
    before = simplify(found), etree.tostring(found.tree.nodes[0])
    native = PROFILES["native"]

    copy, nodes = native_copy(found)

    expected = native.cut(native.parse(f"<html><head></head><body>{body}</body></html>"), "")
    assert copy.blocks.text == expected.blocks.text
    assert copy.tree.flags.tolist() == expected.tree.flags.tolist()
    assert copy.about == expected.about
    assert copy.about.types == {"product"}
    assert [found.tree.nodes[i].tag for i in nodes] == [node.tag for node in copy.tree.nodes]
    assert (simplify(found), etree.tostring(found.tree.nodes[0])) == before


@given(document=seen_documents(), random=st.randoms(use_true_random=False))
def test_property_main_html_is_part_of_the_page(document: str, random: object) -> None:
    """For any labels, Main-HTML is a subtree with the texts of the main blocks in order, and nothing else."""
    rules = PROFILES["v1.0"]
    found = rules.cut(rules.parse(document), "")
    n = len(found.blocks)
    main = np.array([random.random() < 0.5 for _ in range(n)], dtype=np.bool_)  # type: ignore[attr-defined]

    made = html.document_fromstring(to_html(main_tree(found, main)))

    root = found.tree.nodes[0]
    assert _is_part(_words("".join(made.itertext())), _words("".join(root.itertext())))
    for text, label in zip(found.blocks.text, main.tolist(), strict=True):
        if label:
            assert _is_part(_words(text), _words("".join(made.itertext())))
    if n and not main.any():
        assert not _words("".join(made.itertext()))


@given(document=documents())
def test_property_columns_are_those_of_a_page(document: str) -> None:
    """Owners are blocks and gaps of the page, and each block owns all its text."""
    rules = PROFILES["v1.0"]
    found = rules.cut(rules.parse(document), "")
    tree, n = found.tree, len(found.blocks)

    assert isinstance(found, V1Page)
    for owner in (tree.text_owner, tree.tail_owner, tree.self_owner):
        assert ((owner < n) & (owner >= -2 - n)).all()
    assert (tree.block_start <= tree.block_end).all()
    assert (tree.block_start[0], tree.block_end[0]) == (0, n)
    owned = [""] * n
    for i, node in enumerate(tree.nodes):
        for text, owner in ((node.text, tree.text_owner[i]), (node.tail, tree.tail_owner[i])):
            if text and owner > NOBODY:
                owned[owner] += text
    for text, own in zip(found.blocks.text, owned, strict=True):
        assert not Counter(_words(text)) - Counter(_words(own))


@given(document=documents())
def test_property_carry_agrees_with_itself(document: str) -> None:
    """If all native blocks have the same value, so have all other blocks. On the same page, values do not change."""
    rules = PROFILES["v1.0"]
    found = rules.cut(rules.parse(document), "")
    copy, nodes = native_copy(found)
    n = len(found.blocks)

    same = carry(np.full(len(copy.blocks), 0.5), copy, found, nodes)
    assert set(same.tolist()) in ({0.5}, {0.0}, set())  # 0 where the pages have no text in common
    values = np.arange(n) % 2
    has_text = np.array([bool(text) for text in found.blocks.text], dtype=np.bool_)
    assert (carry(values, found, found, np.arange(len(found.tree.nodes)))[has_text] == values[has_text]).all()


def test_20_000_blocks() -> None:
    """A page that is longer than any real one loses no text and takes linear time."""
    found = v1("<div>" * 300 + "text<p>para <b>graph</b></p>" * 10_000)
    blocks = simplify(found)

    assert len(blocks) == len(found.blocks) == 10_001  # the texts between are the same, so they have one number
    assert blocks[-1] == '<p _item_id="10001">para <b>graph</b></p>'
    copy, nodes = native_copy(found)
    assert len(copy.blocks) == 20_000
    assert carry(np.ones(20_000), copy, found, nodes).min() == 1


def _words(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _is_part(part: str, whole: str) -> bool:
    """Return True if the characters of a text occur in the other one in the same order."""
    rest = iter(whole)
    return all(character in rest for character in part)
