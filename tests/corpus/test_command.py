"""``scrapy-dripper corpus extract``: archives in, Parquet out, even if processes are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from scrapy_dripper.cli import main
from tests.corpus.shards import document, shards, structured
from tests.corpus.zoo import HONEST, HOSTILE, LIMIT

pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra [corpus]")
pytest.importorskip("datatrove", reason="needs the extra [corpus]")

ROOT = Path(__file__).parents[2]
PATIENCE = 120
OWN = ("--engine", "tests.corpus.corpus_engines.AllMain", "--fallback", "none")


started: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def _end() -> Iterator[None]:
    """End all processes, whatever the result of a test."""
    yield
    while started:
        process = started.pop()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def command(*arguments: object) -> subprocess.Popen[str]:
    """Start the command as a user does."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy_dripper", "corpus", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    started.append(process)
    return process


def result(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for a command and return its exit code and its output."""
    _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


def table(folder: Path) -> list[dict[str, object]]:
    """Return the rows of all finished files."""
    return [row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_tasks_and_one_give_the_same_documents(tmp_path: Path) -> None:
    """Every page is extracted once, into files with the same schema."""
    pages = structured(40)
    files = shards(tmp_path / "in", pages, 4)
    for tasks in (1, 2):
        arguments = ["corpus", "extract", *map(str, files), "-o", str(tmp_path / f"{tasks}"), "--tasks", str(tasks)]
        assert main([*arguments, "--main-html", "--metadata"]) == 0

    one, two = (table(tmp_path / name) for name in "12")
    key = lambda row: row["url"]  # noqa: E731
    assert sorted(one, key=key) == sorted(two, key=key)
    assert Counter(row["url"] for row in one) == Counter(url for url, _ in pages)
    schemas = {str(pq.read_schema(path)) for path in tmp_path.glob("[12]/*.parquet")}
    assert len(schemas) == 1
    assert {"main_html", "page"} < set(one[0])
    assert "content" not in one[0]


def test_what_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """After kill -9 no document is lost or doubled, and no finished task runs again."""
    begun, flag, done = tmp_path / "begun", tmp_path / "flag", tmp_path / "done"
    pages = structured(12)
    pages[0] = ("https://example.org/first.html", document("first", f"<p>COUNT {done} .</p>"))
    pages[-2] = ("https://example.org/slow.html", document("slow", f"<p>WAIT-FOR {begun} {flag} .</p>"))
    shards(tmp_path / "in", pages, 3)  # the first is in the first file, the slow one in the second
    arguments = (tmp_path / "in", "-o", tmp_path / "out", "--workers", 1, *OWN)

    process = command("extract", *arguments)
    until(lambda: begun.exists() and begun.read_text() != "")
    assert [path.name for path in sorted((tmp_path / "out").glob("*.parquet"))] == ["00000.parquet"]
    os.kill(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)
    flag.touch()
    code, said = result(command("extract", *arguments))

    assert code == 0, said
    assert Counter(row["url"] for row in table(tmp_path / "out")) == Counter(url for url, _ in pages)
    assert all(row["text"] for row in table(tmp_path / "out"))
    assert done.read_text() == "x"
    assert "12 pages, 12 with content" in said
    assert not list((tmp_path / "out" / "unfinished").iterdir())


def test_a_page_that_crashes_its_process_loses_only_itself(tmp_path: Path) -> None:
    """With worker processes, the task goes on."""
    pages = structured(9)
    pages[4] = ("https://example.org/bad.html", document("bad", "<p>SEGFAULT</p>"))
    shards(tmp_path / "in", pages, 3)

    code, said = result(command("extract", tmp_path / "in", "-o", tmp_path / "out", *OWN, "--processes", 1))

    assert code == 0, said
    rows = {str(row["url"]): row for row in table(tmp_path / "out")}
    assert sorted(rows) == sorted(url for url, _ in pages)
    assert [url for url, row in rows.items() if not row["text"]] == ["https://example.org/bad.html"]
    assert rows["https://example.org/bad.html"]["reason"] == "worker_error"
    assert "9 pages, 8 with content, 1 without (kept)" in said


def test_a_task_that_fails_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Repeated, the command runs what is not done."""
    files = shards(tmp_path / "in", structured(4), 2)
    hidden = tmp_path / "hidden"
    arguments = ["corpus", "extract", *map(str, files), "-o", str(tmp_path / "out"), "--workers", "1"]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "unfinished").write_text("a file where a folder should be")

    assert main(arguments) == 1
    assert "2 of 2 tasks are not done; their logs are in" in capsys.readouterr().err

    (tmp_path / "out" / "unfinished").rename(hidden)
    assert main(arguments) == 0
    assert len(table(tmp_path / "out")) == 4


def test_other_inputs_do_not_mix_with_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, the numbers of finished tasks would belong to other files."""
    first = shards(tmp_path / "in", structured(2), 2)
    out = str(tmp_path / "out")
    assert main(["corpus", "extract", str(first[0]), "-o", out]) == 0
    assert main(["corpus", "extract", str(first[1]), "-o", out]) == 2
    assert "begun with other files" in capsys.readouterr().err
    assert main(["corpus", "extract", str(first[0]), "-o", out, "--on-error", "drop"]) == 2
    assert "begun with other options" in capsys.readouterr().err
    assert main(["corpus", "extract", str(tmp_path / "none"), "-o", out]) == 2
    assert "no WARC file there" in capsys.readouterr().err

    monkeypatch.setitem(sys.modules, "scrapy_dripper.corpus.steps", None)
    assert main(["corpus", "extract", str(first[0]), "-o", out]) == 2
    assert "scrapy-dripper[corpus]" in capsys.readouterr().err


def test_a_damaged_folder_is_named_or_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Notes and stats that are no longer what they were get one sentence, and a table that is gone is made again."""
    (archive,) = shards(tmp_path / "in", structured(2), 1)
    out = tmp_path / "out"
    arguments = ["corpus", "extract", str(archive), "-o", str(out), "--workers", "1"]
    assert main(arguments) == 0

    (out / "00000.parquet").unlink()
    assert main(arguments) == 0
    assert len(table(out)) == 2

    (stats,) = (out / "logs" / "stats").glob("*.json")
    for path, damages, said in (
        (stats, ("{", "[1]", "5", "[" * 100_000), "00000.json is damaged: delete"),
        (out / "run.json", ("", "[]", "null", "{", "[" * 100_000), "run.json is damaged: name another folder"),
    ):
        whole = path.read_text()
        for damage in damages:
            path.write_text(damage)
            capsys.readouterr()
            assert main(arguments) == 2
            assert said in capsys.readouterr().err
        path.write_text(whole)
    (out / "run.json").write_text('{"tasks": 1}')
    assert main(["corpus", "clean", str(out)]) == 2
    assert "was not written by `scrapy-dripper corpus extract`" in capsys.readouterr().err


def test_records_that_cannot_be_read_end_in_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All pages are in the table, and the last line has the counts. Records of other kinds are no damage."""
    honest, hostile = tmp_path / "honest", tmp_path / "hostile"
    for folder, animals in ((honest, HONEST), (hostile, HOSTILE)):
        folder.mkdir()
        for number, animal in enumerate(animals):
            (folder / f"{number:03}.warc").write_bytes(animal.data)

    assert main(["corpus", "extract", str(honest), "-o", str(tmp_path / "1"), "--tasks", "1", *OWN]) == 0
    assert "cannot be read" not in capsys.readouterr().err
    assert len(table(tmp_path / "1")) == sum(len(animal.bodies) for animal in HONEST)

    arguments = [str(hostile), "-o", str(tmp_path / "2"), "--tasks", "1", "--max-bytes", str(LIMIT // 10), *OWN]
    assert main(["corpus", "extract", *arguments]) == 1
    lost = sum((Counter(animal.skipped) for animal in HOSTILE), Counter())
    said = ", ".join(f"{name} {lost[name]:,}" for name in ("broken_archive", "cut_off", "encoding", "invalid"))
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"records that cannot be read: {said}")
    assert len(table(tmp_path / "2")) == sum(len(animal.bodies) for animal in HOSTILE)
    assert main(["corpus", "extract", *arguments]) == 1  # nothing is left to do, but nothing was mended
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"records that cannot be read: {said}")
