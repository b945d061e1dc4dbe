"""The command line: ``scrapy-dripper COMMAND ...``.

Exit codes: 0 every input gave a result, 1 at least one gave none, 2 wrong usage (options, model, output), 130 Ctrl-C,
141 the reader of the output has closed it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version

from scrapy_dripper.cli.console import PROGRAM, UsageError, drop_output, print_what_can_be, say, why

COMPLETING = "_ARGCOMPLETE"
"""Environment variable that is set when a shell asks for completions."""
COMMANDS = {
    "extract": "scrapy_dripper.cli.extract",
    "inspect": "scrapy_dripper.cli.inspect",
    "evaluate": "scrapy_dripper.cli.evaluate",
    "annotate": "scrapy_dripper.cli.annotate",
    "learn": "scrapy_dripper.cli.learn",
    "export": "scrapy_dripper.cli.export",
    "corpus": "scrapy_dripper.cli.corpus",
    "rules": "scrapy_dripper.cli.rules",
    "doctor": "scrapy_dripper.cli.doctor",
}
"""The module of each command: its ``add_parser`` takes the action of ``add_subparsers`` and sets ``run``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Raise SystemExit for wrong usage and for ``--help``."""
    try:
        return _main(argv)
    except MemoryError:
        memory = "the process may not use enough memory"
    except ImportError as error:  # of a compiled module that cannot be mapped
        if not re.search("memory|map segment", str(error)):
            raise
        memory = str(error)
    say(f"out of memory ({memory}): raise its limit (`ulimit -v`), or free memory")
    return 2


def _main(argv: Sequence[str] | None) -> int:
    # Not above, because numpy may already need more memory than there is.
    from scrapy_dripper.config import ConfigError
    from scrapy_dripper.engines.base import ModelError

    parser = _parser(sys.argv[1:] if argv is None else argv)
    if COMPLETING in os.environ:
        with suppress(ImportError):
            import argcomplete

            argcomplete.autocomplete(parser)
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
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        drop_output()
        return 141
    except OSError as error:  # Errors of reading an input are handled where it is read.
        say(f"cannot write {error.filename or 'the output'}: {why(error)}")
        return 2


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Main content of web pages, as clean HTML and Markdown.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {version(PROGRAM)}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    named = [name for name in arguments[:1] if name in COMMANDS]  # only the module of that command is imported
    for name in named or COMMANDS:
        import_module(COMMANDS[name]).add_parser(commands)
    return parser
