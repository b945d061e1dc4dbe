"""Run the ranks of a pipeline on a cluster: datatrove's executors for Ray and Slurm."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from datatrove.executor.ray import RayPipelineExecutor
from datatrove.executor.slurm import SlurmPipelineExecutor
from datatrove.utils.stats import PipelineStats

from scrapy_dripper.corpus.ranks import RankProcesses, RanksFailedError

LOOK = 0.5
"""Seconds between two checks for completed ranks, and for the parent process."""
JOB = "slurm_job"
"""The file with the number of the last job, in the folder of the logs."""


class RayRanks(RayPipelineExecutor):  # type: ignore[misc]
    """Run a datatrove pipeline on the Ray cluster that ``ray.init()`` has connected to, with a process for each rank.

    datatrove runs ranks in a process pool of its actor. If a process of the pool is killed, for example because memory
    ran out, the actor waits for ever. If the actor is killed, its pool continues to run beside the actor that replaces
    it. Here, the process in the pool only starts another process for the rank. It starts that process again if it dies,
    and ends it when the actor ends.
    """

    def __init__(self, pipeline: list[Any], tasks: int, workers: int, logging_dir: str, **resources: int) -> None:
        """``workers`` is how many ranks run at the same time; ``resources`` are datatrove's."""
        super().__init__(pipeline, tasks, workers, logging_dir=logging_dir, **resources)
        self._here = os.getcwd()

    def run(self, finished: Callable[[int], None] | None = None) -> None:
        """Run all ranks that are not complete. Call ``finished`` with each complete rank, starting with earlier runs.

        If ranks fail, raise :exc:`~scrapy_dripper.corpus.ranks.RanksFailedError` after all others are done.
        """
        seen: set[int] = set()
        ended = threading.Event()

        def look() -> None:
            for rank in sorted(set(range(self.tasks)) - set(self.get_incomplete_ranks()) - seen):
                seen.add(rank)
                if finished is not None:
                    finished(rank)

        def watch() -> None:
            while not ended.wait(LOOK):
                look()

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            super().run()
        finally:
            ended.set()
            watching.join()
        look()
        if failed := self.get_incomplete_ranks():
            raise RanksFailedError(failed, self.tasks, self.logging_dir.resolve_paths("logs"))

    def _run_for_rank(self, rank: int, local_rank: int = 0, node_rank: int = -1) -> PipelineStats:  # noqa: ARG002
        _end_with_parent()
        if os.path.isdir(self._here):
            os.chdir(self._here)  # so that relative paths mean the same as in the process that started the pipeline
        RankProcesses(self.pipeline, self.tasks, 1, self.logging_dir).run(ranks=[rank])
        return PipelineStats()


def _end_with_parent() -> None:
    """End this process when its parent process has ended, so that its ranks end as well."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            ended.wait(LOOK)
        os._exit(1)

    ended = threading.Event()
    threading.Thread(target=watch, daemon=True).start()


class _Script(Exception):  # noqa: N818 (it is the result)
    """The script of a job that is not to be submitted."""


class SlurmRanks(SlurmPipelineExecutor):  # type: ignore[misc]
    """Run a datatrove pipeline as a job array of Slurm, with the Python environment of this process."""

    def __init__(
        self,
        pipeline: list[Any],
        tasks: int,
        *,
        workers: int,
        logging_dir: str,
        options: Mapping[str, str],
        **resources: int,
    ) -> None:
        """``options`` are options of ``sbatch``, such as ``partition``; ``resources`` are datatrove's."""
        super().__init__(
            pipeline,
            tasks,
            time=None,
            partition=None,
            qos=None,
            workers=workers,
            job_name="scrapy-dripper",
            sbatch_args=dict(options),
            env_command=f"export PATH={shlex.quote(os.path.dirname(sys.executable))}:$PATH",
            logging_dir=logging_dir,
            **resources,
        )
        self._only_script = False

    def get_sbatch_args(self, max_array: int = 1) -> dict[str, Any]:
        """Return the options of the script. If it has no partition or time limit, Slurm uses its defaults."""
        return {name: value for name, value in super().get_sbatch_args(max_array).items() if value is not None}

    def get_launch_file_contents(self, sbatch_args: dict[str, Any], run_script: str) -> str:
        """Return the script for ``sbatch``."""
        text: str = super().get_launch_file_contents(sbatch_args, run_script)
        if self._only_script:
            raise _Script(text)
        return text

    def launch_merge_stats(self) -> None:
        """Do nothing. datatrove's job that merges the stats waits in the queue for ever if a rank fails."""

    def script(self) -> str:
        """Return the script that :meth:`submit` would submit, which is empty if all ranks are complete."""
        self._only_script = True
        try:
            self.launch_job()
        except _Script as script:
            return str(script)
        finally:
            self._only_script = False
        return ""

    def submit(self) -> str:
        """Submit the job, and return its number. Raise an error of :mod:`subprocess` if ``sbatch`` fails."""
        self.launch_job()
        Path(self.logging_dir.resolve_paths(JOB)).write_text(f"{self.job_id}\n", encoding="utf-8")
        return str(self.job_id)

    def running(self) -> str | None:
        """Return the number of the last job if it has not ended, and None otherwise.

        A second job would change the ranks of the first, because both read them from the same file.
        """
        try:
            job = Path(self.logging_dir.resolve_paths(JOB)).read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        queue = subprocess.run(["squeue", "-h", "-j", job], capture_output=True, text=True, check=False)
        return job if queue.returncode == 0 and queue.stdout.strip() else None
