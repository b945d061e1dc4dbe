"""Simplified HTML for language models."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from scrapy_dripper.engines.qwen3.profile import PROFILES, simplify
from scrapy_dripper.page.page import Page
from tests.html_strategies import documents

CASES, TRUNCATED = (
    json.loads(Path(__file__).with_name(f"{name}_cases.json").read_text(encoding="utf-8"))
    for name in ("v1_0", "truncation")
)


def page(document: str, profile: str) -> Page:
    rules = PROFILES[profile]
    return rules.cut(rules.parse(document), "")


def v1(body: str, truncate_chars: int | None = 200) -> list[str]:
    return simplify(page(f"<html><body>{body}</body></html>", "v1.0"), truncate_chars)


def native(body: str, truncate_chars: int | None = 200) -> list[str]:
    return simplify(page(f"<html><body>{body}</body></html>", "native"), truncate_chars)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["rule"])
def test_appendix_a_10_rule_of_the_published_weights(case: dict[str, str | list[str]]) -> None:
    """There is an example for each rule of the profile v1.0."""
    document = f"<html><body class='{case.get('body_class', '')}'>{case['body']}</body></html>"

    assert simplify(page(document, "v1.0")) == case["simplified"]


@pytest.mark.parametrize("case", TRUNCATED, ids=lambda case: case["rule"])
def test_appendix_a_10_truncation_counts_by_element(case: dict[str, Any]) -> None:
    """The limit applies to the text directly in each element, even in tables and lists."""
    assert v1(case["body"], case["chars"]) == [case["simplified"]]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>one</p><h2>two</h2>", ['<p _item_id="1">one</p>', '<h2 _item_id="2">two</h2>']),
        ("<nav class='top'>Home</nav>", ['<nav class="top" _item_id="1">Home</nav>']),
        ("<li class='a b' id='c' style='d'>x</li>", ['<li class="a b" id="c" _item_id="1">x</li>']),
        ("<p>see <a href=/>this</a> and that</p>", ['<p _item_id="1">see this and that</p>']),
        ("<div><a href=/>Home</a> <a href=/>News</a></div>", ['<div _item_id="1"><a>Home News</a></div>']),
        ("bare text", ['<div _item_id="1">bare text</div>']),
        ("<p>1 &lt; 2</p>", ['<p _item_id="1">1 &lt; 2</p>']),
        ("<pre>a\n  b</pre>", ['<pre _item_id="1">a b</pre>']),
        (f"<p class='{'wide ' * 20}'>x</p>", [f'<p class="{("wide " * 8).strip()}" _item_id="1">x</p>']),
        (f"<p id='{'w' * 99}'>x</p>", [f'<p id="{"w" * 40}" _item_id="1">x</p>']),
        ("<p>abcdefghijkl</p>", ['<p _item_id="1">abcdefghij...</p>']),
    ],
)
def test_native_blocks_are_short(body: str, expected: list[str]) -> None:
    """Each block is one element with shortened class, id and text, and with a link around text that is mostly links."""
    assert native(body, 10 if "abcdef" in body else 200) == expected


@pytest.mark.parametrize("profile", list(PROFILES))
@given(document=documents(), chars=st.sampled_from([1, 5, 200]))
def test_property_each_block_has_its_number_and_shows_something(profile: str, document: str, chars: int) -> None:
    """For any HTML and limit, the outermost elements of the n blocks are numbered from 1 to n. A limit that no text
    reaches changes nothing.
    """
    found = page(document, profile)
    blocks = simplify(found, chars)

    assert simplify(found, None) == simplify(found, 10**6)
    for k, block in enumerate(blocks, start=1):
        assert re.match(rf'<[^<]*? _item_id="{k}"', block)
        assert block.count("_item_id") == 1
        shown = html.fragment_fromstring(block, create_parent=True)
        assert shown.text_content().strip() or shown.xpath(".//img[@src]") or "<xmp" in block, block
    assert len(blocks) == len(found.blocks)


@pytest.mark.parametrize("simplified", [v1, native])
def test_a_tag_that_no_tree_can_be_given(simplified: Callable[[str], list[str]]) -> None:
    """A missing space can make a quotation mark part of a tag name. The text is kept."""
    (block,) = simplified('<p"x>some text</p"x>')
    assert "some text" in block
    assert '"x' not in block


@pytest.mark.parametrize("profile", list(PROFILES))
def test_page_of_first_blocks_keeps_their_numbers(profile: str) -> None:
    """The first blocks of a page have the same simplified HTML as in the whole page."""
    found = page("<body><p>a</p><ul><li>b<li>c<li>d</ul><p>e</p>", profile)

    assert simplify(found.first_blocks(2)) == simplify(found)[:2]
