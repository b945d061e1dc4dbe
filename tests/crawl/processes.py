"""Programs in processes of their own. They are forked from one that has imported Scrapy, which takes a second."""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
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
    """A running call of a function that can be imported."""

    def __init__(self, main: Callable[..., object], *args: object, cwd: Path | None = None) -> None:
        pipes = [_context().Pipe(duplex=False) for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        self._process = _context().Process(target=_run, args=(main, args, cwd, theirs))
        self._process.start()
        self.said: list[str] = []
        self.logged: list[str] = []
        self._changed = threading.Condition()
        ours = [open(os.dup(end.fileno()), mode, encoding="utf-8") for end, mode in  # noqa: SIM115 (for the readers)
                zip((pipes[0][1], pipes[1][0], pipes[2][0]), "wrr", strict=True)]  # fmt: skip
        for end in (end for pipe in pipes for end in pipe):
            end.close()
        self._input = ours[0]
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((ours[1], self.said), (ours[2], self.logged))
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any, lines: list[str]) -> None:
        with stream:
            for line in stream:
                with self._changed:
                    lines.append(line.rstrip("\n"))
                    self._changed.notify_all()

    @property
    def is_running(self) -> bool:
        """True until the process has ended."""
        return bool(self._process.is_alive())

    def wait_for(self, words: str, count: int = 1) -> None:
        """Wait until a number of lines with these words have been printed or logged."""

        def found() -> bool:
            return sum(words in line for line in [*self.said, *self.logged]) >= count

        with self._changed:
            assert self._changed.wait_for(found, PATIENCE), "\n".join([words, *self.said, *self.logged])

    def send_signal(self, number: int = signal.SIGINT) -> None:
        """Send a signal, by default that of Ctrl-C."""
        os.kill(self._process.pid, number)

    def children(self) -> list[int]:
        """Return the child processes, from the system."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/children")
        return [int(pid) for path in tasks for pid in path.read_text(encoding="ascii").split()]

    def say(self, line: str = "") -> None:
        """Write a line to the program's standard input."""
        self._input.write(f"{line}\n")
        self._input.flush()

    def end(self, patience: float = PATIENCE) -> int:
        """Wait for the end of the process and return its exit status."""
        self._process.join(patience)
        for reader in self._readers:
            reader.join(PATIENCE)
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


def _run(main: Callable[..., object], args: tuple[object, ...], cwd: Path | None, streams: list[Any]) -> None:
    for descriptor, stream in enumerate(streams):
        os.dup2(stream.fileno(), descriptor)
        stream.close()
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
