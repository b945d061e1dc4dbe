"""The extras of the laboratory, for what only some of its commands need."""

from __future__ import annotations

from contextlib import AbstractContextManager

from scrapy_dripper.cli import console
from scrapy_dripper.cli.console import REPOSITORY


def extra(name: str) -> AbstractContextManager[None]:
    """Raise :exc:`UsageError` if a package cannot be imported, with the extra of the laboratory that brings it."""
    return console.extra(how_to_install(name))


def how_to_install(name: str) -> str:
    """Return the command that installs an extra of the laboratory."""
    return f"pip install -e . -e 'lab[{name}]' in a clone of {REPOSITORY}"
