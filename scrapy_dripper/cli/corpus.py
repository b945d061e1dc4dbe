"""``scrapy-dripper corpus extract``: archives in, Parquet out, with datatrove."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn

from scrapy_dripper.cli.console import UsageError, extra, say
from scrapy_dripper.cli.inputs import WARC, files_in
from scrapy_dripper.cli.options import OPTIONS, add_command, add_options, configured, count
from scrapy_dripper.config import Config
from scrapy_dripper.paths import lock, matches, replace_file
from scrapy_dripper.rules import RuleError

NOTE = "run.json"
"""Name of the file with the inputs and options of a command."""


def json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. Raise OSError or ValueError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def claim(note: Path, values: dict[str, Any]) -> None:
    """Write the inputs and options of a command to a file in its folder, so that it can be resumed.

    Raise :exc:`UsageError` if the folder was begun with others.
    """
    values = json.loads(json.dumps(values))
    try:
        before = json_object(note)
    except FileNotFoundError:
        note.parent.mkdir(parents=True, exist_ok=True)
        replace_file(note, json.dumps(values, indent=1) + "\n")
        return
    except ValueError:
        raise UsageError(f"{note} is damaged: name another folder, or delete this file to begin again") from None
    if wrong := [name for name, value in values.items() if before.get(name) != value]:
        raise UsageError(
            f"{note.parent} was begun with other {' and '.join(wrong)} (see {note}); use those, or name another folder"
        )


def run_pipeline(
    name: str, steps: list[Any], tasks: int, workers: int | None, logs: Path, total: Callable[[int], int] | None = None
) -> bool:
    """Run the tasks of a pipeline that are not complete. Return False, after a message, if some failed. Raise
    :exc:`UsageError` if another command is running them.

    ``total`` returns the number of documents that a task reads, if that is known.
    """
    from scrapy_dripper.corpus.steps import LocalTasks, Progress

    if (running := lock(logs / "lock")) is None:
        raise UsageError(f"another command is writing {logs.parent}; wait for its end, or name another folder")
    progress = Progress(logs / "progress", name, say)
    executor = LocalTasks([steps[0], progress.step, *steps[1:]], tasks, workers or os.cpu_count() or 1, logs)
    left = executor.get_incomplete_ranks()
    try:
        with running, progress.shown(None if total is None else sum(map(total, left))):
            executor.run(left)
    except BrokenProcessPool:
        say("a process was killed, for example because memory ran out: try fewer --workers")
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


OUTPUTS = ("markdown", "text", "main_html")

EXTRACT_EXAMPLES = """\
examples:
  scrapy-dripper corpus extract crawl.warc.gz -o pages/
  scrapy-dripper corpus extract 'shards/*.warc.gz' -o pages/ --workers 8 --main-html

Every WARC file is a task with its own Parquet file, DIR/00000.parquet and so on; with --tasks, a task has several. A
file appears only when it is complete. After an interruption, repeat the command: finished tasks are not repeated.
DIR/logs has the log of each task.

exit codes: 0 every task was done, 1 a task failed or a record could not be read, 2 wrong usage or an output that cannot
be written, 130 Ctrl-C
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    extract = add_command(
        commands, "extract", _extract, "extract the pages of WARC files into Parquet", EXTRACT_EXAMPLES
    )
    add_inputs(extract, "the folder of the Parquet files")
    extract.add_argument(
        "--processes",
        type=count,
        metavar="N",
        default=0,
        help="worker processes for each task, so that a page that hangs or crashes affects no other; default: none, "
        "but one for large pages",
    )
    extract.add_argument("--templates", metavar="DIR", help="label pages by the rules that `corpus templates` wrote")
    extract.add_argument("--text", choices=OUTPUTS, default="markdown", help="the content of the column text")
    extract.add_argument("--main-html", action="store_true", help="add the Main-HTML, as a column")
    extract.add_argument("--content", action="store_true", help="add the content list, as JSON")
    extract.add_argument("--metadata", action="store_true", help="add what the page says about itself, as JSON")
    # Chunks and front matter are for items. A row of the table has its metadata in columns.
    add_options(extract, [name for name in OPTIONS if name != "chunks"])


def add_inputs(command: argparse.ArgumentParser, output: str) -> None:
    """Add the arguments of a command over archives."""
    command.add_argument("inputs", nargs="+", metavar="WARC", help="a WARC file, a folder of them, or a glob")
    command.add_argument("-o", "--output", metavar="DIR", required=True, help=output)
    command.add_argument(
        "--tasks",
        type=count,
        metavar="N",
        help="number of tasks; default: one for each WARC file, which is also the maximum",
    )
    command.add_argument("--workers", type=count, metavar="N", help="tasks at a time; default: one for each core")


def _extract(arguments: argparse.Namespace) -> int:
    """Extract all archives and return the exit code."""
    steps = corpus_steps()
    config = configured(arguments)
    if arguments.metadata:
        config = replace(config, metadata_field="metadata")
    columns = [name for name in ("main_html", "content") if getattr(arguments, name)]
    columns += ["page"] if arguments.metadata else []
    options = {
        "text": arguments.text,
        "columns": columns,
        "config": config_values(config),
    }
    options["templates"] = arguments.templates and _read_rules(Path(arguments.templates))
    run = ArchiveRun(arguments, options)
    for marker in (run.folder / "logs" / "completions").glob("*"):
        if not (run.folder / f"{marker.name}.parquet").exists():  # somebody has deleted it
            marker.unlink()
    is_done = run.pipeline(
        "extract",
        run.folder / "logs",
        steps.ListedArchives(run.root, run.listed, max_bytes=10 * config.limits.bytes),
        steps.DripperExtractor(
            config,
            output=arguments.text,
            content=arguments.content,
            processes=arguments.processes,
            templates=arguments.templates and os.path.abspath(arguments.templates),
        ),
        steps.RowWriter(run.folder, steps.schema(columns)),
    )
    counts = totals(run.folder / "logs")
    read, extracted = counts.get("FastWARC", Counter()), counts.get("Dripper", Counter())
    for line in _summary(read, extracted):
        say(line)
    return 1 if lost(read) or not is_done else 0


def corpus_steps() -> Any:
    """Return the module with the steps. Raise :exc:`UsageError` if a package is missing."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # datatrove imports the client of the hub, which is not used here.
    os.environ.setdefault("TQDM_DISABLE", "1")  # Its workers would show bars that count files.
    with extra("pip install 'scrapy-dripper[corpus]'"):
        import scrapy_dripper.corpus.steps as found  # not "from", which a package that is missing would not stop
    return found


class ArchiveRun:
    """A run of a command over archives: its inputs, and the folder that it writes to."""

    def __init__(self, arguments: argparse.Namespace, options: dict[str, Any]) -> None:
        """Raise :exc:`UsageError` for inputs that do not exist, and for a folder that was begun with others."""
        files = _files(arguments.inputs)
        self.tasks, self._workers = min(arguments.tasks or len(files), len(files)), arguments.workers
        self.folder = Path(os.path.abspath(arguments.output))  # tasks of a cluster may have another current folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.root = os.path.commonpath([file.parent for file in files])
        names = [file.relative_to(self.root).as_posix() for file in files]
        if not (self.folder / NOTE).exists() and any(self.folder.glob("*.parquet")):
            raise UsageError(f"{self.folder} has Parquet files of another program; name another folder")
        # datatrove marks tasks as complete by their numbers, which would belong to other files.
        claim(self.folder / NOTE, {"root": self.root, "files": names, "tasks": self.tasks, "options": options})
        self.listed = self.folder / "logs" / "inputs.jsonl"
        os.makedirs(self.listed.parent, exist_ok=True)
        replace_file(self.listed, "".join(f"{json.dumps(name)}\n" for name in names))

    def pipeline(self, name: str, logs: Path, *steps: Any) -> bool:
        """Run steps, and return False, after a message, if tasks failed."""
        return run_pipeline(name, list(steps), self.tasks, self._workers, logs)


def _read_rules(folder: Path) -> str:
    """Return a hash of the rules in a folder. Raise :exc:`UsageError` if there are none, or if one is wrong."""
    from scrapy_dripper.sites.templates import read_rules_file

    files = sorted(folder.glob("*.toml"))
    if not files:
        raise UsageError(f"{folder} has no rules: expected a folder that `scrapy-dripper corpus templates` wrote")
    digest = hashlib.sha256()
    for file in files:
        try:
            read_rules_file(file)
        except RuleError as error:
            raise UsageError(f"--templates: expected {error}") from None
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def lost(read: Counter[str]) -> bool:
    """Return True, after a message, if records could not be read."""
    from scrapy_dripper.corpus.records import UNREADABLE

    found = Counter({reason: read[f"skipped/{reason}"] for reason in UNREADABLE if read[f"skipped/{reason}"]})
    if found:
        say("records that cannot be read: " + without_prefix(found, ""))
    return bool(found)


def config_values(config: Config) -> dict[str, Any]:
    """Return the options of a configuration as JSON values, to compare them with those of an earlier run."""
    plain = (type(None), bool, int, float, str)
    return {name: value if isinstance(value, plain) else repr(value) for name, value in asdict(config).items()}


def _files(inputs: list[str]) -> list[Path]:
    """Return the named archives, each once. Raise :exc:`UsageError` for a name without any."""
    archives: dict[Path, None] = {}
    for name in inputs:
        here = matches(name)
        folders = [one for one in here if os.path.isdir(one)]
        files = [Path(one) for one in here if not os.path.isdir(one)]
        for one in folders:
            files += sorted(map(Path, files_in(one, _refuse, lambda file: file.lower().endswith(WARC))))
        if not files:
            raise UsageError(f"{name}: no WARC file there ({', '.join(WARC)})")
        archives |= dict.fromkeys(Path(os.path.realpath(file)) for file in files)
    for name in map(str, archives):
        if name != name.encode("utf-8", "replace").decode():
            raise UsageError(f"{name!r}: a name that is not in UTF-8 cannot be in a table; rename the file")
    return list(archives)


def _refuse(name: str, reason: str) -> NoReturn:
    raise UsageError(f"{name}: {reason}")


def _summary(read: Counter[str], extracted: Counter[str]) -> list[str]:
    """Return lines that account for all records and pages, from the counts of the reader and of the step."""
    lines = [f"{extracted['pages']:,} pages, {extracted['extracted']:,} with content, {extracted['empty']:,} without"]
    if reasons := without_prefix(extracted, "reason/"):
        lines.append(f"not decided by the model: {reasons}")
    if templates := without_prefix(extracted, "template/"):
        lines.append(f"templates: {templates}")
    if skipped := without_prefix(read, "skipped/"):
        lines.append(f"records that are not pages: {skipped}")
    return lines
