"""``scrapy-dripper corpus extract``: archives in, Parquet out, even if processes are killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.corpus.shards import document, record, shards, structured, table, write
from tests.corpus.zoo import HONEST, HOSTILE, LIMIT
from tests.crawl.crawling import eventually
from tests.workers.children import gone

pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra [corpus]")
pytest.importorskip("datatrove", reason="needs the extra [corpus]")

ROOT = Path(__file__).parents[2]
PATIENCE = 120
OWN = ("--engine", "tests.workers.engines.AllMain", "--fallback", "none")


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
    """Start a command of ``corpus``."""
    return start("corpus", *arguments)


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start the command as a user does."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy_dripper", *map(str, arguments)],
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


def test_two_tasks_and_one_give_the_same_documents(tmp_path: Path, run: Run) -> None:
    """Every page is extracted once, into files with the same schema."""
    pages = structured(40)
    files = shards(tmp_path / "in", pages, 4)
    for tasks in (1, 2):
        arguments = ("corpus", "extract", *files, "-o", tmp_path / f"{tasks}", "--tasks", tasks)
        done = run(*arguments, "--main-html", "--metadata")
        assert (done.code, len(re.findall(r"extract: 40 pages in \d\d:\d\d, [\d,.]+ a second", done.err))) == (0, 1)

    one, two = (table(tmp_path / name) for name in "12")
    key = lambda row: row["url"]  # noqa: E731
    assert sorted(one, key=key) == sorted(two, key=key)
    assert Counter(row["url"] for row in one) == Counter(url for url, _ in pages)
    schemas = {str(pq.read_schema(path)) for path in tmp_path.glob("[12]/*.parquet")}
    assert len(schemas) == 1
    assert {"main_html", "page"} < set(one[0])
    assert "content" not in one[0]


NAMES = [
    *("one", " one", "one ", "a\tb", "a\nb", "a\rb", "\u00e9", "e\u0301", "A", "a", "[a]", "*", "%20", "~", "a::b"),
    '"q"',
]


def test_names_of_archives_come_back_as_they_went_in(tmp_path: Path, run: Run) -> None:
    """As many archives are read as are given, each once, whatever the name of their folder and of the output's."""
    folder, out = tmp_path / " in::[x] ", tmp_path / "out::"
    folder.mkdir()
    for number, (url, body) in enumerate(structured(len(NAMES))):
        write(folder / f"{NAMES[number]}.warc", [record(url, body)])
    loose = [write(folder / name, [record("https://example.org/", b"<p>A page</p>")]) for name in (" 1", "1 ")]

    done = run("corpus", "extract", folder, *loose, "-o", out, "--tasks", 5, *OWN)

    assert done.code == 0, done.err
    found = Counter(str(row["file_path"]) for row in table(out))
    assert found == Counter(os.path.realpath(path) for path in folder.iterdir())
    assert len(found) == len(NAMES) + len(loose)


def test_what_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """After kill -9 no document is lost or doubled, and no finished task runs again. Before, the command is refused."""
    begun, flag, done = tmp_path / "begun", tmp_path / "flag", tmp_path / "done"
    pages = structured(12)
    pages[0] = ("https://example.org/first.html", document("first", f"<p>COUNT {done} .</p>"))
    pages[-2] = ("https://example.org/slow.html", document("slow", f"<p>BEGUN {begun} WAIT-FOR {flag} .</p>"))
    shards(tmp_path / "in", pages, 3)  # the first is in the first file, the slow one in the second
    arguments = (tmp_path / "in", "-o", tmp_path / "out", "--workers", 1, *OWN)

    process = command("extract", *arguments)
    eventually("a page begun", lambda: begun.exists() and begun.read_text() != "")
    assert [path.name for path in sorted((tmp_path / "out").glob("*.parquet"))] == ["00000.parquet"]
    second, refusal = result(command("extract", *arguments))
    os.kill(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)
    flag.touch()
    code, said = result(command("extract", *arguments))

    assert (second, f"another command is writing {tmp_path / 'out'}" in refusal) == (2, True)
    assert code == 0, said
    assert Counter(row["url"] for row in table(tmp_path / "out")) == Counter(url for url, _ in pages)
    assert all(row["text"] for row in table(tmp_path / "out"))
    assert done.read_text() == "x"
    assert "12 pages, 12 with content" in said
    assert "extract: 8 pages in" in said  # those of this run
    assert not list((tmp_path / "out" / "unfinished").iterdir())


def descendants(pid: int) -> set[int]:
    """Return the processes that a process has started, and those that they have."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text(encoding="ascii").rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("arguments", "least"),
    [
        (("corpus", "extract", "in", "-o", "out", "--workers", 2), 2),
        (("corpus", "extract", "in", "-o", "out", "--workers", 2, "--processes", 1), 4),
        (("extract", "a.html", "b.html", "--jobs", 2), 2),
        (("extract", "a.html", "b.html"), 1),
    ],
    ids=["corpus", "corpus with worker processes", "extract with jobs", "extract"],
)
def test_nothing_of_a_killed_command_stays(
    arguments: tuple[object, ...], least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After kill -9, the system ends its processes, in the midst of a page and while they wait for one."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for name in "ab":
        begun = Path(f"{name}.begun").absolute()
        # Large, so that a worker process reads it.
        body = document(name, f"<p>BEGUN {begun} WAIT-FOR {tmp_path / 'never'} .</p>") + b"<i></i>" * 45_000
        Path(f"{name}.html").write_bytes(body)
        write(Path("in", f"{name}.warc"), [record(f"https://example.org/{name}", body)])
    process = start(*arguments, *OWN)
    eventually("pages begun", lambda: len(list(tmp_path.glob("*.begun"))) >= min(least, 2))
    started = descendants(process.pid)
    assert len(started) >= least

    os.kill(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)

    eventually("all processes gone", lambda: all(map(gone, started)))


def test_a_process_that_is_killed_is_noticed(tmp_path: Path) -> None:
    """The command ends and says so, and goes on when it is repeated."""
    flag, pages = tmp_path / "flag", structured(4)
    flag.touch()
    pages[0] = ("https://example.org/bad.html", document("bad", f"<p>DIE-IF {flag} .</p>"))
    shards(tmp_path / "in", pages, 2)
    arguments = ("extract", tmp_path / "in", "-o", tmp_path / "out", "--workers", 2, *OWN)

    code, said = result(command(*arguments))
    assert code == 1
    assert "a process was killed, for example because memory ran out: try fewer --workers" in said

    flag.unlink()
    assert result(command(*arguments))[0] == 0
    assert len(table(tmp_path / "out")) == 4


def test_a_task_that_fails_is_reported(tmp_path: Path, run: Run) -> None:
    """Repeated, the command runs what is not done."""
    files = shards(tmp_path / "in", structured(4), 2)
    hidden = tmp_path / "hidden"
    arguments = ("corpus", "extract", *files, "-o", tmp_path / "out", "--workers", "1")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "unfinished").write_text("a file where a folder should be")

    done = run(*arguments)
    assert (done.code, "2 of 2 tasks are not done; their logs are in" in done.err) == (1, True)

    (tmp_path / "out" / "unfinished").rename(hidden)
    assert run(*arguments).code == 0
    assert len(table(tmp_path / "out")) == 4


def test_other_inputs_do_not_mix_with_what_is_there(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, the numbers of finished tasks would belong to other files."""
    one, two = shards(tmp_path / "in", structured(2), 2)
    arguments = ("corpus", "extract", "-o", tmp_path / "out")
    assert run(*arguments, one).code == 0
    for more, message in (
        ([two], "begun with other files"),
        ([one, "--text", "text"], "begun with other options"),
        ([tmp_path / "none"], "no WARC file there"),
    ):
        done = run(*arguments, *more)
        assert (done.code, message in done.err) == (2, True)

    monkeypatch.setitem(sys.modules, "scrapy_dripper.corpus.steps", None)
    done = run(*arguments, one)
    assert (done.code, "scrapy-dripper[corpus]" in done.err) == (2, True)


def test_a_damaged_folder_is_named_or_mended(tmp_path: Path, run: Run) -> None:
    """Notes and stats that are no longer what they were get one sentence, and a table that is gone is made again."""
    (archive,) = shards(tmp_path / "in", structured(2), 1)
    out = tmp_path / "out"
    arguments = ("corpus", "extract", archive, "-o", out, "--workers", "1")
    assert run(*arguments).code == 0

    (out / "00000.parquet").unlink()
    assert run(*arguments).code == 0
    assert len(table(out)) == 2

    (stats,) = (out / "logs" / "stats").glob("*.json")
    for path, damages, said in (
        (stats, ("{", "[1]", "5", "[" * 100_000), "00000.json is damaged: delete"),
        (out / "run.json", ("", "[]", "null", "{", "[" * 100_000), "run.json is damaged: name another folder"),
    ):
        whole = path.read_text()
        for damage in damages:
            path.write_text(damage)
            done = run(*arguments)
            assert (done.code, said in done.err) == (2, True)
        path.write_text(whole)


def test_records_that_cannot_be_read_end_in_exit_code_1(tmp_path: Path, run: Run) -> None:
    """All pages are in the table, and the last line has the counts. Records of other kinds are no damage."""
    honest, hostile = tmp_path / "honest", tmp_path / "hostile"
    for folder, animals in ((honest, HONEST), (hostile, HOSTILE)):
        folder.mkdir()
        for number, animal in enumerate(animals):
            (folder / f"{number:03}.warc").write_bytes(animal.data)

    whole = run("corpus", "extract", honest, "-o", tmp_path / "1", "--tasks", 1, *OWN)
    assert (whole.code, "cannot be read" in whole.err) == (0, False)
    assert len(table(tmp_path / "1")) == sum(len(animal.bodies) for animal in HONEST)

    lost = sum((Counter(animal.skipped) for animal in HOSTILE), Counter())
    said = ", ".join(f"{name} {lost[name]:,}" for name in ("broken_archive", "cut_off", "encoding", "invalid"))
    for _ in range(2):  # the second time, nothing is left to do, but nothing was mended
        arguments = ("--tasks", 1, "--max-bytes", LIMIT // 10, *OWN)
        damaged = run("corpus", "extract", hostile, "-o", tmp_path / "2", *arguments)
        assert damaged.code == 1
        assert damaged.err.splitlines()[-1].endswith(f"records that cannot be read: {said}")
        assert len(table(tmp_path / "2")) == sum(len(animal.bodies) for animal in HOSTILE)
