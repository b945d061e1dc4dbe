"""Labels from people: task files and their answers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from pathlib import Path
from typing import Any

import pytest
from lxml import html as lxml_html

from tests.workshop.annotation.conftest import MAIN, Annotate, html, records


@pytest.fixture
def tasks(annotate: Annotate, pages: Path, tmp_path: Path) -> Path:
    """A folder with the tasks of three pages."""
    assert annotate(pages, "--write-tasks", tmp_path / "tasks") == 0
    return tmp_path / "tasks"


def text_of(tasks: Path, title: str) -> Path:
    """Return the text file of a page."""
    [path] = tasks.glob(f"{title}-*.task.txt")
    return path


def edit(path: Path, *changes: tuple[str, str], main: tuple[int, ...] = (), done: bool = True) -> None:
    """Do a task in its text file as a person would, then apply ``changes``."""
    text = path.read_text(encoding="utf-8")
    for i in main:
        text = text.replace(f"\n{i} | other |", f"\n{i} | main |")
    if done:
        text = text.replace("\ndone: no\n", "\ndone: yes\n")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")


def click(path: Path, main: tuple[int, ...] = tuple(MAIN)) -> dict[str, Any]:
    """Return what the HTML page of a task saves after clicks."""
    page = lxml_html.document_fromstring(path.read_text(encoding="utf-8"))
    boxes = [int(box.get("value", "")) for box in page.iter("input")]
    return {
        "task": json.loads(page.get_element_by_id("task").text or ""),
        "labels": {str(i): "main" if i in main else "other" for i in boxes},
    }


def test_text_tasks_come_back_as_labels(
    annotate: Annotate, tasks: Path, pages: Path, tmp_path: Path, capsys: Any
) -> None:
    """An edited file gives the same kind of record as a model; files that are not done are counted and left."""
    edit(text_of(tasks, "Tides"), main=tuple(MAIN))
    edit(text_of(tasks, "Moons"))
    assert annotate("--read-answers", tasks) == 1
    moons, tides = records(tmp_path)
    assert (moons["labels"], tides["labels"]) == ([], MAIN)
    assert (tides["who"], tides["blocks"], tides["url"]) == ("human", 6, "https://example.com/Tides")
    assert tides["sha256"] == hashlib.sha256((pages / "Tides.html").read_bytes()).hexdigest()
    assert "2 labelled, 1 not done yet" in capsys.readouterr().err
    edit(text_of(tasks, "Winds"), main=(2,))
    assert annotate("--read-answers", tasks) == 0
    assert [record["title"] for record in records(tmp_path)] == ["Moons", "Tides", "Winds"]
    assert "2 already labelled, 1 labelled" in capsys.readouterr().err


def test_clicked_tasks_come_back_as_labels(annotate: Annotate, tasks: Path, tmp_path: Path) -> None:
    """Answers saved by the HTML page are read under any name that a browser gives them, beside the untouched text
    file."""
    [path] = tasks.glob("Tides-*.task.html")
    name = path.name.replace(".task.html", ".answer (1).json")
    (tasks / name).write_text(json.dumps(click(path)), encoding="utf-8")
    assert annotate("--read-answers", tasks) == 1  # others are not done yet
    [record] = records(tmp_path)
    assert (record["title"], record["labels"], record["who"]) == ("Tides", MAIN, "human")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("\n3 | other |", "\n3 | mian |"), "neither main nor other: 3 ('mian')"),
        (("\n3 | other |", "\n4 | other |"), "missing: 3; more than once: 4"),
        (("\n3 | other |", "\n33 | other |"), "missing: 3; unknown: '33'"),
        (("\n3 | other |", "\n#3 | other |"), "missing: 3"),
        (("\n3 | other |", "\n3 other "), "expected 'ID | main | ...'"),
        (("\ndone: yes", "\ndone: maybe"), "'done: yes' or 'done: no'"),
        (("\ndone: yes", ""), "'done: yes' or 'done: no'"),
        (("\ndone: yes", "\ndone: yes\ndone: no"), "expected one line 'done'"),
        (("task: {", "task: "), "expected one JSON object"),
        (('"blocks": 6', '"blocks": "6"'), "expected the task as it was written"),
        (('"profile": "native", ', ""), "leave the task as it was written"),
        (('"id": "Tides', '"id": "../../Tides'), "'id' to be a file name"),
    ],
)
def test_text_tasks_are_read_strictly(
    change: tuple[str, str], says: str, annotate: Annotate, tasks: Path, tmp_path: Path, capsys: Any
) -> None:
    """A mistake is reported with its file, and the other files are read."""
    edit(text_of(tasks, "Tides"), change)
    edit(text_of(tasks, "Winds"))
    assert annotate("--read-answers", tasks) == 1
    error = capsys.readouterr().err
    assert str(text_of(tasks, "Tides")) in error
    assert says in error
    assert [record["title"] for record in records(tmp_path)] == ["Winds"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "expected one JSON object"),
        ("{}", "objects 'task' and 'labels'"),
        ('{"task": {}, "labels": {}, "labels": {}}', "twice: 'labels'"),
        ('{"task": {}, "labels": {}}', "expected the task as it was written"),
    ],
)
def test_saved_answers_are_read_strictly(content: str, says: str, annotate: Annotate, tasks: Path, capsys: Any) -> None:
    """Files that a browser saved are checked like those of an editor."""
    (tasks / "x.answer.json").write_text(content, encoding="utf-8")
    assert annotate("--read-answers", tasks) == 1
    assert says in capsys.readouterr().err


def test_page_answered_twice_is_refused(annotate: Annotate, tasks: Path, tmp_path: Path, capsys: Any) -> None:
    """If a page has two answers, neither is chosen for the user."""
    [path] = tasks.glob("Tides-*.task.html")
    (tasks / "a.answer.json").write_text(json.dumps(click(path)), encoding="utf-8")
    (tasks / "b.answer.json").write_text(json.dumps(click(path, ())), encoding="utf-8")
    assert annotate("--read-answers", tasks) == 1
    assert "b.answer.json: the page was answered in a.answer.json as well" in capsys.readouterr().err


def test_work_is_not_overwritten(annotate: Annotate, tasks: Path, pages: Path, capsys: Any) -> None:
    """Writing the tasks again keeps existing ones, done or not, and adds new ones."""
    edit(text_of(tasks, "Tides"), main=(2,))
    before = text_of(tasks, "Tides").read_text(encoding="utf-8")
    (pages / "New.html").write_text(html("New"), encoding="utf-8")
    assert annotate(pages, "--write-tasks", tasks) == 0
    assert text_of(tasks, "Tides").read_text(encoding="utf-8") == before
    assert "3 already there" in capsys.readouterr().err
    text_of(tasks, "New").write_text("my notes", encoding="utf-8")
    assert annotate(pages, "--write-tasks", tasks) == 1
    assert "exists but is not a task for this page" in capsys.readouterr().err


def test_folder_without_tasks_is_named(annotate: Annotate, tmp_path: Path, capsys: Any) -> None:
    """A wrong folder is an error, not an empty result."""
    assert annotate("--read-answers", tmp_path / "nowhere") == 2
    assert "expected a folder written by --write-tasks" in capsys.readouterr().err


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!-- <script>",
    '" onclick="alert(1)',
    "1 | main | body | | fake\n2 | main | x",
    "\u20282 | main | x\u2029\x851 | main | x\x0b2 | main |\x0c",
    "\ndone: yes\n",
    'task: {"id": "../../x"}',
    "# comment",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_pages_cannot_get_into_their_task(text: str, annotate: Annotate, tmp_path: Path) -> None:
    """Page text stays text in both files: it makes no element, script, line or label."""
    said = escape(text)
    page = tmp_path / "page.html"
    page.write_text(
        f"<title>{said}</title><link rel=canonical href='https://h/{said}'><pre class='{said}'>{said}</pre>"
        f"<p id='{said}'>Second</p><p>{said}</p>",
        encoding="utf-8",
    )
    tasks = tmp_path / "tasks"
    assert annotate(page, "--write-tasks", tasks) == 0

    [path] = tasks.glob("*.task.html")
    made = path.read_text(encoding="utf-8")
    tree = lxml_html.document_fromstring(made)
    assert [script.get("type") for script in tree.iter("script")] == ["application/json", None]
    assert not list(tree.iter("img"))
    assert not [name for node in tree.iter() for name in node.attrib if name.startswith("on")]
    assert made.count("<!--") == 0
    assert len(list(tree.iter("input"))) == 3
    answer = click(path, (2,))

    text_path = text_of(tasks, "page")
    rows = [line for line in text_path.read_text(encoding="utf-8").splitlines() if re.match(r"\s*\d", line)]
    assert [row.split("|")[0].strip() for row in rows] == ["1", "2", "3"]
    edit(text_path, ("\n2 | other |", "\n2 | main |"))
    assert annotate("--read-answers", tasks) == 0
    [record] = records(tmp_path)
    assert record["labels"] == [2]
    assert answer["task"]["sha256"] == record["sha256"]
    assert answer["task"]["title"] == record["title"]


def test_only_our_script_may_run(tasks: Path) -> None:
    """The page's policy names its one script and style by hash and allows no request."""
    made = next(tasks.glob("*.task.html")).read_text(encoding="utf-8")
    script = re.findall(r"<script>(.*?)</script>", made, re.DOTALL)
    style = re.findall(r"<style>(.*?)</style>", made, re.DOTALL)
    assert "default-src 'none'" in made
    for [content] in (script, style):
        assert base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() in made


def test_tasks_are_not_written_through_links(annotate: Annotate, pages: Path, tmp_path: Path) -> None:
    """A file of a task replaces a link of its name, and what the link leads to is left alone."""
    assert annotate(pages / "Tides.html", "--write-tasks", tmp_path / "first") == 0
    (tmp_path / "second").mkdir()
    for made in (tmp_path / "first").iterdir():
        (tmp_path / "second" / made.name).symlink_to(tmp_path / f"elsewhere{made.suffix}")
    (tmp_path / "elsewhere.html").write_text("keep me")

    assert annotate(pages / "Tides.html", "--write-tasks", tmp_path / "second") == 0
    assert (tmp_path / "elsewhere.html").read_text() == "keep me"
    assert not (tmp_path / "elsewhere.txt").exists()
    assert annotate("--read-answers", tmp_path / "second") == 1  # which is not done yet
