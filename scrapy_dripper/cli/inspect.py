"""``scrapy-dripper inspect INPUT...``: an HTML file with the decision about each block of a page."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from scrapy_dripper.cli.console import Outcomes, UsageError, open_in_browser, why
from scrapy_dripper.cli.inputs import Source, file_name, find_sources, read_page, refuse_inputs
from scrapy_dripper.cli.options import OPTIONS, add_command, add_options, add_url, configured
from scrapy_dripper.config import check_methods
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.inspection import VIEW
from scrapy_dripper.inspection.look import look, page_file
from scrapy_dripper.paths import replace_file

EXAMPLES = """\
examples:
  scrapy-dripper inspect page.html --open                   writes page.inspect.html, and opens it in the browser
  scrapy-dripper inspect https://example.com/ -o look.html
  scrapy-dripper inspect pages/ -o looks/                   one file per page of a folder
  curl -s URL | scrapy-dripper inspect - --url URL

The file needs no network, and nothing from the page can run in it. Click a block to correct its label. Export saves a
file for 'scrapy-dripper annotate --read-answers'.

exit codes: 0 all were written, 1 an input could not be read, 2 wrong usage, 130 Ctrl-C
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "inspect",
        run,
        "write an HTML file that shows what was decided about each block of a page, and lets you correct it",
        EXAMPLES,
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="a page: a file, gzipped or not, a folder, a glob, a URL, or - for standard input",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE|DIR",
        help=f"the file to write, or the folder for ID{VIEW} of each input (default: this folder)",
    )
    parser.add_argument("--open", action="store_true", help="open the files in the browser")
    add_url(parser)
    add_options(parser, [name for name in OPTIONS if name not in ("batch_size", "sites", "chunks")])


def run(arguments: argparse.Namespace) -> int:
    """Write a file for each input and return the exit code."""
    outcomes = Outcomes()
    sources = find_sources(arguments.inputs, outcomes.fail, arguments.url)
    outputs = _outputs(arguments, sources)
    config = configured(arguments)
    check_methods(config)
    # Trafilatura reports on documents that this command reports on itself.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    with closing(Extractor(config)) as extractor:
        for source, output in zip(sources, outputs, strict=True):
            try:
                document = read_page(source, config)
            except (OSError, ValueError) as error:
                outcomes.fail(source.name, why(error))
                continue
            view = look(document, extractor, source.name, source.id)
            _write(output, page_file(view), named=arguments.output is not None)
            if arguments.open:
                open_in_browser(output)
    return 1 if outcomes.failed else 0


def _outputs(arguments: argparse.Namespace, sources: Sequence[Source]) -> list[Path]:
    """Return the file for each input. Raise UsageError if the options do not fit together."""
    target = arguments.output
    if target is None or os.path.isdir(target) or target.endswith(("/", os.sep)):
        outputs = [Path(target or "") / file_name(source.id, VIEW) for source in sources]
    elif len(sources) > 1:
        raise UsageError(f"{len(sources)} pages need a folder, as in -o {target}/")
    else:
        outputs = [Path(target) for _ in sources]
    if folder := next((output for output in outputs if output.is_dir()), None):
        raise UsageError(f"{folder} is a folder: name a file in it")
    refuse_inputs(outputs, sources)
    return outputs


def _write(output: Path, text: str, *, named: bool) -> None:
    """Write a file and print its name. ``named`` is False if the user has not named it, so that it must not lead
    elsewhere."""
    output.parent.mkdir(parents=True, exist_ok=True)
    if named:
        output.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    else:
        replace_file(output, text)
    print(output)
