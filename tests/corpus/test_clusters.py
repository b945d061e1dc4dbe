"""``scrapy-dripper corpus extract --executor ray|slurm``, with Ray itself, and with a stand-in for Slurm's commands."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from scrapy_dripper.cli import main
from tests.corpus.shards import document, shards, structured
from tests.corpus.test_command import OWN, _end, command, is_alive, result, table, until  # noqa: F401

pytest.importorskip("pyarrow.parquet", reason="needs the extra [corpus]")
pytest.importorskip("datatrove", reason="needs the extra [corpus]")

SBATCH = f"""#!{sys.executable}
'''Runs a script at once, as an array of jobs that may fail; prints what sbatch prints.'''
import os, re, subprocess, sys
*options, script = sys.argv[1:]
text = open(script).read()
open({{log!r}}, "a").write(text)
values = dict(option.removeprefix("--export=ALL,").split("=", 1) for option in options if "--export" in option)
most = int(re.search(r"#SBATCH --array=0-(\\d+)", text)[1])
for number in range(most + 1):
    job = {{"SLURM_ARRAY_TASK_ID": str(number), "SLURM_NODELIST": "localhost", **values}}
    with open({{log!r}} + ".out", "ab") as output:
        subprocess.run(["bash", script], env={{**os.environ, **job}}, stdout=output, stderr=output)
print("Submitted batch job 7")
"""
SRUN = """#!/bin/bash
while [[ $1 == -* ]]; do if [[ $1 == -n ]]; then shift; fi; shift; done
exec "$@"
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put commands of Slurm on the PATH; return the file that gets all scripts."""
    log = tmp_path / "scripts"
    sbatch = SBATCH.replace("{log!r}", repr(str(log))).replace("{{", "{").replace("}}", "}")
    programs = {"sbatch": sbatch, "srun": SRUN, "scontrol": "#!/bin/bash\necho localhost\n"}
    programs["squeue"] = f"#!/bin/bash\ncat '{tmp_path}/queue' 2>/dev/null\n"
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return log


def urls(folder: Path) -> Counter[object]:
    return Counter(row["url"] for row in table(folder))


def test_slurm_runs_what_is_not_done(
    tmp_path: Path, slurm: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each document is extracted once. A task that died is submitted again, and finished tasks are not."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    pages = structured(9)
    flag = tmp_path / "flag"
    flag.touch()
    pages[4] = ("https://example.org/bad.html", document("bad", f"<p>SEGFAULT-IF {flag} .</p>"))
    shards(tmp_path / "in", pages, 3)
    arguments = ["corpus", "extract", str(tmp_path / "in"), "-o", str(tmp_path / "out"), *OWN, "--executor", "slurm"]
    options = ["--sbatch", "partition=cpu", "--sbatch", "time=1:00:00", "--memory", "3", "--workers", "2"]

    assert main([*arguments, *options]) == 0
    assert "submitted job 7 of Slurm with 3 tasks" in capsys.readouterr().err
    script = slurm.read_text()
    for line in ("partition=cpu", "time=1:00:00", "mem-per-cpu=3G", "array=0-2%2", "cpus-per-task=1"):
        assert f"#SBATCH --{line}\n" in script
    assert script.count("#!/bin/bash") == 1  # no job that would wait for ever for the one that failed
    assert len(table(tmp_path / "out")) == 6

    (tmp_path / "queue").write_text("7 cpu scrapy-d R\n")
    flag.unlink()
    assert main(arguments) == 0
    assert "job 7 of Slurm has not ended: 2 of 3 tasks are done" in capsys.readouterr().err
    (tmp_path / "queue").unlink()

    assert main([*arguments, *options]) == 0
    assert "submitted job 7 of Slurm with 1 tasks" in capsys.readouterr().err
    assert "array=0-0%2" in slurm.read_text()
    assert urls(tmp_path / "out") == Counter(url for url, _ in pages)

    before = slurm.read_text()
    assert main(arguments) == 0
    assert "9 pages, 9 with content" in capsys.readouterr().err
    assert slurm.read_text() == before


def test_slurm_only_shows_the_script(
    tmp_path: Path, slurm: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--dry-run`` works without Slurm. Without both, one sentence says what to do."""
    shards(tmp_path / "in", structured(2), 2)
    arguments = ["corpus", "extract", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--executor", "slurm"]
    monkeypatch.setenv("PATH", os.defpath)

    assert main([*arguments, "--dry-run", "--sbatch", "account=web", "--gpus", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("#!/bin/bash\n#SBATCH")
    assert "--partition" not in printed
    for part in ("#SBATCH --account=web\n", "#SBATCH --gpus=1\n", "array=0-1\n", "launch_pickled_pipeline "):
        assert part in printed
    assert not slurm.exists()

    assert main(arguments) == 2
    assert "needs sbatch, which this machine does not have" in capsys.readouterr().err
    assert main([*arguments[:-1], "local", "--dry-run"]) == 2
    assert "are for --executor slurm" in capsys.readouterr().err


def test_slurm_refuses(tmp_path: Path, slurm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error is reported, and the command can be repeated."""
    (tmp_path / "bin" / "sbatch").write_text("#!/bin/bash\nexit 3\n")
    shards(tmp_path / "in", structured(1), 1)
    arguments = ["corpus", "extract", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--executor", "slurm"]
    assert main(arguments) == 2
    assert "sbatch refused the job (exit code 3)" in capsys.readouterr().err
    assert not (tmp_path / "out" / "logs" / "slurm_job").exists()


def test_ray_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shards(tmp_path / "in", structured(1), 1)
    monkeypatch.setitem(sys.modules, "ray", None)
    arguments = ["corpus", "extract", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--executor", "ray"]
    assert main(arguments) == 2
    assert "install it with pip install ray" in capsys.readouterr().err


def test_ray_cannot_be_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_: object) -> None:
        raise ConnectionError("nobody answers at 10.0.0.1:6379")

    shards(tmp_path / "in", structured(1), 1)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    arguments = ["corpus", "extract", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--executor", "ray"]
    assert main(arguments) == 2
    assert "or connect to RAY_ADDRESS: nobody answers at 10.0.0.1:6379" in capsys.readouterr().err


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("victim", ["rank", "actor", "command"])
def test_ray_goes_on_when_something_is_killed(tmp_path: Path, victim: str) -> None:
    """After kill -9, no document is lost or duplicated, and no finished task is repeated."""
    pytest.importorskip("ray", reason="needs Ray")
    begun, flag, done = tmp_path / "begun", tmp_path / "flag", tmp_path / "done"
    pages = structured(12)
    pages[0] = ("https://example.org/first.html", document("first", f"<p>COUNT {done} .</p>"))
    pages[-2] = ("https://example.org/slow.html", document("slow", f"<p>WAIT-FOR {begun} {flag} .</p>"))
    shards(tmp_path / "in", pages, 3)  # the first is in the first file, the slow one in the second
    arguments = (tmp_path / "in", "-o", tmp_path / "out", "--executor", "ray", "--workers", 1, *OWN)

    process = command(*arguments)
    until(lambda: begun.exists() and begun.read_text() != "")
    rank = int(begun.read_text())
    victims = {"rank": rank, "actor": parent(parent(rank)), "command": process.pid}
    assert b"RankWorker" in Path(f"/proc/{victims['actor']}/cmdline").read_bytes()
    os.kill(victims[victim], signal.SIGKILL)
    until(lambda: not is_alive(rank))
    flag.touch()
    code, said = result(process)
    if victim == "command":
        assert code == -signal.SIGKILL
        code, said = result(command(*arguments))

    assert code == 0, said
    assert urls(tmp_path / "out") == Counter(url for url, _ in pages)
    assert all(row["text"] for row in table(tmp_path / "out"))
    assert done.read_text() == "x"
    assert "12 pages, 12 with content" in said
    assert sorted(path.name for path in (tmp_path / "out").glob("*.parquet")) == [f"0000{n}.parquet" for n in range(3)]
    assert not list((tmp_path / "out" / "unfinished").iterdir())


def test_ray_names_tasks_that_fail(tmp_path: Path) -> None:
    """The other tasks are finished, and another executor can continue."""
    pytest.importorskip("ray", reason="needs Ray")
    pages = structured(6)
    pages[1] = ("https://example.org/bad.html", document("bad", "<p>SEGFAULT</p>"))
    shards(tmp_path / "in", pages, 2)
    arguments = (tmp_path / "in", "-o", tmp_path / "out", *OWN)

    code, said = result(command(*arguments, "--executor", "ray"))
    assert code == 1, said
    assert "1 of 2 tasks failed" in said
    assert len(table(tmp_path / "out")) == 3

    code, said = result(command(*arguments, "--processes", 1))
    assert code == 0, said
    assert urls(tmp_path / "out") == Counter(url for url, _ in pages)
