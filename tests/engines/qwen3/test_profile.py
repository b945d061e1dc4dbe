"""Pages of the profile v1.0, whose missing end tags are inserted, and the drafts of their labels."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from lxml import etree

from scrapy_dripper.choose import mask_of
from scrapy_dripper.config import Config
from scrapy_dripper.engines.qwen3.engine import drafts
from scrapy_dripper.engines.qwen3.profile import PROFILES, V1Page, balanced, simplify
from scrapy_dripper.output.main_html import main_tree, to_html
from scrapy_dripper.page.page import NOBODY, Page
from scrapy_dripper.page.parse import parse
from tests.engines.qwen3.fakes import FakeTagger
from tests.html_strategies import documents, worded


def v1(body: str, head: str = "", url: str = "", profile: str = "v1.0") -> Page:
    rules = PROFILES[profile]
    return rules.cut(rules.parse(f"<html><head>{head}</head><body>{body}</body></html>"), url)


def kept(body: str, *numbers: int, profile: str = "v1.0") -> str:
    """Return what is inside <body> of the Main-HTML if the blocks with these numbers are main."""
    found = v1(body, profile=profile)
    made = to_html(main_tree(found, mask_of(found, np.isin(np.arange(len(found.blocks)), numbers))))
    return made.removeprefix("<html><body>").removesuffix("</body></html>")


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
def test_section_3_3_main_html(body: str, main: list[int], expected: str) -> None:
    """Main blocks stay with their ancestors."""
    assert kept(body, *main) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>a</p><p>main</p>", [False, True]),
        # A block of several native ones has the label of the first, and a native block over several gives all its own.
        ("<ul><li><p>main</p><li><p>b</p></ul>", [True]),
        ("<table><tr><th>main<tr><td>b</table>", [True, True]),
        # The native page has neither icons nor what the profile drops, and images are no blocks there.
        ("<nav>main menu</nav><p>b <svg><path/></svg> main</p>", [True]),
        ("<p>main</p><p><img src=x></p><p>b</p>", [True, False, False]),
        ("<p>main untaggable</p>", [False]),
    ],
)
def test_drafts(body: str, expected: list[bool]) -> None:
    """The tagger labels a native copy, so the page itself stays whole and the copy has its options."""
    found = replace(v1(body), config=Config(favor="recall", comments="drop"))
    before = etree.tostring(found.tree.nodes[0])
    tagger = FakeTagger()

    assert [draft.tolist() for draft in drafts(tagger, [found])] == [expected]
    assert etree.tostring(found.tree.nodes[0]) == before
    assert [page.config for page in tagger.seen] == [found.config]


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


def test_20_000_blocks() -> None:
    """A page that is longer than any real one loses no text and takes linear time."""
    found = v1("<div>" * 300 + "text<p>para <b>graph</b></p>" * 10_000)
    blocks = simplify(found)

    assert len(blocks) == len(found.blocks) == 10_001  # the texts between are the same, so they have one number
    assert blocks[-1] == '<p _item_id="10001">para <b>graph</b></p>'
    assert drafts(FakeTagger("t"), [found])[0][1:].tolist() == ["t" in text for text in found.blocks.text[1:]]


def _words(text: str) -> str:
    return re.sub(r"\s+", "", text)


# ---------------------------------------------------------------------- missing end tags
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<header><div>a</header><p>b", "<header><div>a</div></header><p>b"),
        ("<a><b><i>x</a>y", "<a><b><i>x</i></b></a>y"),
        ("<ul><li>a<li>b</ul>", "<ul><li>a<li>b</ul>"),
        ("<div><p>a</div>", "<div><p>a</div>"),
        ("<p>a</b></p>", "<p>a</p>"),
        ("<DIV><B>a</DIV>", "<DIV><B>a</b></DIV>"),
        ("<p><br>a<img src=x></p>", "<p><br>a<img src=x></p>"),
        ("<div><i/>a</div>", "<div><i/>a</div>"),
        ("<div><a href=x/>a</div>", "<div><a href=x/>a</a></div>"),
        ('<div><a title="</div>">a</a></div>', '<div><a title="</div>">a</a></div>'),
        ("<div><a title=\"a'>b</div>", "<div><a title=\"a'>b</div>"),
        ('<div><a x="y"">b</div>', '<div><a x="y"">b</a></div>'),
        ("<div><script>'</div>'</script></div>", "<div><script>'</div>'</script></div>"),
        ("<div><!-- </div> --><b>a</div>", "<div><!-- </div> --><b>a</b></div>"),
        ("<div><!--><b>a</div>", "<div><!--><b>a</b></div>"),
        ("<div><b>a<!-- </div>", "<div><b>a<!-- </div>"),
        ("<div><b>a<script></div>", "<div><b>a<script></div>"),
        ("<div><b>a</div", "<div><b>a</div"),
        ("1 < 2 </ 3", "1 < 2 </ 3"),
        ("", ""),
    ],
)
def test_end_tags(text: str, expected: str) -> None:
    assert balanced(text) == expected


@given(documents())
def test_property_only_end_tags_change(document: str) -> None:
    """No character outside end tags is lost or added, and nothing changes a second time."""
    without, once = re.compile(r"</[^>]*>"), balanced(document)

    assert without.sub("", once) == without.sub("", document)
    assert balanced(once) == once


@given(worded())
def test_property_words_stay(made: tuple[str, list[str], list[str]]) -> None:
    """All text that a browser shows is in the tree."""
    document, shown, _ = made
    text = "".join(parse(balanced(document)).itertext())

    assert all(word in text for word in shown)
