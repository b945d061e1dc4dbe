"""The matcher that counts steps finds what ``re`` finds."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.linear.attacks import alphabet, attacks
from tests.linear.matcher import Matcher, TooManyStepsError, parse
from tests.linear.patterns import uses

PATTERNS = list(dict.fromkeys(use.pattern for use in uses()[0]))
MOST_STEPS = 200_000


def _expected(pattern: re.Pattern[Any], method: str, text: str) -> list[tuple[int, int]]:
    data = text.encode("latin-1") if isinstance(pattern.pattern, bytes) else text
    if method == "finditer":
        return [found.span() for found in pattern.finditer(data)]
    found = getattr(pattern, method)(data)
    return [] if found is None else [found.span()]


def _check(pattern: re.Pattern[Any], matcher: Matcher, text: str) -> None:
    if isinstance(pattern.pattern, bytes):
        text = text.encode("latin-1", "ignore").decode("latin-1")
    for method in ("search", "match", "fullmatch", "finditer"):
        try:
            spans = matcher.spans(method, text, MOST_STEPS)
        except TooManyStepsError:
            continue
        assert spans == _expected(pattern, method, text), (pattern, method, text)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: repr(pattern.pattern)[:60])
def test_patterns_of_the_package(pattern: re.Pattern[Any]) -> None:
    """The texts are attacks on each pattern, long enough to use each repeat, and strings that it matches."""
    matcher = Matcher(pattern)
    for attack in islice(attacks(pattern, matcher), 0, None, 7):
        _check(pattern, matcher, attack.of(3))


@given(st.data())
def test_any_text(data: st.DataObject) -> None:
    pattern = data.draw(st.sampled_from(PATTERNS))
    matcher = Matcher(pattern)
    letters = alphabet(matcher, parse(pattern))
    _check(pattern, matcher, data.draw(st.text(st.sampled_from(letters), max_size=30)))


@given(
    st.sampled_from(
        [
            r"(a*)*b?", r"(?:a|ab)(?:c|bcd)(d*)", r"(a+?)(b*?)c?", r"\b\w+\b|^x|y$", r"(?m)^a|b$", r"(a|b)\1",
            r"(?i)(A)\1b", r"a{2,3}?b{0,2}", r"(?<=a)b|(?<!b)a", r"(?=ab)a|(?!ac)a", r"(?s:.)x|.", r"[^ab]|\n",
            r"(?:)|a", r"(?:a*)+", r"\Ba", r"a\Z|b$", r"(?:(a)|b)*", r"(?i:a)b", r"\Aa|c",
        ]
    ),
    st.text("abcdxyAB \n", max_size=12),
)  # fmt: skip
def test_each_operator(pattern: str, text: str) -> None:
    compiled = re.compile(pattern)
    _check(compiled, Matcher(compiled), text)


def test_steps_are_those_of_backtracking() -> None:
    matcher = Matcher(re.compile("(a+)+b"))
    steps = []
    for n in (8, 9, 10):
        matcher.spans("match", "a" * n, MOST_STEPS)
        steps.append(matcher.steps)
    assert steps[2] / steps[1] == pytest.approx(2, abs=0.1)
    assert steps[1] / steps[0] == pytest.approx(2, abs=0.1)


def test_too_many_steps_are_not_taken() -> None:
    with pytest.raises(TooManyStepsError):
        Matcher(re.compile("(a+)+b")).spans("match", "a" * 50, 10_000)
