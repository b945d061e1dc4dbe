"""Show how many documents the tasks of a pipeline have read, in any of its processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")

SECONDS, LINE_SECONDS = 0.5, 60.0
"""How often the number is shown on a terminal, and elsewhere."""


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
