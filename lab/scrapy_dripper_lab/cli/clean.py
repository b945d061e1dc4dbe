"""``scrapy-dripper corpus clean``: drop duplicates, other languages, and texts of low quality, with datatrove."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scrapy_dripper.cli.console import UsageError, say
from scrapy_dripper.cli.corpus import NOTE, claim, corpus_steps, json_object, run_pipeline, totals, without_prefix
from scrapy_dripper.cli.options import add_command, count
from scrapy_dripper_lab.extras import extra

CLEAN = "clean"
"""Name of the folder for the cleaned documents, inside that of the extraction."""
CLEAN_EXAMPLES = """\
examples:
  scrapy-dripper corpus clean pages/
  scrapy-dripper corpus clean pages/ --language en --urls hosts.txt --words words.txt

The steps are datatrove's: exact duplicates, language, the quality and repetition rules of Gopher, lists, and near
duplicates (MinHash). The remaining documents are in DIR/clean/*.parquet. After an interruption, repeat the command.

Words are counted by spaCy (pip install spacy; some languages need more, which an error names). --language needs
fasttext-numpy2-wheel and fasteners, --urls needs pyahocorasick and fasteners. Two steps download a file at their first
use, and need nothing from the network afterwards: --language (fastText's model, 131 MB) and --safety (the words of C4).

exit codes: 0 all done, 1 a task failed, 2 wrong usage or an output that cannot be written, 130 Ctrl-C
"""


def add_clean(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    clean = add_command(
        commands, "clean", _clean, "drop duplicates, other languages, and texts of low quality", CLEAN_EXAMPLES
    )
    clean.add_argument("folder", metavar="DIR", help="the folder that `corpus extract` wrote")
    clean.add_argument(
        "--language",
        action="append",
        default=[],
        metavar="CODE",
        help="keep this language (en, de, zh, ...); can be given more than once; default: keep all",
    )
    clean.add_argument("--urls", metavar="FILE", help="file of hosts and URLs, one per line; their pages are dropped")
    clean.add_argument(
        "--words", metavar="FILE", help="file of regular expressions, one per line; texts that match one are dropped"
    )
    clean.add_argument("--safety", action="store_true", help="also drop pages by datatrove's lists of URLs and words")
    clean.add_argument("--workers", type=count, metavar="N", help="tasks at a time; default: one for each core")


def _clean(arguments: argparse.Namespace) -> int:
    """Clean the corpus and return the exit code."""
    corpus_steps()
    with extra("clean"):
        from scrapy_dripper_lab.corpus import cleaning
    source = Path(os.path.abspath(arguments.folder))
    note, folder = extraction_note(source), source / CLEAN
    if note["options"]["text"] == "main_html":
        raise UsageError(f"{source} has Main-HTML as its text: extract with --text markdown or text for this")
    files = sorted(map(str, source.glob("*.parquet")))
    try:
        lists = {name: _lines(getattr(arguments, name)) for name in ("urls", "words")}
        rules = cleaning.CleaningRules(tuple(sorted(set(arguments.language))), **lists, safety=arguments.safety)
        pipelines = cleaning.stages(files, folder, note["options"]["columns"], rules)
    except (ImportError, OSError, ValueError, re.error) as error:
        raise UsageError(str(error)) from None
    prints = {name: hashlib.sha256("\n".join(lines).encode()).hexdigest() for name, lines in lists.items()}
    options = {"languages": rules.languages, "safety": rules.safety, **prints}
    claim(folder / NOTE, {"files": [os.path.basename(file) for file in files], "options": options})
    logs = folder / "logs"
    for name, tasks, steps in pipelines:
        rows = _rows(steps[0])
        if not run_pipeline(name, steps, tasks, arguments.workers, logs / name, rows):
            return 1
    shutil.rmtree(folder / "work", ignore_errors=True)
    for name, counts in [*totals(logs / "filters").items(), *totals(logs / "write").items()]:
        if "dropped" in counts or "forwarded" in counts:
            reasons = without_prefix(counts, "dropped_")
            say(f"{name}: {counts['total']:,} in, {counts['forwarded']:,} out" + (f" ({reasons})" if reasons else ""))
    return 0


def _rows(reader: Any) -> Callable[[int], int] | None:
    """Return a function for the number of rows that a task reads; None if it reads no tables."""
    from datatrove.pipeline.readers import ParquetReader
    from pyarrow.parquet import read_metadata

    if not isinstance(reader, ParquetReader):
        return None
    files = sorted(Path(reader.data_folder.path).glob("*.parquet"))
    return lambda rank: int(read_metadata(files[rank]).num_rows) if rank < len(files) else 0


def _lines(file: str | None) -> tuple[str, ...]:
    """Return the lines of a list that are neither empty nor comments."""
    lines = Path(file).read_text(encoding="utf-8-sig").splitlines() if file else []
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def extraction_note(folder: Path) -> dict[str, Any]:
    """Return the note of a finished extraction. Raise :exc:`UsageError` if the folder does not hold one."""
    try:
        note = json_object(folder / NOTE)
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
