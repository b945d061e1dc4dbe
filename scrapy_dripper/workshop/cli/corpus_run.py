"""Run datatrove pipelines in a folder on this machine, and read what they have counted."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from scrapy_dripper.cli.console import UsageError, say
from scrapy_dripper.replace import replace_file

NOTE = "run.json"
"""Name of the file with the inputs and options of a command."""


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
        before = _object(note)
    except FileNotFoundError:
        if any(folder.glob("*.parquet")):
            raise UsageError(f"{folder} has Parquet files of another program; name another folder") from None
        replace_file(note, json.dumps(values, indent=1))
        return
    except ValueError:
        raise UsageError(f"{note} is damaged: name another folder, or delete this one to begin again") from None
    wrong = [name for name in values if before.get(name) != values[name]]
    if wrong:
        raise UsageError(
            f"{folder} was begun with other {' and '.join(wrong)} (see {note}); use those, or name another folder"
        )


def extracted(folder: Path) -> dict[str, Any]:
    """Return the note of a finished extraction. Raise :exc:`UsageError` if the folder does not hold one."""
    try:
        note = _object(folder / NOTE)
        tasks = int(note["tasks"])
        note["options"]["text"], note["options"]["columns"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(f"{folder} was not written by `scrapy-dripper corpus extract`: it has no {NOTE}") from None
    done = sum(1 for _ in (folder / "logs" / "completions").glob("*"))
    if done < tasks:
        raise UsageError(
            f"{done} of {tasks} tasks of {folder} are done: finish `scrapy-dripper corpus extract` for it first"
        )
    return note


def _object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. Raise OSError or ValueError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def run(steps: list[Any], tasks: int, workers: int | None, logs: Path) -> bool:
    """Run the tasks of a pipeline that are not complete. Return False, after a message, if some failed."""
    from datatrove.executor.local import LocalPipelineExecutor

    executor = LocalPipelineExecutor(steps, tasks, min(tasks, workers or os.cpu_count() or 1), str(logs))
    try:
        executor.run()
    except Exception:  # of any step; datatrove has logged it
        logging.getLogger(__name__).debug("a task has failed", exc_info=True)
    if left := executor.get_incomplete_ranks():
        say(f"{len(left)} of {tasks} tasks are not done; their logs are in {logs}: repeat the command")
    return not left


def totals(logs: Path) -> dict[str, Counter[str]]:
    """Return the stats of each step of a pipeline, summed over its complete tasks, in the order of the steps."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for file in sorted((logs / "stats").glob("*.json")):
        try:
            for step in json.loads(file.read_text(encoding="utf-8")):
                name = step["name"].rpartition(": ")[2].encode("ascii", "ignore").decode().strip()  # without emoji
                for stat, value in step["stats"].items():
                    found[name][stat] += int(value["total"] if isinstance(value, dict) else value)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):  # noqa: PERF203
            marker = logs / "completions" / file.stem
            raise UsageError(f"{file} is damaged: delete {marker}, and repeat the command") from None
    return found


def without_prefix(counts: Counter[str], prefix: str) -> str:
    """Return the counts whose names begin with a prefix, as a list in words."""
    named = {name.removeprefix(prefix): number for name, number in sorted(counts.items()) if name.startswith(prefix)}
    return ", ".join(f"{name} {number:,}" for name, number in named.items())
