"""Processes for the functions of a command, as training and evaluation start them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from scrapy_dripper.workers import spawned
from tests.workers.children import SECONDS, comes_true, gone

pytestmark = pytest.mark.skipif(os.name != "posix", reason="looks at processes as POSIX has them")


def work(folder: Path, seconds: int) -> int:
    """Say which process this is, and take some time."""
    (folder / str(os.getpid())).touch()
    time.sleep(seconds)
    return os.getpid()


def train(folder: Path, seconds: int) -> None:
    """Let two processes work, as a program does."""
    with spawned(2) as pool:
        for task in [pool.submit(work, folder, seconds) for _ in range(2)]:
            task.result()
        (folder / "done").touch()
        time.sleep(SECONDS)


@pytest.mark.parametrize(("seconds", "seen"), [(SECONDS, 2), (1, 3)], ids=["at work", "idle"])
def test_they_end_with_a_program_that_is_killed(seconds: int, seen: int, tmp_path: Path) -> None:
    """By themselves, they would wait for more to do for ever."""
    program = tmp_path / "program.py"
    call = f"if __name__ == '__main__': train(Path({str(tmp_path)!r}), {seconds})"
    program.write_text(f"from tests.workers.test_spawned import *\n{call}", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen([sys.executable, str(program)], env=environment)
    assert comes_true(lambda: len(list(tmp_path.glob("[0-9d]*"))) >= seen)

    process.kill()
    process.wait()

    pids = [int(path.name) for path in tmp_path.glob("[0-9]*")]
    assert comes_true(lambda: all(map(gone, pids)), SECONDS / 4)


def test_they_end_with_an_exception(tmp_path: Path) -> None:
    """Ctrl-C does not wait for what they do, and they leave it to the program."""
    with suppress(KeyboardInterrupt), spawned(1) as pool:
        pool.submit(work, tmp_path, SECONDS)
        assert comes_true(lambda: any(tmp_path.iterdir()))
        (pid,) = (int(path.name) for path in tmp_path.iterdir())
        os.kill(pid, signal.SIGINT)
        assert not gone(pid)
        raise KeyboardInterrupt

    assert comes_true(lambda: gone(pid), SECONDS / 4)
