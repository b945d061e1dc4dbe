"""What commands over many pages share: the outcomes of the pages, and the note by which a command resumes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from scrapy_dripper.cli.console import UsageError, say, why
from scrapy_dripper.cli.inputs import READ_FACTOR, Source, read_source
from scrapy_dripper.cli.options import add_command as add_command
from scrapy_dripper.config import Config
from scrapy_dripper.inspection.answers import Sheet, sheet
from scrapy_dripper.page import PageError
from scrapy_dripper.paths import replace_file


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


class Outcomes:
    """Counts the outcomes of pages, and names the pages that failed on standard error."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.counts: dict[str, int] = {}

    def count(self, what: str, n: int = 1) -> None:
        """Count n pages."""
        if n:
            self.counts[what] = self.counts.get(what, 0) + n

    def fail(self, name: str, reason: str) -> None:
        """Report a page that failed."""
        self.failed.append(name)
        say(f"{name}: {reason}")

    def summarise(self) -> None:
        """Print the counts of all outcomes, if there are any."""
        parts = [f"{n} {what}" for what, n in self.counts.items()]
        if self.failed:
            more = ", ..." if len(self.failed) > 10 else ""
            parts.append(f"{len(self.failed)} failed ({', '.join(self.failed[:10])}{more})")
        if parts:
            say(", ".join(parts))

    def sheets(self, sources: Sequence[Source], profile: str = "native") -> Iterator[Sheet]:
        """Yield the sheet of each source, each page once, cut by a profile. A page that cannot be read has failed."""
        seen: set[str] = set()
        for source in tqdm(sources, desc="pages", unit="page", disable=None):
            try:
                document = read_source(source, READ_FACTOR * Config().limits.bytes)
                document = replace(document, url=source.url or document.url)
                found = sheet(document, source.name, source.id, profile)
            except Exception as error:  # A bad page must not stop the others.
                reason = f"{error.reason}: {error}" if isinstance(error, PageError) else why(error)
                self.fail(source.name, reason)
                continue
            if found.sha256 in seen:
                self.count("the same page again")
            else:
                yield found
            seen.add(found.sha256)
