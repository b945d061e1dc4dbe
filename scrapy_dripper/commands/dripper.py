"""``scrapy dripper URL``: the main content of one page, downloaded with the settings of the project."""

from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any, ClassVar

from scrapy import Request, Spider
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.http import Response
from scrapy.utils.datatypes import SequenceExclude
from twisted.python.failure import Failure
from w3lib.url import is_url

from scrapy_dripper.characters import on_one_line
from scrapy_dripper.cli.console import drop_output, to_json
from scrapy_dripper.crawl.dripper import Dripper
from scrapy_dripper.extraction import Extraction

FORMATS = ("markdown", "html", "text", "json")
LOUD = ("scrapy.downloadermiddlewares.robotstxt", "scrapy.downloadermiddlewares.retry")
"""Loggers that report a failed download with a traceback, which the command reports in one line."""


class Command(ScrapyCommand):
    """The command. Its exit status is 0 if there was main content to print, 1 otherwise."""

    default_settings: ClassVar[dict[str, Any]] = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        """Return the arguments, for the help."""
        return "[options] <url>"

    def short_desc(self) -> str:
        """Return the description in ``scrapy -h``."""
        return "Print the main content of a page (scrapy-dripper)"

    def add_options(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        super().add_options(parser)
        parser.add_argument("-f", "--format", choices=FORMATS, default="markdown", help="default: markdown")

    def run(self, args: list[str], opts: Namespace) -> None:
        """Download the page and print its main content. Raise UsageError without exactly one URL."""
        if len(args) != 1 or not is_url(args[0]):
            raise UsageError
        assert self.crawler_process is not None
        self.exitcode = 1
        command = self

        class OnePage(Spider):
            name = "dripper"

            async def start(self) -> AsyncIterator[Any]:
                meta = {"handle_httpstatus_list": SequenceExclude(range(300, 400))}  # Redirects are followed.
                yield Request(args[0], self.one_page, errback=self.no_page, dont_filter=True, meta=meta)

            async def one_page(self, response: Response) -> None:
                command.show(response, await Dripper.from_crawler(self.crawler).extract(response), opts.format)

            def no_page(self, failure: Failure) -> None:
                command.complain(args[0], failure.getErrorMessage())

        for name in LOUD:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.crawler_process.crawl(OnePage)
        self.crawler_process.start()

    def show(self, response: Response, extraction: Extraction | None, form: str) -> None:
        """Print an extraction, or why there is none."""
        if response.status >= 400:
            self.complain(response.url, f"HTTP {response.status}")
        if extraction is None:
            self.complain(response.url, "not an HTML page, or extraction is switched off")
            return
        if form == "json":
            names = ("main_blocks", "confidence", "limit", "content_hash", "simhash")
            values = asdict(extraction) | {name: getattr(extraction, name) for name in names}
            del values["digest"], values["lesson"]  # bytes, for what is known of the site
            text = to_json(values)
        else:
            texts = {"markdown": extraction.markdown, "html": extraction.main_html, "text": extraction.text}
            text = texts[form] or ""
        try:
            print(text, flush=True)
        except BrokenPipeError:  # `scrapy dripper URL | head`
            drop_output()
        if extraction.fallback_reason is not None:
            self.complain(response.url, f"{extraction.source}, because of {extraction.fallback_reason}")
        if extraction.main_html and response.status < 400:
            self.exitcode = 0

    def complain(self, url: str, problem: str) -> None:
        """Print a problem on standard error."""
        print(on_one_line(f"{url}: {problem}"), file=sys.stderr)
