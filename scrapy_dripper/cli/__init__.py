"""The command line, ``scrapy-dripper COMMAND ...``: a module for each command, with all that only it does.

Exit codes: 0 every input gave a result, 1 at least one gave none, 2 wrong usage (options, model, output), 130 Ctrl-C,
141 the reader of the output has closed it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points, version
from typing import Any, NoReturn

from scrapy_dripper.characters import on_one_line
from scrapy_dripper.checks import did_you_mean
from scrapy_dripper.cli.console import (
    OUT_OF_MEMORY,
    PROGRAM,
    REPOSITORY,
    UsageError,
    drop_output,
    print_what_can_be,
    say,
    why,
)
from scrapy_dripper.config import ConfigError, ModelError

__all__ = ["main"]

COMMANDS = {
    "extract": "scrapy_dripper.cli.extract",
    "inspect": "scrapy_dripper.cli.inspect",
    "learn": "scrapy_dripper.learning.command",
    "corpus extract": "scrapy_dripper.cli.corpus",
    "rules": "scrapy_dripper.cli.rules",
    "doctor": "scrapy_dripper.cli.doctor",
}
"""The module of each command: its ``add_parser`` takes the action of ``add_subparsers`` and sets ``run``."""
GROUPS = {"corpus": "work on whole archives: extract them, and more with the laboratory"}
"""The groups of :data:`COMMANDS`, and what their commands are for."""
ENTRY_POINTS = "scrapy_dripper.commands"
"""The group of the entry points of commands that other distributions add. Each is a function as ``add_parser``. A dot
in its name stands for the space behind the name of a group.
"""
LABORATORY = (
    *("annotate", "evaluate", "export", "fine-tune"),
    *("corpus clean", "corpus sample", "corpus templates", "corpus tokens"),
)
"""The commands of the laboratory, which is a distribution of its own."""
AddParser = Callable[[Any], object]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Raise SystemExit for wrong usage and for ``--help``."""
    print_what_can_be()
    try:
        arguments = _parser(sys.argv[1:] if argv is None else argv).parse_args(argv)
        code: int = arguments.run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except (UsageError, ConfigError, ModelError) as error:
        say(str(error))
        return 2
    except (MemoryError, ImportError) as error:
        if isinstance(error, ImportError) and "failed to map segment" not in str(error):  # as the dynamic linker says
            raise
        print(f"{PROGRAM}: {OUT_OF_MEMORY}", file=sys.stderr)  # say() may have to load more
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        drop_output()
        return 141
    except OSError as error:  # Errors of reading an input are handled where it is read.
        say(f"cannot write {error.filename or 'the output'}: {why(error)}")
        return 2


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, because the usage of a command has dozens of options. A group of commands
    without one of them shows its help.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the arguments. End the program if there are others, here, where the right ones are known."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            meant = did_you_mean(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        if "run" not in found:
            self.print_help(sys.stderr)
            self.exit(2)
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """End the program with the exit code of wrong usage."""
        wrong, _, choices = message.partition("invalid choice: '")[2].rpartition("' (choose from ")
        if choices:
            is_page = self.prog == PROGRAM and re.search("[./]", wrong)
            meant = f"; did you mean {PROGRAM} extract {wrong}?" if is_page else ""
            message += meant or did_you_mean(wrong, re.findall(r"[\w-]+", choices))
        self.exit(2, on_one_line(f"{self.prog}: {message} (--help shows all options)") + "\n")


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM, description="Main content of web pages, as clean HTML and Markdown.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {version(PROGRAM)}")
    groups = {"": parser.add_subparsers(title="commands", metavar="COMMAND")}
    asked = list(dict.fromkeys(" ".join(arguments[:n]) for n in (1, 2)))  # a command, and one of a group
    for name, load in _commands(asked):
        group = name.rpartition(" ")[0]
        try:
            if group not in groups:
                one = groups[""].add_parser(group, help=GROUPS[group], allow_abbrev=False)
                groups[group] = one.add_subparsers(title="commands", metavar="COMMAND")
            load()(groups[group])
        except Exception as error:  # whatever the module of another distribution raises
            if name in COMMANDS:
                raise
            broken = f"the command {name} of another distribution does not load ({type(error).__name__}: {error})"
            if name in asked:
                raise UsageError(broken) from None
            say(broken)
    return parser


def _commands(asked: Sequence[str]) -> Iterator[tuple[str, Callable[[], AddParser]]]:
    """Yield the command that is asked for, or all commands if there is none of these names, each with what loads it.

    Entry points are looked up unless the command is one of :data:`COMMANDS`. Raise :exc:`UsageError` if it is of the
    laboratory, which is not installed.
    """
    found: dict[str, Callable[[], AddParser]] = {name: partial(_own, name) for name in COMMANDS}
    if not found.keys() & set(asked):
        points = {point.name.replace(".", " "): point.load for point in entry_points(group=ENTRY_POINTS)}
        found |= {name: points[name] for name in sorted(points.keys() - found.keys())}
    named = [name for name in asked if name in found]
    if missing := [name for name in asked if name in LABORATORY and not named]:
        raise UsageError(
            f"{missing[0]} is a command of the laboratory, which is not installed: run pip install -e . -e lab in a "
            f"clone of {REPOSITORY}"
        )
    yield from ((name, found[name]) for name in named or found)


def _own(name: str) -> AddParser:
    add_parser: AddParser = import_module(COMMANDS[name]).add_parser
    return add_parser
