"""All names of a page are searched at once, with the same result as one by one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper import choose
from scrapy_dripper.choose import boilerplate, duplicates, short_pages, threads
from scrapy_dripper.page.vocabulary import NameIndex, NamePattern, folded, found_in, whole
from scrapy_dripper.structures import asides, callouts, code, embeds

WORD = whole(("menu", r"top[\w-]{0,3}bar"), having=("top",))


NAMES = ("menu", "Menu x", "a_menu", "menus", "top", "x top", "bar", "x\tTOP-bar y", "top bar", "topbar top", "menu-")


@given(st.lists(st.text(alphabet="\n -", max_size=2) | st.sampled_from(NAMES)))
def test_the_names_found_are_those_with_the_pattern(names: list[str]) -> None:
    """Also if names have parts in common, and ``top`` of one name could be followed by ``bar`` of another."""
    assert NameIndex(names).matching(WORD) == [i for i, name in enumerate(names) if name and found_in(name, WORD)]


NAME_PATTERNS = {
    f"{module.__name__}.{name}": value
    for module in (asides, boilerplate, callouts, choose, code, duplicates, embeds, short_pages, threads)
    for name, value in vars(module).items()
    if isinstance(value, NamePattern)
}


@pytest.mark.parametrize("pattern", NAME_PATTERNS.values(), ids=list(NAME_PATTERNS))
@given(st.data())
def test_what_a_pattern_matches_has_one_of_its_literals(pattern: NamePattern, data: st.DataObject) -> None:
    """The others would not be searched."""
    hit = pattern.pattern.search(data.draw(st.from_regex(pattern.pattern)))
    assert hit is not None
    assert any(literal in hit[0] for literal in pattern.literals)


def test_only_the_beginning_of_a_long_name_is_searched() -> None:
    long, longer = "x" * 995 + " menu", "x" * 1_000 + " menu"
    assert NameIndex([longer, long, ""]).matching(WORD) == [1]


def test_a_folded_text_matches_like_any_case() -> None:
    every = [chr(code) for code in range(0x110000)]
    for pattern in ("[a-z]", "[ik]", "s", r"\w", r"\s", r"\S", "[^a-z]"):
        any_case, lower = re.compile(pattern, re.I), re.compile(pattern)
        assert [c for c in every if (any_case.match(c) is None) != (lower.match(folded(c)) is None)] == []


@given(st.text(alphabet="aS\u0130\u0131\u017f\u212a \u03a3", max_size=9))
def test_folding_keeps_the_length(text: str) -> None:
    assert len(folded(text)) == len(text)
