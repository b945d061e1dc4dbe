"""``scrapy-dripper inspect INPUT``: one HTML file with the decision about each block of a page, or with the pages of a
crawl."""

from __future__ import annotations

import argparse
import logging
import webbrowser
import zlib
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_dripper.cli.console import UsageError, say, why
from scrapy_dripper.cli.inputs import READ_FACTOR, Source, find_sources, is_url, read_source
from scrapy_dripper.cli.options import add_options, configured
from scrapy_dripper.extraction import Document
from scrapy_dripper.replace import replace_file

if TYPE_CHECKING:
    from scrapy_dripper.config import Config
    from scrapy_dripper.page import Page

OPTIONS = (
    *(
        "engine",
        "model",
        "fallback",
        "favor",
        "comments",
        "min_quality",
        "rules",
        "oversize",
        "max_blocks",
        "max_bytes",
    ),
    *("title", "absolute_urls", "markdown", "links", "complex_tables", "callouts", "front_matter", "content_types"),
)
EXTENSION = ".inspect.html"
ITEMS = (".jsonl", ".jl", ".jsonl.gz", ".jl.gz")
"""Extensions of files with items."""
NO_LINES = (".json", ".json.gz", ".csv")
"""Extensions of files that may have items, but not one item per line."""

EXAMPLES = """\
examples:
  scrapy-dripper inspect page.html --open                   writes page.inspect.html, and opens it in the browser
  scrapy-dripper inspect https://example.com/ -o look.html
  curl -s URL | scrapy-dripper inspect - --url URL
  scrapy-dripper inspect crawl.jsonl --open                 the pages of a crawl, or of extract -f jsonl, as a table

The file needs no network, and nothing from the page can run in it. Click a block to correct its label. Export saves a
file for 'scrapy-dripper annotate --read-answers'.

exit codes: 0 written, 1 the page could not be read, 2 wrong usage, 130 Ctrl-C
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "inspect",
        help="show what was decided about each block of a page, and let you correct it",
        description="Write one HTML file that shows a page, what was decided about each of its blocks, and why.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="a page: a file, gzipped or not, a URL, or - for standard input; or a file of items (.jsonl, .jl)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"the file to write (default: ID{EXTENSION} in this folder)"
    )
    parser.add_argument("--open", action="store_true", help="open the file in the browser")
    parser.add_argument("--url", help="URL of the page in a file or on standard input")
    add_options(parser, OPTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Write the file and return the exit code."""
    source = _source(arguments)
    output = arguments.output or Path(source.id + EXTENSION)
    if output.is_dir():
        raise UsageError(f"{output} is a folder: name a file in it")
    if source.path is not None and output.exists() and output.samefile(source.path):
        raise UsageError(f"{output} is the input and would be overwritten; choose another --output")
    if source.path is not None and source.name.lower().endswith(NO_LINES):
        raise UsageError(f"{source.name}: expected JSON Lines, as written by 'extract -f jsonl' and 'crawl -o x.jsonl'")
    config = configured(arguments)
    items = source.path if source.name.lower().endswith(ITEMS) else None
    try:
        text = _index(items) if items else ""
        document = Document(b"") if items else read_source(source, READ_FACTOR * config.max_bytes)
    except (OSError, ValueError, EOFError, HTTPException, zlib.error) as error:
        say(f"{source.name}: {why(error)}")
        return 1
    if not items:
        text = _page(source, replace(document, url=arguments.url) if arguments.url else document, config)
    output.parent.mkdir(parents=True, exist_ok=True)
    if arguments.output is None:  # the name is not the user's, so it must not lead elsewhere
        replace_file(output, text)
    else:
        output.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    print(output)
    if arguments.open and not webbrowser.open(output.resolve().as_uri()):
        say(f"no browser could be started; open {output} in one")
    return 0


def _source(arguments: argparse.Namespace) -> Source:
    """Return the one input. Raise UsageError if there is none, or more than one."""
    problems: list[str] = []
    sources = find_sources([arguments.input], lambda name, reason: problems.append(f"{name}: {reason}"))
    if problems:
        raise UsageError(problems[0])
    if len(sources) != 1:
        raise UsageError(f"{arguments.input} names {len(sources)} pages; inspect takes one")
    if arguments.url is not None and is_url(sources[0].name):
        raise UsageError("--url is for a file or standard input")
    return sources[0]


def _page(source: Source, document: Document, config: Config) -> str:
    """Return the inspector of a page."""
    from scrapy_dripper.extractor import Extractor  # Slow to import, and not needed for --help.
    from scrapy_dripper.fallback_names import check_fallback
    from scrapy_dripper.inspection.look import look
    from scrapy_dripper.inspection.render import page_file

    check_fallback(config)
    # Trafilatura reports on documents that this command reports on itself.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    extractor = Extractor(config)
    try:
        return page_file(look(document, extractor, lambda page: _task(document, source, page), source.name))
    finally:
        extractor.close()


def _index(path: Path) -> str:
    """Return the index of a file of items. Raise OSError, ValueError or EOFError if no item can be read."""
    from scrapy_dripper.inspection.render import index_file
    from scrapy_dripper.inspection.rows import Sample, read_rows
    from scrapy_dripper.inspection.summary import Summary

    summary, sample, wrong = Summary(), Sample(), 0
    for row in read_rows(path):
        if row is None:
            wrong += 1
        else:
            summary.add(row)
            sample.add(row)
    if not summary.pages:
        raise ValueError("no items in it: expected JSON Lines, one object per line")
    return index_file(path.name, sample, summary, [f"Lines that are not items: {wrong:,}."] if wrong else [])


def _task(document: Document, source: Source, page: Page) -> dict[str, Any] | str:
    """Return the annotation task of a page, or the reason why labels of these blocks cannot be exported."""
    from scrapy_dripper.page import PageError
    from scrapy_dripper.workshop.annotation.listing import MAX_CHARS
    from scrapy_dripper.workshop.annotation.pages import sheet
    from scrapy_dripper.workshop.annotation.prompt import prompt_hash
    from scrapy_dripper.workshop.annotation.store import task_of

    try:
        found = sheet(document, source.name, source.id)
    except PageError as error:
        return str(error)
    if found.page.blocks.text != page.blocks.text:
        return "annotation uses other blocks: these are of another profile, or only of the first part of the page"
    return task_of(found, prompt_hash(MAX_CHARS))
