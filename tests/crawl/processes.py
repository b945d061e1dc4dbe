"""Programs in processes of their own. They are forked from one that has imported Scrapy, which takes a second."""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scrapy.cmdline import execute
from scrapy.settings import Settings

from tests.crawl.crawling import EXTENSIONS, PATIENCE

COMMAND: dict[str, Any] = {
    "COMMANDS_MODULE": "scrapy_dripper.commands",
    "EXTENSIONS_BASE": EXTENSIONS,
    "DRIPPER_LIMITS": {"blocks": 1},
    "DRIPPER_FALLBACK": "html",
}
"""Settings of commands outside of any project. The fallback replaces the engine."""


@dataclass(frozen=True)
class Done:
    """What a program that has ended has left."""

    returncode: int
    stdout: str
    stderr: str


@cache
def _context() -> Any:
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.crawl.preloaded"])
    return context


class Program:
    """A running call of a function that can be imported. What it prints and logs goes to files."""

    def __init__(self, main: Callable[..., object], *args: object, cwd: Path | None = None) -> None:
        self._folder = TemporaryDirectory()
        self._files = [Path(self._folder.name) / name for name in ("said", "logged")]
        for file in self._files:
            file.touch()
        theirs, self._input = _context().Pipe(duplex=False)
        self._process = _context().Process(target=_run, args=(main, args, cwd, theirs, self._files))
        self._process.start()
        theirs.close()

    @property
    def said(self) -> list[str]:
        """The lines that it has printed."""
        return self._files[0].read_text(encoding="utf-8").splitlines()

    @property
    def logged(self) -> list[str]:
        """The lines that it has written to standard error."""
        return self._files[1].read_text(encoding="utf-8").splitlines()

    @property
    def is_running(self) -> bool:
        """True until the process has ended."""
        return bool(self._process.is_alive())

    def wait_for(self, words: str, count: int = 1) -> None:
        """Wait until a number of lines with these words have been printed or logged."""
        deadline = time.monotonic() + PATIENCE
        while sum(words in line for line in [*self.said, *self.logged]) < count:
            assert time.monotonic() < deadline, "\n".join([words, *self.said, *self.logged])
            time.sleep(0.02)

    def send_signal(self, number: int = signal.SIGINT) -> None:
        """Send a signal, by default that of Ctrl-C."""
        os.kill(self._process.pid, number)

    def children(self) -> list[int]:
        """Return the child processes, from the system."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/children")
        return [int(pid) for path in tasks for pid in path.read_text(encoding="ascii").split()]

    def say(self) -> None:
        """Write a line to the program's standard input."""
        os.write(self._input.fileno(), b"\n")

    def end(self) -> int:
        """Wait for the end of the process and return its exit status."""
        self._process.join(PATIENCE)
        assert self._process.exitcode is not None, "\n".join([*self.said, *self.logged])
        return int(self._process.exitcode)

    def kill(self) -> None:
        """End the process, if it has not ended."""
        self._process.kill()
        self._process.join()
        self._input.close()

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items that the program has printed, each as a line that begins with ``item``."""
        return [json.loads(line.removeprefix("item ")) for line in self.said if line.startswith("item ")]


def run(main: Callable[..., object], *args: object, cwd: Path | None = None) -> Done:
    """Run a program to its end."""
    program = Program(main, *args, cwd=cwd)
    try:
        status = program.end()
    finally:
        program.kill()
    return Done(status, *("".join(f"{line}\n" for line in lines) for lines in (program.said, program.logged)))


def scrapy_command(arguments: list[str], settings: Mapping[str, Any]) -> None:
    """Run a command of Scrapy. Without settings, those of the project in the current folder count."""
    sys.path.insert(0, "")
    execute(["scrapy", *arguments], Settings(dict(settings)) if settings else None)


def _run(main: Callable[..., object], args: tuple[Any, ...], cwd: Path | None, stdin: Any, files: list[Path]) -> None:
    os.dup2(stdin.fileno(), 0)
    for descriptor, file in enumerate(files, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND), descriptor)
    sys.stdin, sys.stdout, sys.stderr = (
        open(descriptor, mode, encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115 (as long as the process)
        for descriptor, mode in enumerate("rww")
    )
    if cwd is not None:
        os.chdir(cwd)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    try:
        main(*args)
    finally:
        gc.collect()  # as the end of an interpreter does: what nobody has looked at is logged
        atexit._run_exitfuncs()
