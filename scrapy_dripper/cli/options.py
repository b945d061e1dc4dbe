"""The options of :class:`~scrapy_dripper.config.Config` as flags of a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, fields
from typing import Any

from scrapy_dripper.checks import came
from scrapy_dripper.config import OPTION_NAMES, Config
from scrapy_dripper.rules import RuleError

_OF_A_CRAWL = ("model", "batch_size", "sites", "methods")
_OF_ITEMS = ("items", "fill_by_name", "retry_shells")
OPTIONS = tuple(
    option.name
    for option in fields(Config)
    if (option.metadata["per_request"] or option.name in _OF_A_CRAWL)
    and not (option.name in _OF_ITEMS or "output" in option.metadata)
)
"""The options of :class:`~scrapy_dripper.config.Config` that have flags: those of a page, and some of a crawl."""


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    summary: str,
    examples: str,
) -> argparse.ArgumentParser:
    """Add a command that calls ``run``, and return its parser."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def add_options(parser: argparse.ArgumentParser, names: Sequence[str] = OPTIONS) -> None:
    """Add the flags of options of :class:`~scrapy_dripper.config.Config`, each with its own check and documentation."""
    group = parser.add_argument_group("options, as the settings DRIPPER_*")
    for name, (option, of) in OPTION_NAMES.items():
        if (of or option.name) in names:
            _add_option(group, option, name, f"{of}.{option.name}" if of else name)


def configured(arguments: argparse.Namespace) -> Config:
    """Return the configuration from the flags of :func:`add_options`."""
    values: dict[str, Any] = {}
    for dest, value in vars(arguments).items():
        name, _, key = dest.partition(".")
        if key:
            values.setdefault(name, {})[key] = value
        elif name in OPTIONS and name in OPTION_NAMES:
            values[name] = value
    return Config(**values)


def _add_option(group: argparse._ArgumentGroup, option: Field[Any], name: str, dest: str) -> None:
    """Add the flag of one option, with its own check and documentation."""
    check = option.metadata["check"]
    expected = ""

    def checked(value: str) -> Any:
        try:
            return check(value)
        except RuleError as error:  # its message says which rule is wrong
            raise argparse.ArgumentTypeError(f"expected {error}") from None
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"expected {error} {came(value, error)}") from None

    try:
        check(object())
    except ValueError as error:
        expected = str(error)
    doc = option.metadata["doc"]
    if "'" not in doc and expected.startswith("one of"):
        doc = f"{doc} {expected.capitalize()}."
    flag = "--" + name.replace("_", "-")
    if option.default is False:
        group.add_argument(flag, dest=dest, action="store_true", default=argparse.SUPPRESS, help=doc.replace("%", "%%"))
        return
    if option.default not in (None, MISSING):
        doc = f"{doc} Default: {option.default}."
    group.add_argument(
        flag,
        dest=dest,
        type=checked,
        metavar="N" if isinstance(option.default, int) else option.name.upper(),
        default=argparse.SUPPRESS,
        help=doc.replace("%", "%%"),
    )


def count(value: str) -> int:
    """Return a positive whole number (a ``type`` for argparse)."""
    if value.isdecimal() and int(value) > 0:
        return int(value)
    raise argparse.ArgumentTypeError(f"expected a whole number of at least 1 (got {value!r})")


def add_url(parser: argparse._ActionsContainer) -> None:
    """Add the flag for the URL of pages that come without one."""
    parser.add_argument(
        "--url",
        type=a_url,
        help="URL of the page in a single file or on standard input; for a folder, the URL under which its pages are "
        "(default: the one that a page declares)",
    )


def a_url(value: str) -> str:
    """Return a URL that has a scheme. Without one, it makes no links absolute."""
    if "://" in value:
        return value
    raise argparse.ArgumentTypeError(f"expected a URL, such as https://example.com/story (got {value!r})")


def seconds(value: str) -> float:
    """Return a positive number of seconds (a ``type`` for argparse)."""
    with suppress(ValueError):
        if 0 < (number := float(value)) <= 86_400:
            return number
    raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, a day at most (got {value!r})")
