"""What people export from the inspector becomes labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.workshop.annotation.prompt import prompt_hash
from scrapy_dripper.workshop.annotation.store import task_of
from tests.workshop.annotation.conftest import MAIN, Annotate, html, records, sheet_of


def answer(**changes: Any) -> str:
    """Return the export of a page of six blocks."""
    task = task_of(sheet_of(html()), prompt_hash())
    labels = {str(i): "main" if i in MAIN else "other" for i in range(1, 7)}
    return json.dumps({"task": task, "labels": labels} | changes)


def test_an_answer_becomes_a_record(annotate: Annotate, tmp_path: Path, capsys: Any) -> None:
    """Its labels are those of a person. It is added once."""
    (tmp_path / "a.answer.json").write_text(answer(), encoding="utf-8")
    assert annotate("--read-answers", tmp_path) == 0
    assert annotate("--read-answers", tmp_path) == 0

    (record,) = records(tmp_path)
    assert (record["who"], record["labels"], record["url"]) == ("human", MAIN, "https://example.com/Tides")
    assert "1 already labelled" in capsys.readouterr().err


def test_a_page_with_two_answers(annotate: Annotate, tmp_path: Path, capsys: Any) -> None:
    """The first one counts, and the second is named, because one of them is wrong."""
    for name in ("a.answer.json", "b.answer (1).json"):
        (tmp_path / name).write_text(answer(), encoding="utf-8")
    assert annotate("--read-answers", tmp_path) == 1
    assert "b.answer (1).json: the page was answered in a.answer.json as well" in capsys.readouterr().err
    assert len(records(tmp_path)) == 1


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
def test_a_wrong_answer_is_named(content: str, says: str, annotate: Annotate, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.answer.json").write_text(content, encoding="utf-8")
    assert annotate("--read-answers", tmp_path) == 1
    error = capsys.readouterr().err
    assert "a.answer.json" in error
    assert says in error


def test_a_folder_without_answers(annotate: Annotate, tmp_path: Path, capsys: Any) -> None:
    """A wrong folder is an error, not an empty result."""
    assert annotate("--read-answers", tmp_path / "nowhere") == 2
    assert "expected a folder with exports of the inspector" in capsys.readouterr().err
    assert annotate("page.html", "--read-answers", tmp_path) == 2
    assert "--read-answers takes no INPUT" in capsys.readouterr().err
