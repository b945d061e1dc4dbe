"""The command line: ``scrapy-dripper COMMAND ...``.

Exit codes: 0 every input gave a result, 1 at least one gave none, 2 wrong usage (options, model, output), 130 Ctrl-C,
141 whoever read the output has gone.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import urllib.error
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from importlib import import_module
from importlib.metadata import version
from typing import Any

from tqdm import tqdm

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.engines.base import ModelError

PROGRAM = "scrapy-dripper"
COMMANDS = {
    "extract": "scrapy_dripper.extract_command",
    "evaluate": "scrapy_dripper.evaluation.command",
    "annotate": "scrapy_dripper.annotation.command",
    "export": "scrapy_dripper.export_command",
    "corpus": "scrapy_dripper.corpus.command",
}
"""The module of each command: its ``add_parser`` takes the action of ``add_subparsers`` and sets ``run``."""
OPTIONS = (
    *("engine", "model", "threads", "batch_size", "fallback", "favor", "comments", "min_quality", "oversize"),
    *("max_blocks", "max_bytes"),
    *("title", "markdown", "links", "complex_tables", "callouts", "content_types"),
)
"""The options of :class:`~scrapy_dripper.config.Config` that are flags."""


_command = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]").sub


class UsageError(Exception):
    """The command cannot start; the message is one sentence that says what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Raise SystemExit for wrong usage and for ``--help``."""
    arguments = _parser(sys.argv[1:] if argv is None else argv).parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except (UsageError, ConfigError, ModelError) as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The interpreter flushes standard output once more when it exits; that must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # Errors of reading are dealt with where an input is read.
        say(f"cannot write {error.filename or 'the output'}: {why(error)}")
        return 2


def say(message: str) -> None:
    """Print a message on standard error, above a progress bar if there is one."""
    tqdm.write(f"{PROGRAM}: {printable(message)}", file=sys.stderr)


def printable(text: str) -> str:
    """Return text without what a terminal would obey: addresses, names and reasons come from servers and archives."""
    return _command("\ufffd", text)


def add_options(parser: argparse.ArgumentParser, names: Sequence[str] = OPTIONS) -> None:
    """Add the flags of options of :class:`~scrapy_dripper.config.Config`, each with its own check and documentation."""
    group = parser.add_argument_group("options, as the settings DRIPPER_*")
    for option in fields(Config):
        if option.name in names:
            _add_option(group, option)


def configured(arguments: argparse.Namespace) -> Config:
    """Return the configuration that the flags of :func:`add_options` ask for."""
    return Config(**{name: getattr(arguments, name) for name in OPTIONS if hasattr(arguments, name)})


def why(error: Exception) -> str:
    """Return what went wrong, for people: an HTTP status, what the system says, or the message."""
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return why(error.reason) if isinstance(error.reason, Exception) else str(error.reason)
    strerror = error.strerror if isinstance(error, OSError) else None
    return strerror or str(error) or type(error).__name__


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Main content of web pages, as clean HTML and Markdown.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {version(PROGRAM)}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    named = [name for name in arguments[:1] if name in COMMANDS]  # Only that module is imported.
    for name in named or COMMANDS:
        import_module(COMMANDS[name]).add_parser(commands)
    return parser


def _add_option(group: argparse._ArgumentGroup, option: Field[Any]) -> None:
    """Add the flag of one option, with its own check and documentation."""
    check = option.metadata["check"]
    expected = ""

    def checked(value: str) -> Any:
        try:
            return check(value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"expected {error} (got {value!r})") from None

    try:
        check(object())
    except ValueError as error:
        expected = str(error)
    doc = option.metadata["doc"]
    if "'" not in doc and expected.startswith("one of"):
        doc = f"{doc} {expected.capitalize()}."
    if option.default not in (None, MISSING):
        doc = f"{doc} Default: {option.default}."
    group.add_argument(
        "--" + option.name.replace("_", "-"),
        dest=option.name,
        type=checked,
        metavar="N" if isinstance(option.default, int) else option.name.upper(),
        default=argparse.SUPPRESS,
        help=doc.replace("%", "%%"),
    )
