"""``scrapy dripper URL``: the main content of one page, or of whole sites."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from scrapy import Request, Spider
from scrapy.commands import ScrapyCommand
from scrapy.crawler import Crawler, CrawlerProcessBase
from scrapy.exceptions import UsageError
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.datatypes import SequenceExclude
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from w3lib.url import safe_url_string

from scrapy_dripper.addon import Addon
from scrapy_dripper.characters import on_one_line, to_json
from scrapy_dripper.checks import short
from scrapy_dripper.cli.console import drop_output, open_in_browser, why
from scrapy_dripper.cli.options import count
from scrapy_dripper.commands.guard import Gate, Guard, check_browser, rendering, use_browser, wrong
from scrapy_dripper.commands.pages import OutputError, Pages
from scrapy_dripper.commands.site import MAX_PAGES, MOST_PAGES, Robots, SiteSpider
from scrapy_dripper.config import OUTPUT_FIELDS, Config, ConfigError, ModelError
from scrapy_dripper.crawl import Dripper
from scrapy_dripper.crawl.stats import is_shell
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.egress import Egress, checked_host

FORMATS = ("markdown", "html", "text", "json")
LOUD = tuple(f"scrapy.downloadermiddlewares.{name}" for name in ("robotstxt", "retry", "redirect"))
"""Loggers that report a failed download with a traceback, which the command reports in one line, or that the crawl
sends no Referer, which is meant."""
ADVICE = "scrapy_dripper.crawl.stats"
"""The logger of advice for a crawl, such as to look at one page with this command."""
OF_A_CRAWL: dict[str, Any] = {"FEEDS": {}, "JOBDIR": None, "DRIPPER_REPORT": None, "DRIPPER_WARC": None}
"""Settings that write what belongs to a whole crawl, such as the report that a user is looking at."""
NO_PAGE = "not an HTML page, or extraction is switched off"
Show = Callable[[Dripper, Response, "Extraction | None"], None]
"""Shows a page, or why it has no extraction."""
POLITE = {"ROBOTSTXT_OBEY": True, "ROBOTSTXT_PARSER": Robots, "DOWNLOAD_DELAY": 0.25}
"""Settings of ``--follow`` that a project does not make itself."""
MOST_TOGETHER = 100
"""Largest number of requests at a time to all sites of ``--follow``, unless the project allows more."""
HELP = """\
Download one page with the settings of the project, and print its main content; or write a site as a folder of Markdown.

examples:
  scrapy dripper https://example.com/story                           its main content, as Markdown
  scrapy dripper https://example.com/story -f json                   everything that is known about it
  scrapy dripper https://example.com/story --inspect --open          what was decided about each block, and why
  scrapy dripper https://example.com/story --spider news             with the settings of this spider
  scrapy dripper --follow https://example.com/ -o example/           the whole site, as a folder of Markdown
  scrapy dripper --follow --urls sites.txt -o pages.parquet          many sites, as one file

With --spider, the page has the settings of this spider of the project, and its part of Scrapy's cache.

With --inspect, the page and the inspector's view of it are written into a folder, the current one by default.

With --follow, the links and the sitemap of each site are followed, on the same host. robots.txt is obeyed, also its
delay, up to 60 seconds; otherwise, there are 4 requests a second to a host at most, or those that the project allows.
The folder gets one .md file per page, with front matter, and index.jsonl, which also has the URLs that gave no page,
with the reason. After any end, also that of `kill -9`, and at --max-pages, the same command goes on.

With --browser, pages that are empty until a script has run are downloaded again in a browser (scrapy-playwright).

exit codes: 0 there was something to print, 1 there was not, 2 wrong usage
"""


class Command(ScrapyCommand):
    """The command. Its exit status is 0 if there was main content to print, and 1 otherwise."""

    default_settings: ClassVar[dict[str, Any]] = {"LOG_LEVEL": "WARNING"}
    settings: Settings  # both are there before run()
    crawler_process: CrawlerProcessBase
    _egress: Egress
    _gate: Gate | None = None
    _meta: Mapping[str, Any] = MappingProxyType({})

    def syntax(self) -> str:
        """Return the arguments, for the help."""
        return "[options] <url> ..."

    def short_desc(self) -> str:
        """Return the description in ``scrapy -h``."""
        return "Print the main content of a page, or write a site as Markdown (scrapy-dripper)"

    def long_desc(self) -> str:
        """Return the text of the help."""
        return HELP

    def add_options(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        super().add_options(parser)
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("-f", "--format", choices=FORMATS, help="default: markdown")
        parser.add_argument("--spider", metavar="NAME", help="use the settings of this spider of the project")
        parser.add_argument(
            "-a",
            dest="spargs",
            action="append",
            default=[],
            type=_argument,
            metavar="NAME=VALUE",
            help="an argument of the spider",
        )
        parser.add_argument("--inspect", action="store_true", help="write the page, and the inspector's view of it")
        parser.add_argument("--open", action="store_true", help="open the view of --inspect in the browser")
        parser.add_argument("--follow", action="store_true", help="write the whole site of the page into a folder")
        parser.add_argument(
            "--urls", metavar="FILE", help="a file with more first URLs for --follow, one a line; - is standard input"
        )
        parser.add_argument(
            "-o",
            "--output",
            metavar="DIR|FILE",
            help="the folder for --follow and --inspect, or a file for all pages: NAME.jsonl or NAME.parquet",
        )
        parser.add_argument(
            "--chunks", action="store_true", help="add the chunks of each page to the index or the file"
        )
        parser.add_argument(
            "--max-pages",
            type=count,
            default=MOST_PAGES,
            metavar="N",
            help=f"follow no more pages of a host than this number; default: {MOST_PAGES:,}",
        )
        parser.add_argument(
            "--depth",
            type=_depth,
            metavar="N",
            help="follow links over at most this number of steps from the first page, and no sitemap",
        )
        for name, what in (("allow", "only follow URLs"), ("deny", "do not follow URLs")):
            parser.add_argument(
                f"--{name}",
                action="append",
                default=[],
                type=_regex,
                metavar="REGEX",
                help=f"{what} in which this is found; may be repeated",
            )
        parser.add_argument(
            "--browser", action="store_true", help="download pages that are empty until a script has run in a browser"
        )

    def run(self, args: list[str], opts: Namespace) -> None:
        """Download the page and print its main content. Raise UsageError for a wrong command line."""
        urls = [*args, *(_listed(opts.urls) if opts.urls else ())]
        if not urls:
            raise UsageError(print_help=not opts.urls)
        if bad := next((url for url in urls if not _is_url(url)), None):
            raise wrong(f"expected a URL, such as https://example.com/story (got {bad[:200]})")
        if len(urls) > 1 and not opts.follow:
            raise wrong(f"expected one URL, such as https://example.com/story (got {short(urls[1])})")
        self.exitcode = 1
        self._egress = Egress(*map(safe_url_string, urls))
        if opts.browser:
            check_browser(self.settings)
            self._gate, self._meta = use_browser(self.settings, self._egress), rendering()
        for name in LOUD:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._crawl(urls, opts)

    def _crawl(self, urls: list[str], opts: Namespace) -> None:
        """Begin the crawl that the options ask for, and wait for its end."""
        if opts.follow:
            self._crawl_sites(urls, opts)
            return
        if opts.inspect:
            self._inspect_page(urls[0], opts)
            return
        for name in ("urls", "output", "chunks", "depth", "allow", "deny", "max_pages"):
            if getattr(opts, name) not in (None, False, [], MOST_PAGES):
                raise wrong(f"--{name.replace('_', '-')} needs --follow")
        if opts.open:
            raise wrong("--open needs --inspect")
        self._crawl_page(urls[0], partial(self.show, opts.format or "markdown"), opts)

    def _crawl_page(self, url: str, show: Show, opts: Namespace) -> None:
        command, base = self, self._spider(opts.spider) if opts.spider else Spider
        if opts.spargs and not opts.spider:
            raise wrong("-a needs a --spider")

        class OnePage(base):  # type: ignore[misc, valid-type]
            name = getattr(base, "name", "dripper")

            async def start(self) -> AsyncIterator[Any]:
                # Redirects are followed.
                meta = {**command._meta, "handle_httpstatus_list": SequenceExclude(range(300, 400))}
                yield Request(url, self.one_page, errback=self.no_page, dont_filter=True, meta=meta)

            async def one_page(self, response: Response) -> None:
                dripper = Dripper.from_crawler(self.crawler)
                show(dripper, response, await dripper.extract(response))

            def no_page(self, failure: Failure) -> None:
                command.complain(url, why(failure.value))

        logging.getLogger(ADVICE).setLevel(logging.CRITICAL)
        for name, nothing in OF_A_CRAWL.items():
            self.settings.set(name, nothing, "cmdline")
        crawler = self._with_addon(OnePage)
        self._guard(crawler)
        self._begin(crawler, **dict(opts.spargs))
        self.crawler_process.start()

    def _inspect_page(self, url: str, opts: Namespace) -> None:
        """Write the page and the inspector's view of it."""
        if opts.format:
            raise wrong("--inspect takes no --format")
        found: list[tuple[Document, Config]] = []

        def keep(dripper: Dripper, response: Response, extraction: Extraction | None) -> None:
            if extraction is None:
                self.complain(response.url, NO_PAGE)
            else:
                found.append((dripper.document(response, dripper.config_for(response)), dripper.config))

        self._crawl_page(url, keep, opts)
        for document, config in found:
            from scrapy_dripper.inspection.look import named, write_views  # other commands do not need the model here

            try:
                (view,) = write_views(Path(opts.output or ""), [named(document)], config)
            except OSError as error:
                raise wrong(f"cannot write {error.filename or opts.output}: {why(error)}") from None
            self._print(str(view))
            if opts.open:
                open_in_browser(view)
            self.exitcode = 0

    def _with_addon(self, spider: type[Spider]) -> Crawler:
        """Return the crawler of a spider of this command, with the add-on, which loads the model before any page."""
        addons = {**self.settings.getdict("ADDONS"), **(spider.custom_settings or {}).get("ADDONS", {})}
        if Addon not in map(load_object, addons):
            self.settings.set("ADDONS", {**addons, Addon: 500}, "cmdline")
        return self.crawler_process.create_crawler(spider)

    def _guard(self, crawler: Crawler, rule: Callable[[Any, Request], None] | None = None) -> None:
        Guard(crawler, self._egress, rule)
        if self._gate is not None:
            self._gate.open_with(crawler)

    def _begin(self, crawler: Crawler, **arguments: Any) -> None:
        """Start a crawl. If its settings or its model are wrong, one sentence says so, instead of a traceback."""

        def failed(failure: Failure) -> Failure | None:
            if not isinstance(failure.value, (ConfigError, ModelError)):
                return failure
            print(on_one_line(failure.getErrorMessage()), file=sys.stderr)
            self.exitcode = 2
            return None

        begun = self.crawler_process.crawl(crawler, **arguments)  # a task, or without an asyncio process a Deferred
        deferred = begun if isinstance(begun, Deferred) else Deferred.fromFuture(asyncio.ensure_future(begun))
        deferred.addErrback(failed)

    def _crawl_sites(self, urls: list[str], opts: Namespace) -> None:
        """Write the pages of sites into a folder or a file. Raise UsageError for options that make no sense."""
        if opts.output is None:
            raise wrong("--follow needs a folder or a file for the pages, as in -o pages/ or -o pages.jsonl")
        if opts.spider is not None or opts.inspect or opts.format not in (None, "markdown"):
            raise wrong("--follow has its own spider, and writes Markdown")
        try:
            pages = Pages(Path(opts.output), urls, chunks=opts.chunks)
        except OutputError as error:
            raise wrong(str(error)) from None
        except OSError as error:
            raise wrong(f"cannot write {opts.output}: {why(error)}") from None
        together = self.settings.getint("CONCURRENT_REQUESTS") + 8 * (len(urls) - 1)
        polite: dict[str, Any] = {**POLITE, "CONCURRENT_REQUESTS": min(together, MOST_TOGETHER)}
        for name, value in polite.items():
            self.settings.set(name, value, "command")
        depth = self.settings.getint("DEPTH_LIMIT") or None if opts.depth is None else opts.depth
        ours: dict[str, Any] = {"JOBDIR": self.settings["JOBDIR"] or str(pages.left), "DEPTH_LIMIT": 0}
        if pages.has_files:
            ours["DRIPPER_MARKDOWN"] = {"front_matter": True, **self.settings.getdict("DRIPPER_MARKDOWN")}
        if opts.chunks:
            ours["DRIPPER_CHUNKS_FIELD"] = "chunks"
        for name, value in ours.items():
            self.settings.set(name, value, "cmdline")
        crawler = self._with_addon(SiteSpider)
        self._guard(crawler, SiteSpider.check)
        self._begin(
            crawler,
            egress=self._egress,
            meta=self._meta,
            pages=pages,
            max_pages=opts.max_pages,
            depth=depth,
            allow=opts.allow,
            deny=opts.deny,
        )
        self.crawler_process.start()
        reason = crawler.spider.reason if isinstance(crawler.spider, SiteSpider) else None
        try:
            pages.close(reason)
        except OSError as error:
            print(on_one_line(f"cannot write {pages.path}: {why(error)}"), file=sys.stderr)
            self.exitcode = 2
        if self.exitcode == 2:
            return
        print(on_one_line(pages.summary(reason, MAX_PAGES)), file=sys.stderr)
        self.exitcode = 0 if pages.files else 1

    def _spider(self, name: str) -> type[Spider]:
        loader = self.crawler_process.spider_loader
        try:
            found: type[Spider] = loader.load(name)
        except KeyError:
            there = ", ".join(sorted(loader.list())) or "none (run the command in the folder of a project)"
            raise wrong(f"no spider {name!r}; the project has {there}") from None
        return found

    def show(self, form: str, _: Dripper, response: Response, extraction: Extraction | None) -> None:
        """Print an extraction, or why there is none."""
        if response.status >= 400:
            self.complain(response.url, f"HTTP {response.status}")
        if extraction is None:
            self.complain(response.url, NO_PAGE)
            return
        if form == "json":
            values = {one.key: one.value(extraction) for one in OUTPUT_FIELDS.values()}
            blocks = {"labels": extraction.labels, "probabilities": extraction.probabilities}
            text = to_json({"url": extraction.url} | values | blocks | values.pop("meta"))
        else:
            texts = {"markdown": extraction.markdown, "html": extraction.main_html, "text": extraction.text}
            text = texts[form] or ""
        self._print(text)
        if extraction.fallback_reason is not None:
            reason = f" ({extraction.error})" if extraction.error else ""
            hint = "; --browser does" if self._gate is None and is_shell(extraction) else ""
            self.complain(response.url, f"{extraction.source}, because of {extraction.fallback_reason}{reason}{hint}")
        if extraction.main_html and response.status < 400:
            self.exitcode = 0

    def _print(self, text: str) -> None:
        try:
            print(text, flush=True)
        except BrokenPipeError:  # `scrapy dripper URL | head`
            drop_output()

    def complain(self, url: str, problem: str) -> None:
        """Print a problem on standard error."""
        print(on_one_line(f"{url}: {problem}"), file=sys.stderr)


def _listed(file: str) -> list[str]:
    """Return the URLs of a file. Raise UsageError if it cannot be read."""
    try:
        text = (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise wrong(f"--urls: {file} cannot be read: {why(error)}") from None
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _depth(value: str) -> int:
    if value.isdecimal():
        return int(value)
    raise ArgumentTypeError(f"expected a whole number of at least 0 (got {value!r})")


def _regex(value: str) -> re.Pattern[str]:
    try:
        return re.compile(value)
    except re.error as error:
        raise ArgumentTypeError(f"{value!r} is not a regular expression: {error}") from None


def _argument(value: str) -> tuple[str, str]:
    name, equals, text = value.partition("=")
    if not equals:
        raise ArgumentTypeError(f"expected NAME=VALUE (got {value!r})")
    return name, text


def _is_url(value: str) -> bool:
    try:
        return bool(checked_host(safe_url_string(value)))
    except ValueError:
        return False
