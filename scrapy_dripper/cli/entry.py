"""The command line: ``scrapy-dripper COMMAND ...``.

Exit codes: 0 every input gave a result, 1 at least one gave none, 2 wrong usage (options, model, output), 130 Ctrl-C,
141 the reader of the output has closed it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, NoReturn

from scrapy_dripper.characters import on_one_line
from scrapy_dripper.checks import did_you_mean
from scrapy_dripper.cli.console import OUT_OF_MEMORY, PROGRAM, UsageError, drop_output, print_what_can_be, say, why
from scrapy_dripper.config import ConfigError, ModelError

COMMANDS = {
    "extract": "scrapy_dripper.cli.extract",
    "inspect": "scrapy_dripper.workshop.cli.inspect",
    "evaluate": "scrapy_dripper.workshop.cli.evaluate",
    "annotate": "scrapy_dripper.workshop.cli.annotate",
    "learn": "scrapy_dripper.workshop.cli.learn",
    "train": "scrapy_dripper.workshop.training.qwen3",
    "export": "scrapy_dripper.workshop.cli.export",
    "corpus": "scrapy_dripper.workshop.cli.corpus",
    "rules": "scrapy_dripper.cli.rules",
    "doctor": "scrapy_dripper.cli.doctor",
}
"""The module of each command: its ``add_parser`` takes the action of ``add_subparsers`` and sets ``run``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Raise SystemExit for wrong usage and for ``--help``."""
    parser = _parser(sys.argv[1:] if argv is None else argv)
    print_what_can_be()
    arguments = parser.parse_args(argv)
    try:
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
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    named = [name for name in arguments[:1] if name in COMMANDS]  # only the module of that command is imported
    for name in named or COMMANDS:
        import_module(COMMANDS[name]).add_parser(commands)
    return parser
