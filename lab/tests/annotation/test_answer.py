"""Answers of models are read strictly, and what people export from the inspector becomes labels."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tests.annotation.conftest import MAIN, Desk, html, sheet_of
from scrapy_dripper.inspection.answers import AnswerError, task_of
from scrapy_dripper_lab.annotation.prompt import prompt_hash, read_answer

GOOD = '{"1":"other","2":"main","3":"main"}'


def test_long_lists_of_ids_are_cut() -> None:
    """An error about a page of a thousand blocks is still one to read."""
    with pytest.raises(AnswerError, match=r"missing: 2, 3, .* and 979 more") as caught:
        read_answer('{"1":"main"}', 1000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"1":"main","3":"other"}', "missing: 2)"),
        ('{"1":"main","2":"main","2":"main","3":"main"}', "more than once: 2)"),
        ('{"1":"main","2":"main","3":"main","4":"main"}', "unknown: '4')"),
        ('{"0":"main","1":"main","2":"main","3":"main"}', "unknown: '0')"),
        ('{"01":"main","2":"main","3":"main"}', "missing: 1; unknown: '01')"),
        ('{"\uff11":"main","2":"main","3":"main"}', "missing: 1; unknown: '\uff11')"),
        ('{"1":"Main","2":"main","3":"main"}', "neither main nor other: 1 ('Main'))"),
        ('{"1":true,"2":null,"3":["main"]}', "neither main nor other: 1 (True), 2 (None), 3 (['main']))"),
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
        f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```",
        GOOD + GOOD,
        '["main","main","other"]',
        '{"1":"main",}',
        "1: main\n2: main\n3: other",
        "{" * 100_000,
    ],
    ids=lambda text: text[:20],
)
def test_anything_around_the_object_is_refused(text: str) -> None:
    """Nothing is searched for an answer: prose could hold a wrong one."""
    with pytest.raises(AnswerError, match="expected one JSON object and nothing else") as caught:
        read_answer(text, 3)
    assert len(str(caught.value)) < 300


@given(
    st.lists(st.booleans(), min_size=1, max_size=40),
    st.randoms(),
    st.sampled_from(["{}", "\n {}\n", "```json\n{}\n```"]),
    st.sampled_from([None, 1]),
)
def test_any_full_labelling_comes_back(main: list[bool], random: Any, around: str, indent: int | None) -> None:
    """What was labelled is what is read, in any order of keys, with white space or a fence around it."""
    items = [(str(i), "main" if is_main else "other") for i, is_main in enumerate(main, start=1)]
    random.shuffle(items)
    text = around.format(json.dumps(dict(items), indent=indent))
    assert read_answer(text, len(main)).main == [i for i, yes in enumerate(main, start=1) if yes]


@pytest.mark.parametrize(
    ("said", "style"),
    [
        ('"style":"Conversational",', "conversational"),
        ('"style":"normal",', "normal"),
        ('"style":["blog"],', ""),
        ("", ""),
    ],
)
def test_section_4_2_a_model_says_the_style(said: str, style: str) -> None:
    """It need not: a page without a usable style has none."""
    assert read_answer("{" + said + GOOD[1:], 3) == ([2, 3], style)


def answer(**changes: Any) -> str:
    """Return the export of a page of six blocks."""
    task = task_of(sheet_of(html()), prompt_hash())
    labels = {str(i): "main" if i in MAIN else "other" for i in range(1, 7)}
    return json.dumps({"task": task, "labels": labels} | changes)


def test_an_answer_becomes_a_record(desk: Desk) -> None:
    """Its labels are those of a person. It is added once."""
    (desk.folder / "a.answer.json").write_text(answer(), encoding="utf-8")
    assert desk.annotate("--read-answers", desk.folder) == 0
    assert desk.annotate("--read-answers", desk.folder) == 0

    (record,) = desk.records()
    assert (record["who"], record["labels"], record["url"]) == ("human", MAIN, "https://example.com/Tides")
    assert "1 already labelled" in desk.said()


def test_a_page_with_two_answers(desk: Desk) -> None:
    """The first one counts, and the second is named, because one of them is wrong."""
    for name in ("a.answer.json", "b.answer (1).json"):
        (desk.folder / name).write_text(answer(), encoding="utf-8")
    assert desk.annotate("--read-answers", desk.folder) == 1
    assert "b.answer (1).json: the page was answered in a.answer.json as well" in desk.said()
    assert len(desk.records()) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("no JSON", "expected one JSON object and nothing else"),
        (answer(labels={"1": "main"}), "missing: 2, 3, 4, 5, 6"),
        (answer(task=None), "expected an object with the objects 'task' and 'labels'"),
        (answer(task={"id": "x"}), "one without blocks"),
        *((answer(task={"id": "x", "blocks": blocks}), "more than any page") for blocks in (10**9, -5, 10**400)),
        (answer(task={"id": "x", "blocks": 6}), "leave the task as it was written"),
        (answer(task={**task_of(sheet_of(html()), "p"), "id": "../x"}), "'id' to be a file name"),
    ],
)
def test_a_wrong_answer_is_named(content: str, says: str, desk: Desk) -> None:
    (desk.folder / "a.answer.json").write_text(content, encoding="utf-8")
    assert desk.annotate("--read-answers", desk.folder) == 1
    error = desk.said()
    assert "a.answer.json" in error
    assert says in error


def test_a_folder_without_answers(desk: Desk) -> None:
    """A wrong folder is an error, not an empty result."""
    assert desk.annotate("--read-answers", desk.folder / "nowhere") == 2
    assert "expected a folder with exports of the inspector" in desk.said()
