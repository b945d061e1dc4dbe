"""Messages on the terminal, the outcomes of pages, and the error of a command that cannot start."""

from __future__ import annotations

import io
import os
import sys
import urllib.error
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from scrapy_dripper.characters import on_one_line

PROGRAM = "scrapy-dripper"
REPOSITORY = "https://github.com/scrapy-dripper/scrapy-dripper"
OUT_OF_MEMORY = "out of memory: raise the limit of this process (`ulimit -v`), or free memory"


class UsageError(Exception):
    """The command cannot start. The message is one sentence that says what to do."""


@contextmanager
def extra(command: str) -> Iterator[None]:
    """Raise :exc:`UsageError` if a package cannot be imported, with the command that installs it."""
    try:
        yield
    except ImportError as error:
        raise UsageError(f"this command needs more packages ({error}): run {command}") from None


def say(message: str) -> None:
    """Print a message on standard error, above a progress bar if there is one."""
    tqdm.write(f"{PROGRAM}: {on_one_line(message)}", file=sys.stderr)


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


def print_what_can_be() -> None:
    """Let standard output show "?" for characters that its encoding lacks, which pages and file names may have.

    On Windows, a pipe has the code page of the system. Elsewhere, it has the encoding of the locale.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def drop_output() -> None:
    """Redirect standard output to the null device, because its reader has closed it.

    The interpreter flushes standard output again when it exits, which must not fail either.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_in_browser(path: Path) -> None:
    """Open a file in the browser, or say that there is none."""
    if not webbrowser.open(path.resolve().as_uri()):
        say(f"no browser could be started; open {path} in one")


def why(error: BaseException | None) -> str:
    """Return a readable reason for an error: an HTTP status, the system's message, or the exception's."""
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return why(error.reason) if isinstance(error.reason, Exception) else str(error.reason)
    strerror = error.strerror if isinstance(error, OSError) else None
    return strerror or str(error) or type(error).__name__
