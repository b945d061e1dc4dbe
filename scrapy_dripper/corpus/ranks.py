"""An executor for datatrove on one machine, whose ranks can be killed.

``LocalPipelineExecutor`` of datatrove 0.10 waits for ever when one of its processes is killed, as Linux does when
memory runs out. Here each rank is a fresh process, and one that dies is started again.
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
"""Times that a rank is started in one run."""
TICK = 0.1
"""Seconds between two looks at the ranks."""


class RanksFailedError(RuntimeError):
    """Ranks did not get to their end; ``ranks`` says which. The next run begins them again, and no other."""

    def __init__(self, ranks: Sequence[int], tasks: int, logs: str) -> None:
        named = ", ".join(map(str, ranks[:10])) + (", ..." if len(ranks) > 10 else "")
        super().__init__(f"{len(ranks)} of {tasks} tasks failed, {TRIES} times each: {named}; their logs are in {logs}")
        self.ranks = tuple(ranks)


class RankProcesses(PipelineExecutor):  # type: ignore[misc]
    """Run a pipeline of datatrove on this machine, each rank in a process of its own.

    A rank that has finished is never run again: that is datatrove's rule, whose logs, stats and marks are used
    (``logging_dir``). One that dies or fails is started once more; what it had written is written anew. When this
    process ends, however it ends, its ranks end.
    """

    def __init__(self, pipeline: list[Any], tasks: int, workers: int, logging_dir: str) -> None:
        """``tasks`` is the number of ranks, ``workers`` how many of them run at a time."""
        super().__init__(pipeline, logging_dir)
        self.tasks, self.workers = tasks, workers

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return self.tasks

    def get_distributed_env(self, node_rank: int = -1) -> DistributedEnvVars:  # noqa: ARG002
        """Return what datatrove wants to know of a cluster: that there is none."""
        unknown = dict.fromkeys(("cpus_per_task", "mem_per_cpu", "gpus_on_node"), "-1")
        values = {"node_ips": "localhost", "executor": "LOCAL", **unknown}
        return DistributedEnvVars(**{f"datatrove_{name}": value for name, value in values.items()})

    def run(self, finished: Callable[[int], None] | None = None) -> None:
        """Run all ranks that have not finished, and call ``finished`` with each that has, those of earlier runs first.

        Raise :exc:`RanksFailedError` when all others are done.
        """
        waiting = deque(self.get_incomplete_ranks())
        for rank in sorted(set(range(self.tasks)) - set(waiting)):
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
        with self.logging_dir.open(f"logs/task_{rank:05d}.stderr", "wb") as errors:  # what comes before its log is open
            process = subprocess.Popen(
                [sys.executable, "-m", "scrapy_dripper.corpus.rank", str(rank)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors.fileno(),
            )
        try:
            assert process.stdin is not None
            process.stdin.write(len(program).to_bytes(8, "big") + program)
            process.stdin.flush()  # and it stays open: its end tells the rank that nobody waits for it any more
        except OSError:  # It is gone already.
            logger.debug("rank %(rank)d did not start", {"rank": rank}, exc_info=True)
        return process


def _close(process: subprocess.Popen[bytes]) -> None:
    stream: BinaryIO | None = process.stdin  # type: ignore[assignment]
    try:
        if stream is not None:
            stream.close()
    except OSError:
        logger.debug("a rank ended before it had read its pipeline")
