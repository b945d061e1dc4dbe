"""Measure pages in several processes, and read texts that were extracted before."""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from scrapy_dripper.workshop.dataset.pages import DataError

AHEAD = 4
"""Maximum number of pages that wait for each process. A file of pages can have gigabytes."""

T = TypeVar("T")
R = TypeVar("R")


class RunError(Exception):
    """The run cannot continue. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored extraction: the text, and the labels and probabilities if they were stored as well."""

    text: str
    labels: tuple[bool, ...] = ()
    probabilities: tuple[float, ...] = ()


def read_stored(path: Path) -> dict[str, Stored]:
    """Return the texts of a JSON Lines file by id. Raise :exc:`DataError` if the file is invalid."""
    stored: dict[str, Stored] = {}
    number = 0
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007 (the error names it)
                if not line.strip():
                    continue
                entry = json.loads(line)
                labels = tuple(bool(value) for value in entry.get("labels") or ())
                probabilities = tuple(float(value) for value in entry.get("probabilities") or ())
                if not all(0 <= p <= 1 for p in probabilities):
                    raise ValueError("a probability is not between 0 and 1")
                if entry["id"] in stored:
                    raise ValueError(f"the id {entry['id']!r} is there twice")
                stored[str(entry["id"])] = Stored(str(entry.get("text") or ""), labels, probabilities)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"{type(error).__name__}: {error}"
        raise DataError(f'{path}, line {number}: expected {{"id": "...", "text": "..."}} ({what})') from None
    return stored


def measured(make: Callable[[], Any], tasks: Iterable[T], jobs: int) -> Iterator[Any]:
    """Yield the result of each task, in order.

    Each process calls ``make`` once, which returns a function of a task that can also be closed. Raise :exc:`RunError`
    if a process dies.
    """
    if jobs <= 1:
        with closing(make()) as measurer:
            yield from map(measurer, tasks)
        return
    # Spawned, because the threads of the model's runtime do not survive a fork.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _start, (make,))
    waiting: deque[Future[Any]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(_measure, task))
            if len(waiting) >= AHEAD * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise RunError(
            "a process died, out of memory or in the code of a peer: try a smaller --jobs or fewer --peers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_measurer: Callable[[Any], Any] | None = None


def _start(make: Callable[[], Any]) -> None:
    global _measurer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent handles Ctrl-C and lets this process finish its page.
    _measurer = make()


def _measure(task: Any) -> Any:
    assert _measurer is not None
    return _measurer(task)
