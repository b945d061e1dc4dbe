"""Where the tasks of ``scrapy-dripper corpus extract`` run: on this machine, on a Ray cluster, or as jobs of Slurm."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scrapy_dripper.cli.console import UsageError, say
from scrapy_dripper.cli.options import count

EXECUTORS = ("local", "ray", "slurm")
MEMORY = 2
"""Memory for each core of a task, in gigabytes. It has to hold a batch, the model and the largest page."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a cluster."""
    parser.add_argument(
        "--executor",
        choices=EXECUTORS,
        default="local",
        help="where tasks run: on this machine (local, the default), on a Ray cluster, or as a job array of Slurm. "
        "DIR has to be on a disk that all machines share",
    )
    parser.add_argument("--gpus", type=count, metavar="N", default=0, help="GPUs for each task (ray, slurm)")
    parser.add_argument(
        "--memory",
        type=count,
        metavar="GB",
        default=MEMORY,
        help=f"memory for each core of a task (ray, slurm); a task has one core, or one for each worker process. "
        f"Default: {MEMORY}",
    )
    parser.add_argument(
        "--sbatch",
        type=_option,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of sbatch: partition=cpu, time=4:00:00, account=...; can be given more than once (slurm)",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the script of the job, submit nothing (slurm)")


def run(
    arguments: argparse.Namespace, steps: list[Any], tasks: int, logs: Path, finished: Callable[[int], None]
) -> None:
    """Run the tasks that are not done, or submit them, and call ``finished`` with each that is done.

    Raise :exc:`~scrapy_dripper.corpus.ranks.RanksFailedError` if tasks failed, and :exc:`UsageError` if there is no
    such cluster.
    """
    if arguments.executor != "slurm" and (arguments.sbatch or arguments.dry_run):
        raise UsageError("--sbatch and --dry-run are for --executor slurm")
    if arguments.executor == "ray":
        _on_ray(arguments, steps, tasks, logs, finished)
    elif arguments.executor == "slurm":
        _on_slurm(arguments, steps, tasks, logs, finished)
    else:
        from scrapy_dripper.corpus.ranks import RankProcesses

        workers = min(tasks, arguments.workers or os.cpu_count() or 1)
        RankProcesses(steps, tasks, workers, str(logs)).run(finished)


def _on_ray(
    arguments: argparse.Namespace, steps: list[Any], tasks: int, logs: Path, finished: Callable[[int], None]
) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # do not let Ray report how it is used
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"--executor ray needs Ray ({error}): install it with pip install ray") from None

    from scrapy_dripper.corpus.clusters import RayRanks

    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray has no base class for its errors
        raise UsageError(f"cannot start Ray, or connect to RAY_ADDRESS: {error}") from None
    try:
        needed = _resources(arguments)
        room = _room(ray.cluster_resources(), needed)
        if not room and not arguments.workers:
            raise UsageError(
                f"no task fits into this Ray cluster: each needs {needed['cpus_per_task']} cores with "
                f"{arguments.memory} GB each and {arguments.gpus} GPUs; name fewer with --processes, --memory or --gpus"
            )
        RayRanks(steps, tasks, min(tasks, arguments.workers or room), logging_dir=str(logs), **needed).run(finished)
    finally:
        ray.shutdown()


def _room(cluster: dict[str, float], needed: dict[str, int]) -> int:
    """Return how many tasks a Ray cluster has room for, at most."""
    cores = needed["cpus_per_task"]
    rooms = [cluster.get("CPU", 0) / cores, cluster.get("memory", 0) / (needed["mem_per_cpu_gb"] * cores * 2**30)]
    if needed["gpus_per_task"]:
        rooms.append(cluster.get("GPU", 0) / needed["gpus_per_task"])
    return int(min(rooms))


def _on_slurm(
    arguments: argparse.Namespace, steps: list[Any], tasks: int, logs: Path, finished: Callable[[int], None]
) -> None:
    from scrapy_dripper.corpus.clusters import SlurmRanks

    executor = SlurmRanks(
        steps,
        tasks,
        workers=arguments.workers or -1,
        logging_dir=str(logs.absolute()),
        options=dict(arguments.sbatch),
        **_resources(arguments),
    )
    left = executor.get_incomplete_ranks()
    if arguments.dry_run:
        print(executor.script(), end="")
        return
    for rank in sorted(set(range(tasks)) - set(left)):
        finished(rank)
    if not left:
        return
    if shutil.which("sbatch") is None:
        raise UsageError(
            "--executor slurm needs sbatch, which this machine does not have: run the command where jobs are "
            "submitted, or see the script with --dry-run"
        )
    job = executor.running()
    if job is not None:
        say(f"job {job} of Slurm has not ended: {tasks - len(left)} of {tasks} tasks are done")
        return
    try:
        job = executor.submit()
    except subprocess.CalledProcessError as error:
        raise UsageError(f"sbatch refused the job (exit code {error.returncode}): correct --sbatch") from None
    say(f"submitted job {job} of Slurm with {len(left)} tasks; repeat the command to see how many are done")


def _resources(arguments: argparse.Namespace) -> dict[str, int]:
    """Return what a task needs, in datatrove's names."""
    return {
        "cpus_per_task": max(1, arguments.processes),
        "mem_per_cpu_gb": arguments.memory,
        "gpus_per_task": arguments.gpus,
    }


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE (got {text!r})")
    return name.lstrip("-"), value
