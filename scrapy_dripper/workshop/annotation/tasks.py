"""Tasks for people: write a text file to edit or a page to click in a browser, and read the answers."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy_dripper.replace import replace_file
from scrapy_dripper.workshop.annotation.answer import Pairs, check, read_object
from scrapy_dripper.workshop.annotation.listing import Line
from scrapy_dripper.workshop.annotation.prompt import RULES
from scrapy_dripper.workshop.annotation.store import HUMAN, Record, record_of, safe_name
from scrapy_dripper.workshop.annotation.web_task import web_task
from scrapy_dripper.workshop.endpoint import AnswerError

TASK, WEB_TASK, ANSWER = ".task.txt", ".task.html", ".answer*.json"

_HOW = """\
Change "other" to "main" for each block that is main content, then "done: no" to "done: yes". Leave all else as it is.
Or open the file of the same name that ends in .html, click, and put what it saves beside this one."""

_label = re.compile(r"\s*([^\s|]+)\s*\|\s*(?:([^\s|]+)\s*)?\|").match


class TaskError(ValueError):
    """A folder does not hold valid tasks. The message names the file and says what to do."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of a file in a folder of tasks."""

    path: Path
    task: dict[str, Any]
    record: Record | None
    """None if the task has not been completed."""


def write_task(folder: Path, task: dict[str, Any], lines: Sequence[Line]) -> bool:
    """Write the two files of a task. If they exist for this page, keep them and return False.

    Raise :exc:`TaskError` if the text file exists but is not a task for this page.
    """
    path = folder / (task["id"] + TASK)
    if path.exists():
        try:
            known = _read_text(path.read_text(encoding="utf-8")).task.get("sha256")
        except (AnswerError, ValueError):
            known = None
        if known != task["sha256"]:
            raise TaskError(f"{path} exists but is not a task for this page; move it away")
        return False
    replace_file(folder / (task["id"] + WEB_TASK), web_task(task, lines))
    replace_file(path, _text(task, lines))
    return True


def read_answers(folder: Path) -> list[Answer | TaskError]:
    """Return the answer or error of each file in a folder, sorted by name, with each page once.

    Raise :exc:`TaskError` if there are no tasks.
    """
    paths = sorted([*folder.glob("*" + TASK), *folder.glob("*" + ANSWER)])
    if not paths:
        raise TaskError(f"no *{TASK} or *{ANSWER} in {folder}: expected a folder written by --write-tasks")
    answers: list[Answer | TaskError] = []
    done: dict[str, Path] = {}
    for path in paths:
        try:
            answer = read_task(path)
        except (AnswerError, ValueError, OSError) as error:
            answers.append(TaskError(f"{path}: {error}"))
            continue
        if answer.record is not None:
            first = done.setdefault(answer.record.sha256, path)
            if first != path:
                answers.append(TaskError(f"{path}: the page was answered in {first.name} as well; remove one of them"))
                continue
        answers.append(answer)
    # A page that was labelled in the browser has an unchanged text file beside its answer.
    return [a for a in answers if isinstance(a, TaskError) or a.record or a.task["sha256"] not in done]


def read_task(path: Path) -> Answer:
    """Return the answer in a file. Raise AnswerError, ValueError or OSError if it is invalid."""
    text = path.read_text(encoding="utf-8-sig")  # some editors add a byte order mark
    found = _read_text(text) if path.name.endswith(TASK) else _read_json(text)
    record = None
    n = found.task.get("blocks")
    if not isinstance(n, int) or not isinstance(found.task.get("sha256"), str):
        raise AnswerError("expected the task as it was written (got one without blocks or sha256)")
    if found.labels is not None:
        labels = check(found.labels, n)
        try:
            record = record_of(found.task, labels, HUMAN)
        except ValueError as error:
            raise AnswerError(f"expected {error}; leave the task as it was written") from None
    return Answer(path, found.task, record)


@dataclass(frozen=True, slots=True)
class _Found:
    task: dict[str, Any]
    labels: Sequence[tuple[str, Any]] | None


def _text(task: dict[str, Any], lines: Sequence[Line]) -> str:
    assert safe_name(task["id"])
    comment = "\n".join(f"# {line}".rstrip() for line in f"{_HOW}\n\n{RULES}".split("\n"))
    width = len(str(len(lines)))
    rows = (
        f"{line.id:>{width}} | other | {line.path} | {_hints(line)} | {line.text}"
        for line in lines  # no field can hold a line break
    )
    return f"{comment}\n\ntask: {json.dumps(task)}\ndone: no\n\n" + "\n".join(rows) + "\n"


def _hints(line: Line) -> str:
    hints = [*line.flags]
    if line.linked:
        hints.append(f"linked {line.linked}%")
    if line.same_as:
        hints.append(f"same as {line.same_as}")
    return ", ".join(hints)


def _read_text(text: str) -> _Found:
    head: dict[str, str] = {}
    labels: list[tuple[str, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        key, colon, value = line.partition(":")
        if not line.strip() or line.startswith("#"):
            continue
        if colon and key in ("task", "done"):
            if key in head:
                raise AnswerError(f"line {number}: expected one line {key!r} (got a second)")
            head[key] = value.strip()
        elif row := _label(line):
            labels.append((row[1], row[2] or ""))
        else:
            raise AnswerError(f"line {number}: expected 'ID | main | ...' or 'ID | other | ...' (got {line[:40]!r})")
    done = head.get("done", "").lower()
    if "task" not in head or done not in ("yes", "no"):
        raise AnswerError("expected a line 'task: {...}' and a line 'done: yes' or 'done: no'")
    return _Found(_task(read_object(head["task"])), labels if done == "yes" else None)


def _read_json(text: str) -> _Found:
    whole = read_object(text).unique()
    task, labels = whole.get("task"), whole.get("labels")
    if not isinstance(task, Pairs) or not isinstance(labels, Pairs):
        raise AnswerError("expected an object with the objects 'task' and 'labels', as the page saves it")
    return _Found(_task(task), labels)


def _task(pairs: Pairs) -> dict[str, Any]:
    return pairs.unique()
