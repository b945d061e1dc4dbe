"""Custom elements and buttons are inline within a sentence, as native_cases.json shows, but not with much in them."""

from __future__ import annotations

import pytest
from lxml.html import fragment_fromstring

from scrapy_dripper.page.nodes import in_sentence
from scrapy_dripper.testing import page

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
