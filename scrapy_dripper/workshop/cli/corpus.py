"""``scrapy-dripper corpus``; ``corpus extract WARC... -o DIR``: archives in, Parquet out."""

from __future__ import annotations

import argparse
import glob
import os
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from scrapy_dripper.cli.console import UsageError, say
from scrapy_dripper.cli.inputs import WARC
from scrapy_dripper.cli.options import OPTIONS, add_options, configured, count
from scrapy_dripper.config import Config
from scrapy_dripper.replace import replace_file
from scrapy_dripper.workshop.cli import corpus_clean, corpus_run, corpus_sample, corpus_tokens

OUTPUTS = ("markdown", "text", "main_html")

EXAMPLES = """\
examples:
  scrapy-dripper corpus extract crawl.warc.gz -o pages/
  scrapy-dripper corpus extract 'shards/*.warc.gz' -o pages/ --workers 8 --main-html

Every WARC file is a task with its own Parquet file, DIR/00000.parquet and so on; with --tasks, a task has several. A
file appears only when it is complete. After an interruption, repeat the command: finished tasks are not repeated.
DIR/logs has the log of each task. datatrove runs the tasks. It waits for ever for a process of its own that is killed,
for example because memory ran out: press Ctrl-C, and repeat the command with fewer --workers.

exit codes: 0 every task was done, 1 a task failed or a record could not be read, 2 wrong usage or an output that cannot
be written, 130 Ctrl-C
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    corpus = commands.add_parser("corpus", help="extract whole archives, and clean the result", allow_abbrev=False)
    parts = corpus.add_subparsers(title="commands", metavar="COMMAND", required=True)
    extract = parts.add_parser(
        "extract",
        help="extract the pages of WARC files into Parquet",
        description="Extract the main content of all HTML pages of WARC files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    extract.set_defaults(run=run)
    extract.add_argument("inputs", nargs="+", metavar="WARC", help="a WARC file, a folder of them, or a glob")
    extract.add_argument("-o", "--output", metavar="DIR", required=True, help="the folder of the Parquet files")
    extract.add_argument(
        "--tasks",
        type=count,
        metavar="N",
        help="number of tasks; default: one for each WARC file, which is also the maximum",
    )
    extract.add_argument("--workers", type=count, metavar="N", help="tasks at a time; default: one for each core")
    extract.add_argument(
        "--processes",
        type=count,
        metavar="N",
        default=0,
        help="worker processes for each task, so that a page that hangs or crashes affects no other; default: none, "
        "but one for large pages",
    )
    extract.add_argument("--text", choices=OUTPUTS, default="markdown", help="the content of the column text")
    extract.add_argument("--main-html", action="store_true", help="add the Main-HTML, as a column")
    extract.add_argument("--content", action="store_true", help="add the content list, as JSON")
    extract.add_argument("--metadata", action="store_true", help="add what the page says about itself, as JSON")
    extract.add_argument(
        "--on-error",
        choices=("keep", "drop"),
        default="keep",
        help="how to treat a page without content: as a row without text (keep, the default), or without a row",
    )
    # Chunks and front matter are for items. A row of the table has its metadata in columns.
    add_options(extract, [name for name in OPTIONS if name != "chunks"])
    corpus_clean.add_parser(parts)
    corpus_sample.add_parser(parts)
    corpus_tokens.add_parser(parts)


def run(arguments: argparse.Namespace) -> int:
    """Extract all archives and return the exit code."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # datatrove imports the client of the hub, which is not used here.
    try:
        from scrapy_dripper.corpus.steps import DripperExtractor, FastWarcReader, RowWriter, schema
    except ImportError as error:
        raise corpus_run.missing(error) from None
    from scrapy_dripper.corpus.records import UNREADABLE

    config = _config(arguments)
    files = _files(arguments.inputs)
    tasks = min(arguments.tasks or len(files), len(files))
    columns = [name for name in ("main_html", "content") if getattr(arguments, name)]
    columns += ["page"] if arguments.metadata else []
    folder = Path(os.path.abspath(arguments.output))  # the tasks of a cluster may have another current folder
    folder.mkdir(parents=True, exist_ok=True)
    root = Path(os.path.commonpath([file.parent for file in files]))
    names = [file.relative_to(root).as_posix() for file in files]
    options = {"text": arguments.text, "on_error": arguments.on_error, "columns": columns, "config": _values(config)}
    corpus_run.claim(folder, {"root": str(root), "files": names, "tasks": tasks, "options": options})
    paths = folder / "logs" / "inputs.txt"
    paths.parent.mkdir(exist_ok=True)
    replace_file(paths, "".join(f"{name}\n" for name in names))
    steps = [
        FastWarcReader(str(root), str(paths), max_bytes=10 * config.limits.bytes),
        DripperExtractor(
            config,
            output=arguments.text,
            content=arguments.content,
            on_error=arguments.on_error,
            processes=arguments.processes,
        ),
        RowWriter(folder, schema(columns)),
    ]
    for marker in (folder / "logs" / "completions").glob("*"):
        if not (folder / f"{marker.name}.parquet").exists():  # somebody has deleted it
            marker.unlink()
    code = 0 if corpus_run.run(steps, tasks, arguments.workers, folder / "logs") else 1
    totals = corpus_run.totals(folder / "logs")
    read, extracted = totals.get("FastWARC", Counter()), totals.get("Dripper", Counter())
    for line in _summary(read, extracted):
        say(line)
    lost = Counter({reason: read[f"skipped/{reason}"] for reason in UNREADABLE if read[f"skipped/{reason}"]})
    if lost:
        say("records that cannot be read: " + corpus_run.without_prefix(lost, ""))
        code = 1
    return code


def _config(arguments: argparse.Namespace) -> Config:
    config = configured(arguments)
    return replace(config, metadata_field="metadata") if arguments.metadata else config


def _values(config: Config) -> dict[str, Any]:
    return {name: value if _is_plain(value) else repr(value) for name, value in asdict(config).items()}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _files(inputs: list[str]) -> list[Path]:
    """Return the named archives, each once. Raise :exc:`UsageError` for a name without any."""
    found: dict[Path, None] = {}
    for name in inputs:
        here = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
        folders = [Path(one) for one in here if os.path.isdir(one)]
        files = [Path(one) for one in here if not os.path.isdir(one)]
        for one in folders:
            files += sorted(file for file in one.rglob("*") if file.name.lower().endswith(WARC) and file.is_file())
        if not files:
            raise UsageError(f"{name}: no WARC file there ({', '.join(WARC)})")
        found |= dict.fromkeys(Path(os.path.realpath(file)) for file in files)
    for name in map(str, found):
        if len(name.splitlines()) > 1 or name != name.encode("utf-8", "replace").decode():
            raise UsageError(f"{name!r}: a name with a line break or not in UTF-8 cannot be an input; rename the file")
    return list(found)


def _summary(read: Counter[str], extracted: Counter[str]) -> list[str]:
    """Return lines that account for all records and pages, from the counts of the reader and of the step."""
    lines = [
        f"{extracted['pages']:,} pages, {extracted['extracted']:,} with content, "
        f"{extracted['empty']:,} without (kept), {extracted['dropped']:,} without (dropped)"
    ]
    if reasons := corpus_run.without_prefix(extracted, "reason/"):
        lines.append(f"not decided by the model: {reasons}")
    if skipped := corpus_run.without_prefix(read, "skipped/"):
        lines.append(f"records that are not pages: {skipped}")
    return lines
