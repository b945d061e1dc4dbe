"""``scrapy-dripper corpus report DIR``: write one HTML page about an extraction and its cleaning."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from tqdm import tqdm

from scrapy_dripper.cli.console import UsageError, say, why
from scrapy_dripper.cli.corpus_clean import CLEAN, STATS
from scrapy_dripper.cli.corpus_folder import extracted, missing
from scrapy_dripper.cli.options import count
from scrapy_dripper.replace import replace_file

EXAMPLES = """\
examples:
  scrapy-dripper corpus report pages/
  scrapy-dripper corpus report pages/ -o report.html --trafilatura 1000

The page has plots of the documents in and out of each step, and of their lengths, languages, page types, quality and
sources. It is one file without scripts, and holds no texts or URLs of pages.

exit codes: 0 written, 2 wrong usage or an output that cannot be written, 130 Ctrl-C
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    report = commands.add_parser(
        "report",
        help="plot the results of an extraction and its cleaning",
        description="Write an HTML page about what `corpus extract` and `corpus clean` have written.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    report.set_defaults(run=run)
    report.add_argument("folder", metavar="DIR", help="the folder that `corpus extract` wrote")
    report.add_argument("-o", "--output", metavar="FILE", help="the page; default: DIR/report.html")
    report.add_argument(
        "--trafilatura",
        type=count,
        metavar="N",
        help="compare the lengths of a sample of N documents with Trafilatura; reads their archives again",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the report and return the exit code."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # datatrove imports the hub's client, which is not used here
    try:
        from scrapy_dripper.corpus import figures
    except ImportError as error:
        raise missing(error) from None
    from scrapy_dripper.cli.corpus_page import Corpus, page

    folder = Path(arguments.folder)
    note, files = extracted(folder, texts=False)
    try:
        steps = json.loads((folder / CLEAN / STATS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        steps = []
    kept = figures.texts(map(str, sorted((folder / CLEAN).glob("*.parquet")))) if steps else None
    corpus = Corpus(
        str(folder), len(files), figures.totals(folder / "logs" / "stats"), figures.texts(files), steps, kept
    )
    if arguments.trafilatura:
        markdown = note["options"]["text"] == "markdown"
        if note["options"]["text"] == "main_html":
            raise UsageError(f"{folder} has Main-HTML as its text: its lengths are not those of Trafilatura's texts")
        with tqdm(total=arguments.trafilatura, unit="page", file=sys.stderr, disable=not sys.stderr.isatty()) as bar:

            def compared() -> None:
                bar.update()

            try:
                corpus.ratios = figures.ratios(files, arguments.trafilatura, markdown, compared)
            except OSError as error:
                raise UsageError(
                    f"{error.filename}: {why(error)}; --trafilatura reads the archives again, from where they were"
                ) from None
    output = Path(arguments.output or folder / "report.html")
    if arguments.output:
        output.write_text(page(corpus), encoding="utf-8")
    else:
        replace_file(output, page(corpus))
    say(f"wrote {output}")
    return 0
