"""The strict reading of answers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.workshop.annotation.prompt import read_answer
from scrapy_dripper.workshop.endpoint import AnswerError

GOOD = '{"1":"other","2":"main","3":"main"}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\n",
        f"```JSON\n\n{GOOD}\n\n```",
        '{\n "3": "main",\n "1": "other",\n "2": "main"\n}',
    ],
)
def test_good_answers_are_read(text: str) -> None:
    """White space, a fence and the order of ids do not matter."""
    assert read_answer(text, 3) == [2, 3]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"1":"main","3":"other"}', "missing: 2)"),
        ("{}", "missing: 1, 2, 3)"),
        ('{"1":"main","2":"main","3":"main","2":"other"}', "more than once: 2)"),
        ('{"1":"main","2":"main","2":"main","3":"main"}', "more than once: 2)"),
        ('{"1":"main","2":"main","3":"main","4":"main"}', "unknown: '4')"),
        ('{"0":"main","1":"main","2":"main","3":"main"}', "unknown: '0')"),
        ('{"01":"main","2":"main","3":"main"}', "missing: 1; unknown: '01')"),
        ('{"1":"main","2":"main"," 3":"main"}', "missing: 3; unknown: ' 3')"),
        ('{"\uff11":"main","2":"main","3":"main"}', "missing: 1; unknown: '\uff11')"),
        ('{"1-3":"main"}', "missing: 1, 2, 3; unknown: '1-3')"),
        ('{"1":"Main","2":"main","3":"main"}', "neither main nor other: 1 ('Main'))"),
        ('{"1":true,"2":null,"3":["main"]}', "neither main nor other: 1 (True), 2 (None), 3 (['main']))"),
        ('{"1":{"label":"main"},"2":"main","3":"main"}', "neither main nor other: 1 ("),
    ],
)
def test_wrong_ids_and_labels_are_named(text: str, says: str) -> None:
    """Every id exactly once and one of two labels; all else is refused by name."""
    with pytest.raises(AnswerError) as caught:
        read_answer(text, 3)
    assert says in str(caught.value)
    assert "every id from 1 to 3 exactly once" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sure! Here it is: " + GOOD,
        GOOD + "\nI hope this helps.",
        f"Here:\n```json\n{GOOD}\n```",
        f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```",
        GOOD + GOOD,
        f"[{GOOD}]",
        '["main","main","other"]',
        '{"1":"main",}',
        "{'1':'main'}",
        '"main"',
        "1: main\n2: main\n3: other",
        "{" * 100_000,
        '{"1":' * 50_000,
        "<think>the first is a menu</think>" + GOOD,
    ],
    ids=lambda text: text[:20],
)
def test_anything_around_the_object_is_refused(text: str) -> None:
    """Nothing is searched for an answer: prose could hold a wrong one."""
    with pytest.raises(AnswerError, match="expected one JSON object and nothing else") as caught:
        read_answer(text, 3)
    assert len(str(caught.value)) < 300


def test_long_lists_of_ids_are_cut() -> None:
    """An error about a page of a thousand blocks is still one to read."""
    with pytest.raises(AnswerError, match=r"missing: 2, 3, .* and 979 more") as caught:
        read_answer('{"1":"main"}', 1000)
    assert len(str(caught.value)) < 300


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.randoms())
def test_any_full_labelling_comes_back(main: list[bool], random: object) -> None:
    """What was labelled is what is read, in any order of keys."""
    items = [(str(i), "main" if is_main else "other") for i, is_main in enumerate(main, start=1)]
    random.shuffle(items)  # type: ignore[attr-defined]
    assert read_answer(json.dumps(dict(items)), len(main)) == [i for i, yes in enumerate(main, start=1) if yes]
