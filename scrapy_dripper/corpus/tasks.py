"""Run the tasks of a pipeline of datatrove on this machine, and show how many documents they have read."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Any, TypeVar

import dill
from datatrove.executor.local import LocalPipelineExecutor
from fsspec.implementations.local import LocalFileSystem
from tqdm import tqdm

from scrapy_dripper.corpus.processes import LINE_SECONDS
from scrapy_dripper.workers import spawned

logger = logging.getLogger(__name__)


def local(path: str | Path) -> tuple[str, LocalFileSystem]:
    """Return a path so that datatrove takes it as it is. A text could be a URL, or several of them (``a::b``)."""
    return str(path), LocalFileSystem()


class LocalTasks(LocalPipelineExecutor):  # type: ignore[misc]
    """Runs tasks in processes that end with this one, even if it is killed.

    Those of datatrove's own class go on alone, and it waits for ever for one of them that was killed.
    """

    def __init__(self, steps: list[Any], tasks: int, workers: int, logs: Path) -> None:
        super().__init__(steps, tasks, min(tasks, workers), local(logs))

    def run(self, ranks: list[int]) -> None:
        """Run tasks. One that fails does not stop the others.

        Raise :exc:`~concurrent.futures.process.BrokenProcessPool` if a process is killed.
        """
        if not ranks:
            return
        self.save_executor_as_json()
        with self._begun(ranks) as ends:
            for end in ends:
                try:
                    end()
                except BrokenProcessPool:  # noqa: PERF203
                    raise
                except Exception:  # of any step; datatrove has logged it
                    logger.debug("a task has failed", exc_info=True)

    @contextmanager
    def _begun(self, ranks: list[int]) -> Iterator[Iterator[Callable[[], object]]]:
        """Give a function for each task that waits for its end, in the order in which they end."""
        if self.workers == 1:
            yield (partial(_run, self, rank) for rank in ranks)
            return
        packed = dill.dumps(self)  # pickle cannot pack steps that have functions
        with spawned(min(self.workers, len(ranks))) as pool:
            yield (task.result for task in as_completed([pool.submit(_unpack_and_run, packed, rank) for rank in ranks]))


def _unpack_and_run(packed: bytes, rank: int) -> None:
    tqdm.set_lock(RLock())  # by default, one for several processes, which Python reports if this one is killed
    _run(dill.loads(packed), rank)


def _run(executor: LocalTasks, rank: int) -> None:
    # Steps count what they do, so each task has its own. Of the log, only errors are shown on the terminal.
    deepcopy(executor)._run_for_rank(rank, local_rank=1)


T = TypeVar("T")

SECONDS = 0.5
"""How often the number is shown on a terminal."""


class Progress:
    """Counts the documents of a pipeline in a file to which each task appends a byte for each of them.

    So it needs no process of its own, and shows what is done, not what a task that is half done would take.
    """

    def __init__(self, path: Path, name: str, say: Callable[[str], None]) -> None:
        """``say`` prints a line above the progress bar."""
        self._path, self._name, self._say = path, name, say

    @property
    def step(self) -> Callable[..., Iterator[object]]:
        """The step of a pipeline that counts the documents that pass it."""
        return partial(_counted, str(self._path))

    @contextmanager
    def shown(self, total: int | None) -> Iterator[None]:
        """Show the number while the pipeline runs, and say at the end how many documents there were, and how fast.

        ``total`` is the number of documents, if it is known before they are read.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(b"")
        began, has_ended = time.monotonic(), Event()
        with tqdm(total=total, desc=self._name, unit="page", disable=None) as bar:
            thread = Thread(target=self._show, args=(bar, total, has_ended), daemon=True)
            thread.start()
            try:
                yield
            finally:
                has_ended.set()
                thread.join()
                count, seconds = self._count(), time.monotonic() - began
                bar.update(count - bar.n)
                self._path.unlink()
        if count:
            self._say(
                f"{self._name}: {_pages(count)} in {tqdm.format_interval(seconds)}, {count / seconds:,.1f} a second"
            )

    def _count(self) -> int:
        return os.stat(self._path).st_size

    def _show(self, bar: tqdm[object], total: int | None, has_ended: Event) -> None:
        before = 0
        while not has_ended.wait(LINE_SECONDS if bar.disable else SECONDS):
            now = self._count()
            bar.update(now - bar.n)
            if bar.disable:
                of = "" if total is None else f" of {total:,}"
                self._say(f"{self._name}: {_pages(now)}{of}, {(now - before) * 60 / LINE_SECONDS:,.0f} a minute")
                before = now


def _pages(count: int) -> str:
    return "1 page" if count == 1 else f"{count:,} pages"


def _counted(path: str, rows: Iterable[T] | None, rank: int, world_size: int) -> Iterator[T]:  # noqa: ARG001
    """Yield what the step before yields."""
    with open(path, "ab", buffering=0) as file:
        for row in rows or ():
            yield row
            file.write(b".")
