"""Missing end tags are inserted."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from scrapy_dripper.engines.qwen3.profile import balanced
from scrapy_dripper.page.parse import parse
from tests.html_strategies import documents, worded


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
