"""Run the tasks of a pipeline of datatrove on this machine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

import dill
from datatrove.executor.local import LocalPipelineExecutor
from fsspec.implementations.local import LocalFileSystem
from tqdm import tqdm

from scrapy_dripper.workers.spawned import spawned

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
