"""``scrapy-dripper corpus tokens INPUT...``: the lengths of raw and simplified HTML, Main-HTML and Markdown."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from scrapy_dripper.characters import printable
from scrapy_dripper.cli.console import UsageError, say, to_json
from scrapy_dripper.cli.options import add_options, configured
from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.output.tokens import counter
from scrapy_dripper.page import PageError, read
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.workshop.cli.corpus_inputs import PageInputs
from scrapy_dripper.workshop.corpus.cost import Tokens, lengths, savings, tokens_of

BATCH = 16
PROFILE = PROFILES["v1.0"]
"""The profile of the published weights."""
EXAMPLES = """\
examples:
  scrapy-dripper corpus tokens html/                                      in characters
  scrapy-dripper corpus tokens 'shards/*.warc.gz' --tokenizer qwen3/      in tokens of the model in that folder

The second table estimates the cost of a language model for each page, as the Dripper paper does in its table 1:
L d (N^2 + M N + M^2) + L d^2 (N + M) FLOPs for N input and M output tokens, L layers and a width of d.

exit codes: 0 measured, 1 an input or a part of it could not be read, 2 wrong usage, 130 Ctrl-C
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    tokens = commands.add_parser(
        "tokens",
        help="measure how much shorter simplified HTML, Main-HTML and Markdown are",
        description="Measure the lengths of pages as raw HTML, simplified HTML, Main-HTML and Markdown.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    tokens.set_defaults(run=run)
    tokens.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="a WARC or HTML file, a folder of them, or a glob; no URLs"
    )
    tokens.add_argument(
        "--tokenizer", metavar="FILE", help="a tokenizer.json, or a folder with one; default: count characters"
    )
    tokens.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    add_options(tokens, ("engine", "model", "limits"))


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, write the requested file, and return the exit code."""
    config = replace(configured(arguments), fallback="none")
    unit = "characters"
    length: Callable[[str], int] = len
    if arguments.tokenizer:
        unit = f"tokens of {Path(arguments.tokenizer).name}"
        try:
            length = counter(arguments.tokenizer)
        except ConfigError as error:
            raise UsageError(f"--tokenizer: {error}") from None
    inputs = PageInputs(arguments.inputs, config.limits.bytes)
    pages = list(_measured(inputs, config, length))
    if not pages:
        raise UsageError("none of the pages could be labelled")
    tables = lengths(pages, unit), savings(pages)
    print(printable("\n\n".join(table.text() for table in tables)))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        figures = {"unit": unit, "lengths": tables[0].records(), "savings": tables[1].records()}
        arguments.json.write_text(to_json(figures, 1) + "\n", encoding="utf-8", errors="replace")
    return 1 if inputs.failed else 0


def _measured(inputs: PageInputs, config: Config, length: Callable[[str], int]) -> Iterator[Tokens]:
    """Yield the lengths of each page that the engine labels. At the end, print how many pages it did not label."""
    left_out = 0
    with closing(Extractor(config)) as extractor:
        pages = iter(tqdm(inputs, desc="tokens", unit="page", disable=None))
        while batch := [page.document for page in islice(pages, BATCH)]:
            for document, extraction in zip(batch, extractor.extract(batch), strict=True):
                try:
                    page = read(document, config, PROFILE)
                except PageError:
                    left_out += 1
                    continue
                if extraction.is_empty:
                    left_out += 1
                    continue
                html = document.html
                text = html if isinstance(html, str) else decode_html(bytes(html), document.charset)
                yield tokens_of(text, page, extraction, length)
    if left_out:
        say(f"{left_out:,} pages without main content are left out")
