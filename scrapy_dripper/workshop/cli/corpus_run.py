"""Run datatrove pipelines in a folder: on this machine, on a Ray cluster, or as jobs of Slurm."""

from __future__ import annotations

import argparse
import json
import logging
import os
import shlex
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scrapy_dripper.cli.console import UsageError, say
from scrapy_dripper.cli.options import count
from scrapy_dripper.replace import replace_file

NOTE = "run.json"
"""Name of the file with the inputs and options of a command."""
MEMORY = 2
"""Memory for each core of a task, in gigabytes. It has to hold a batch, the model and the largest page."""


class Stage(NamedTuple):
    """A pipeline that runs when all tasks of the stages before it are complete."""

    name: str
    """Name of its folder in the folder of logs; may be empty."""
    tasks: int
    steps: list[Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where tasks run."""
    parser.add_argument("--workers", type=count, metavar="N", help="tasks at a time; default: one for each core")
    parser.add_argument(
        "--executor",
        choices=("local", "ray", "slurm"),
        default="local",
        help="datatrove's executor: tasks run on this machine (local, the default), on a Ray cluster, or as a job "
        "array of Slurm. DIR has to be on a disk that all machines share",
    )
    parser.add_argument("--gpus", type=count, metavar="N", default=0, help="GPUs for each task (ray, slurm)")
    parser.add_argument(
        "--memory", type=count, metavar="GB", default=MEMORY, help="memory for each core (ray, slurm); default: 2"
    )
    parser.add_argument(
        "--sbatch",
        type=_option,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of sbatch: partition=cpu and time=4:00:00 are needed; can be given more than once (slurm)",
    )


def missing(error: ImportError) -> UsageError:
    """Return the error for a package of the extra that is not installed."""
    return UsageError(
        f"this command needs more packages ({error}): install them with pip install 'scrapy-dripper[corpus]'"
    )


def claim(folder: Path, values: dict[str, Any]) -> None:
    """Write the inputs and options to a folder. Raise :exc:`UsageError` if it was begun with others.

    datatrove marks tasks as complete by their numbers, which would belong to other files.
    """
    note = folder / NOTE
    values = json.loads(json.dumps(values))
    try:
        before = json.loads(note.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if any(folder.glob("*.parquet")):
            raise UsageError(f"{folder} has Parquet files of another program; name another folder") from None
        replace_file(note, json.dumps(values, indent=1))
        return
    wrong = [name for name in values if before.get(name) != values[name]]
    if wrong:
        raise UsageError(
            f"{folder} was begun with other {' and '.join(wrong)} (see {note}); use those, or name another folder"
        )


def extracted(folder: Path) -> dict[str, Any]:
    """Return the note of a finished extraction. Raise :exc:`UsageError` if the folder does not hold one."""
    try:
        note: dict[str, Any] = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        tasks = note["tasks"]
    except (OSError, ValueError, KeyError):
        raise UsageError(f"{folder} was not written by `scrapy-dripper corpus extract`: it has no {NOTE}") from None
    done = sum(1 for _ in (folder / "logs" / "completions").glob("*"))
    if done < tasks:
        raise UsageError(
            f"{done} of {tasks} tasks of {folder} are done: finish `scrapy-dripper corpus extract` for it first"
        )
    return note


def run(arguments: argparse.Namespace, stages: Sequence[Stage], logs: Path) -> bool:
    """Run the tasks that are not complete, one stage after the other, or submit them to Slurm.

    Return True if all tasks are complete, and otherwise False, after a message. Raise :exc:`UsageError` if there is no
    such cluster.
    """
    if arguments.sbatch and arguments.executor != "slurm":
        raise UsageError("--sbatch is for --executor slurm")
    if arguments.executor == "slurm":
        return _submit(arguments, stages, logs)
    if arguments.executor == "ray":
        _start_ray()
    for name, tasks, steps in stages:
        executor = _executor(arguments, steps, tasks, logs / name)
        try:
            executor.run()
        except Exception:  # of any step; datatrove has logged it
            logging.getLogger(__name__).debug("a task has failed", exc_info=True)
        if left := executor.get_incomplete_ranks():
            say(f"{len(left)} of {tasks} tasks are not done; their logs are in {logs / name}: repeat the command")
            return False
    return True


def _executor(arguments: argparse.Namespace, steps: list[Any], tasks: int, logs: Path) -> Any:
    workers = min(tasks, arguments.workers or os.cpu_count() or 1)
    if arguments.executor == "local":
        from datatrove.executor.local import LocalPipelineExecutor

        return LocalPipelineExecutor(steps, tasks, workers, str(logs))
    from datatrove.executor.ray import RayPipelineExecutor

    workers = min(tasks, arguments.workers or tasks)
    return RayPipelineExecutor(steps, tasks, workers, logging_dir=str(logs), **_resources(arguments))


def _start_ray() -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # do not let Ray report how it is used
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"--executor ray needs Ray ({error}): install it with pip install ray") from None
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray has no base class for its errors
        raise UsageError(f"cannot start Ray, or connect to RAY_ADDRESS: {error}") from None


def _submit(arguments: argparse.Namespace, stages: Sequence[Stage], logs: Path) -> bool:
    from datatrove.executor.slurm import SlurmPipelineExecutor

    options = dict(arguments.sbatch)
    if not options.keys() >= {"partition", "time"}:
        raise UsageError("--executor slurm needs --sbatch partition=NAME and --sbatch time=H:MM:SS")
    executor = None
    for name, tasks, steps in stages:
        executor = SlurmPipelineExecutor(
            steps,
            tasks,
            options.pop("time"),
            options.pop("partition"),
            qos=options.pop("qos", None),
            workers=arguments.workers or -1,
            job_name=f"scrapy-dripper {name}".strip().replace(" ", "-"),
            sbatch_args=options,
            env_command=f"export PATH={shlex.quote(os.path.dirname(sys.executable))}:$PATH",
            depends=executor,
            logging_dir=str(logs / name),
            **_resources(arguments),
        )
        options = dict(arguments.sbatch)
    assert executor is not None
    if not executor.get_incomplete_ranks():
        return True
    if shutil.which("sbatch") is None:
        raise UsageError("--executor slurm needs sbatch: run the command on a machine where jobs are submitted")
    try:
        executor.run()
    except subprocess.CalledProcessError as error:
        raise UsageError(f"sbatch refused the job (exit code {error.returncode}): correct --sbatch") from None
    say(f"submitted job {executor.job_id} of Slurm; when it has ended, repeat the command to see what is done")
    return False


def _resources(arguments: argparse.Namespace) -> dict[str, int]:
    """Return what a task needs, in datatrove's names."""
    cores = max(1, getattr(arguments, "processes", 0))
    return {"cpus_per_task": cores, "mem_per_cpu_gb": arguments.memory, "gpus_per_task": arguments.gpus}


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE (got {text!r})")
    return name.lstrip("-"), value


def totals(logs: Path) -> dict[str, Counter[str]]:
    """Return the stats of each step of a pipeline, summed over its complete tasks, in the order of the steps."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for file in sorted((logs / "stats").glob("*.json")):
        for step in json.loads(file.read_text(encoding="utf-8")):
            name = step["name"].rpartition(": ")[2].encode("ascii", "ignore").decode().strip()  # without emoji
            for stat, value in step["stats"].items():
                found[name][stat] += int(value["total"] if isinstance(value, dict) else value)
    return found


class Counts(NamedTuple):
    """The numbers of documents in and out of a step, and of those that it dropped, by reason."""

    before: int
    after: int
    dropped: dict[str, int]


def filters(logs: Path) -> dict[str, Counts]:
    """Return what each filter of a cleaning did, in their order."""
    found = {}
    for stage in ("filters", "write"):
        for name, stats in totals(logs / stage).items():
            if "dropped" in stats or "forwarded" in stats:
                prefix = "dropped_"
                dropped = {key.removeprefix(prefix): stats[key] for key in sorted(stats) if key.startswith(prefix)}
                found[name] = Counts(stats["total"], stats["forwarded"], dropped)
    return found
