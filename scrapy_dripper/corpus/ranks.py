"""A local datatrove executor that survives killed ranks.

``LocalPipelineExecutor`` of datatrove 0.10 waits for ever if one of its processes is killed, for example because memory
runs out. Here, each rank is a fresh process, and a rank that dies is started again.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import dill
from datatrove.executor.base import DistributedEnvVars, PipelineExecutor

logger = logging.getLogger(__name__)

TRIES = 2
"""How often a rank is started in one run."""
TICK = 0.1
"""Seconds between two checks of the ranks."""


class RanksFailedError(RuntimeError):
    """Some ranks failed; ``ranks`` holds their numbers. The next run only starts these again."""

    def __init__(self, ranks: Sequence[int], tasks: int, logs: str) -> None:
        named = ", ".join(map(str, ranks[:10])) + (", ..." if len(ranks) > 10 else "")
        super().__init__(f"{len(ranks)} of {tasks} tasks failed, {TRIES} times each: {named}; their logs are in {logs}")
        self.ranks, self._arguments = tuple(ranks), (ranks, tasks, logs)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments


class RankProcesses(PipelineExecutor):  # type: ignore[misc]
    """Run a datatrove pipeline on this machine, with each rank in its own process.

    Like other datatrove executors, it uses the logs, stats and completion marks in ``logging_dir``, and never runs a
    completed rank again. A rank that dies or fails is started once more and rewrites its output. When this process
    ends, for any reason, its ranks end as well.
    """

    def __init__(self, pipeline: list[Any], tasks: int, workers: int, logging_dir: str) -> None:
        """``tasks`` is the number of ranks; ``workers`` is how many of them run at the same time."""
        super().__init__(pipeline, logging_dir)
        self.tasks, self.workers = tasks, workers

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return self.tasks

    def get_distributed_env(self, node_rank: int = -1) -> DistributedEnvVars:  # noqa: ARG002
        """Return the cluster environment for datatrove: there is no cluster."""
        unknown = dict.fromkeys(("cpus_per_task", "mem_per_cpu", "gpus_on_node"), "-1")
        values = {"node_ips": "localhost", "executor": "LOCAL", **unknown}
        return DistributedEnvVars(**{f"datatrove_{name}": value for name, value in values.items()})

    def run(self, finished: Callable[[int], None] | None = None, ranks: Sequence[int] | None = None) -> None:
        """Run all ranks, or those named, that are not complete.

        Call ``finished`` with each complete rank, starting with earlier runs. If ranks fail, raise
        :exc:`RanksFailedError` after all others are done.
        """
        ranks = range(self.tasks) if ranks is None else ranks
        waiting = deque(self.get_incomplete_ranks(ranks))
        for rank in sorted(set(ranks) - set(waiting)):
            if finished is not None:
                finished(rank)
        program = dill.dumps(self)
        tries = dict.fromkeys(waiting, 0)
        running: dict[int, subprocess.Popen[bytes]] = {}
        failed: list[int] = []
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    rank = waiting.popleft()
                    tries[rank] += 1
                    running[rank] = self._start(rank, program)
                time.sleep(TICK)
                for rank, process in [(rank, one) for rank, one in running.items() if one.poll() is not None]:
                    del running[rank]
                    _close(process)
                    if self.is_rank_completed(rank):
                        if finished is not None:
                            finished(rank)
                    elif tries[rank] < TRIES:
                        logger.warning(
                            "rank %(rank)d ended with %(code)s and begins again",
                            {"rank": rank, "code": process.returncode},
                        )
                        waiting.append(rank)
                    else:
                        failed.append(rank)
        finally:
            for process in running.values():
                process.kill()
                process.wait()
                _close(process)
        if failed:
            raise RanksFailedError(sorted(failed), self.tasks, self.logging_dir.resolve_paths("logs"))

    def _start(self, rank: int, program: bytes) -> subprocess.Popen[bytes]:
        with self.logging_dir.open(f"logs/task_{rank:05d}.stderr", "wb") as errors:  # errors before its log is open
            process = subprocess.Popen(
                [sys.executable, "-m", "scrapy_dripper.corpus.rank", str(rank)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors.fileno(),
            )
        try:
            assert process.stdin is not None
            process.stdin.write(len(program).to_bytes(8, "big") + program)
            process.stdin.flush()  # it stays open, so that the rank notices when this process ends
        except OSError:  # The rank has already ended.
            logger.debug("rank %(rank)d did not start", {"rank": rank}, exc_info=True)
        return process


def _close(process: subprocess.Popen[bytes]) -> None:
    stream: BinaryIO | None = process.stdin  # type: ignore[assignment]
    try:
        if stream is not None:
            stream.close()
    except OSError:
        logger.debug("a rank ended before it had read its pipeline")
