"""The output folder of a corpus command, and the notes in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.replace import replace_file

NOTE = "run.json"
"""Name of the file with the inputs and options of a command."""


def missing(error: ImportError) -> UsageError:
    """Return the error for a package of the extra that is not installed."""
    return UsageError(
        f"this command needs more packages ({error}): install them with pip install 'scrapy-dripper[corpus]'"
    )


def claim(folder: Path, values: dict[str, Any]) -> None:
    """Write the inputs and options to a folder. Raise :exc:`UsageError` if it was begun with others."""
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


def extracted(folder: Path, *, texts: bool = True) -> tuple[dict[str, Any], list[str]]:
    """Return the note of a finished extraction, and its Parquet files.

    Raise :exc:`UsageError` if there is none, and with ``texts`` also if the documents are Main-HTML.
    """
    try:
        note: dict[str, Any] = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        tasks, options = note["tasks"], note["options"]
    except (OSError, ValueError, KeyError):
        raise UsageError(f"{folder} was not written by `scrapy-dripper corpus extract`: it has no {NOTE}") from None
    done = sum(1 for _ in (folder / "logs" / "completions").glob("*"))
    if done < tasks:
        raise UsageError(
            f"{done} of {tasks} tasks of {folder} are done: finish `scrapy-dripper corpus extract` for it first"
        )
    if texts and options["text"] == "main_html":
        raise UsageError(f"{folder} has Main-HTML as its text: extract with --text markdown or text for this")
    files = sorted(map(str, folder.glob("*.parquet")))
    if not files:
        raise UsageError(f"{folder} has no documents: none of its archives has a page")
    return note, files
