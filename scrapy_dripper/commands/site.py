"""The spider of ``scrapy dripper --follow URL -o folder/``, which writes a site as a folder of Markdown."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urldefrag, urljoin, urlsplit

from lxml.html import tostring
from protego import Protego
from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.spiders import SitemapSpider
from scrapy.utils.sitemap import sitemap_urls_from_robots
from tqdm import tqdm
from twisted.python.failure import Failure

from scrapy_dripper.characters import on_one_line
from scrapy_dripper.cli.console import why
from scrapy_dripper.cli.inputs import file_name, page_id, unique
from scrapy_dripper.crawl.dripper import Dripper
from scrapy_dripper.data import Extraction
from scrapy_dripper.page import PageError
from scrapy_dripper.page.parse import parse
from scrapy_dripper.page.recover import has_attribute_run
from scrapy_dripper.replace import replace_file

INDEX = "index.jsonl"
JOB = ".crawl"
"""The folder, inside that of the pages, which an interrupted crawl leaves to the command that goes on with it."""
MOST_PAGES = 10_000
"""Default of ``--max-pages``. Some sites have no end, such as those with a calendar."""
MAX_PAGES = "max_pages"
"""The reason for the end of a crawl that has as many pages as were asked for."""
RECORD = ("title", "source", "fallback_reason", "error", "page_type", "quality")
"""The attributes of an extraction that are in the index."""


class FolderError(Exception):
    """The folder belongs to another crawl. The message says what to do."""


class SiteFolder:
    """The Markdown files of a site, their index, and what is needed to go on with an interrupted crawl."""

    def __init__(self, path: Path, url: str) -> None:
        """Raise :exc:`FolderError` if the folder holds another site, and OSError if it cannot be written.

        An index, and a crawl that can go on, are not changed before :meth:`begin`: the model may turn out to be wrong.
        """
        self.path, self.job, self._running = path, path / JOB, path / JOB / "running"
        self._url, self._is_new = url, not path.exists()
        self.done: set[str] = set()
        """URLs of the pages that have been extracted, or are being extracted."""
        self.pages = self.files = self.failed = 0
        self._counts: dict[str, int] = {}
        begun = self.job / "url"
        # Scrapy loses requests if it is killed. Such a crawl begins again.
        self.goes_on = begun.is_file() and not self._running.exists()
        if self.goes_on and (before := begun.read_text(encoding="utf-8")) != url:
            raise FolderError(
                f"{path} holds an unfinished crawl of {before}; choose another folder, or delete {self.job}"
            )
        index = path / INDEX
        for record in _records(index):
            if urlsplit(str(record.get("url"))).netloc != urlsplit(url).netloc and not self.goes_on:
                raise FolderError(f"{index} is the index of another site; choose another folder, or delete it")
            if not self.goes_on:
                break
            self._count(record)
        if not self.goes_on and self.job.exists():
            shutil.rmtree(self.job)
        self.job.mkdir(parents=True, exist_ok=True)
        if index.exists():
            index.open("a").close()  # raises OSError if begin() could not write it
        self._index: IO[str] | None = None

    def begin(self) -> None:
        """Open the index, and note that a crawl is running."""
        (self.job / "url").write_text(self._url, encoding="utf-8")
        self._running.touch()
        mode = "a" if self.goes_on else "w"
        self._index = (self.path / INDEX).open(mode, encoding="utf-8", errors="replace", newline="\n")

    def _count(self, record: dict[str, Any]) -> None:
        file = record.get("file")
        if "source" in record:
            self.pages += 1
            self.done.add(str(record["url"]))
        else:
            self.failed += 1
        if file is not None:
            self.files += 1
            unique(str(file).removesuffix(".md"), self._counts)

    def write(self, url: str, page: Extraction) -> None:
        """Write the Markdown of a page, if it has any, and its line in the index."""
        file = None
        if page.markdown:
            file = file_name(unique(page_id(url), self._counts), ".md")
            replace_file(self.path / file, page.markdown.strip("\n") + "\n")
        about = page.metadata.as_dict() if page.metadata is not None else None
        self._add({"url": url, "file": file} | {name: getattr(page, name) for name in RECORD} | {"metadata": about})
        self.pages += 1
        self.files += file is not None

    def fail(self, url: str, error: str) -> None:
        """Write why there is no page at a URL."""
        self._add({"url": url, "file": None, "error": error})
        self.failed += 1

    def _add(self, record: dict[str, Any]) -> None:
        assert self._index is not None
        self._index.write(json.dumps(record, ensure_ascii=False) + "\n")
        self._index.flush()

    def summary(self, reason: str | None) -> str:
        """Return what is in the folder when a crawl has ended, and how it goes on. ``reason`` is as for close()."""
        parts = [f"{self.pages:,} {'page' if self.pages == 1 else 'pages'} in {self.path}"]
        if empty := self.pages - self.files:
            parts.append(f"{empty:,} of them without main content")
        if self.failed:
            parts.append(f"{self.failed:,} not to be had")
        text = ", ".join(parts) + (f" ({self.path / INDEX} says why)" if len(parts) > 1 else "")
        if reason == "finished":
            return text
        if reason == MAX_PAGES:
            return f"{text}; --max-pages is reached: the same command with a larger number goes on"
        return f"{text}; stopped: the same command {'begins again' if reason is None else 'goes on'}"

    def close(self, reason: str | None) -> None:
        """Close the index when a crawl has ended, with Scrapy's reason, or None if it was killed.

        A crawl that has finished is forgotten, so that the next one begins again. Of one that has not begun, nothing
        stays.
        """
        if self._index is not None:
            self._index.close()
        if reason is not None:
            self._running.unlink(missing_ok=True)
        if reason == "finished" or (self._index is None and not self.goes_on):
            shutil.rmtree(self.job, ignore_errors=True)
        if self._index is None and self._is_new:
            with suppress(OSError):  # not empty: JOBDIR may be a folder in it
                self.path.rmdir()


class SiteSpider(SitemapSpider):
    """Follows the links and the sitemaps of one host."""

    name = "dripper-site"
    custom_settings = {  # noqa: RUF012
        "DRIPPER_MARKDOWN": {"front_matter": True},
        "ITEM_PIPELINES": {},
        "FEEDS": {},
        # Pages near the first one come first.
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }
    state: dict[str, Any]

    def __init__(
        self,
        url: str,
        folder: SiteFolder,
        max_pages: int,
        allow: Iterable[re.Pattern[str]],
        deny: Iterable[re.Pattern[str]],
    ) -> None:
        """``allow`` and ``deny`` are regular expressions for URLs, apart from the first one."""
        super().__init__()
        self.url, self.folder, self.max_pages = url, folder, max_pages
        self.reason: str | None = None
        """Why the crawl has ended; None before, and if it was killed."""
        self._links = LinkExtractor(allow=tuple(allow), deny=tuple(deny))
        self._begun = folder.pages
        self._delay = 0.0
        # On a terminal only. How many pages a site has is not known.
        total = None if max_pages == MOST_PAGES else max_pages
        self._bar = tqdm(initial=folder.pages, total=total, unit="page", disable=None, dynamic_ncols=True)

    @property
    def _hosts(self) -> list[str]:
        """The host of the first page, and the one that it redirects to."""
        hosts: list[str] = self.state.setdefault("hosts", [urlsplit(self.url).netloc])
        return hosts

    async def start(self) -> AsyncIterator[Any]:
        """Yield the requests for the first page and for the sitemaps."""
        self.folder.begin()
        yield Request(self.url, self.parse, errback=self.no_page, meta={"first": True})
        # Not only at the first start, because of its delay.
        yield Request(urljoin(self.url, "/robots.txt"), self.parse_robots, errback=self.no_robots, dont_filter=True)

    def parse_robots(self, response: Response) -> Iterator[Request]:
        """Follow the sitemaps that robots.txt names, and keep the delay that it asks for."""
        agent = self.settings["ROBOTSTXT_USER_AGENT"] or self.settings["USER_AGENT"]
        self._delay = Protego.parse(response.body.decode("utf-8", "replace")).crawl_delay(str(agent)) or 0.0
        self._keep_delay(response)
        for url in list(sitemap_urls_from_robots(response.body, base_url=response.url)) or [self._usual_sitemap]:
            yield Request(url, self.parse_sitemap, errback=self.no_sitemap)

    def no_robots(self, _: Failure) -> Iterator[Request]:
        """Look for a sitemap at its usual place."""
        yield Request(self._usual_sitemap, self.parse_sitemap, errback=self.no_sitemap)

    def parse_sitemap(self, response: Response) -> Iterator[Request]:
        """Follow a sitemap, or a list of them."""
        if isinstance(response, HtmlResponse):  # many sites answer any path with a page
            return
        for request in self._parse_sitemap(response):
            is_page = request.callback == self.parse
            callback, errback = (self.parse, self.no_page) if is_page else (self.parse_sitemap, self.no_sitemap)
            yield request.replace(url=urldefrag(request.url).url, callback=callback, errback=errback)

    def no_sitemap(self, _: Failure) -> None:
        """Go on without a sitemap that cannot be downloaded."""

    def sitemap_filter(self, entries: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the entries of a sitemap that are to be followed."""
        is_index = getattr(entries, "type", None) == "sitemapindex"
        return (entry for entry in entries if entry.get("loc") and (is_index or self._is_wanted(entry["loc"])))

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        """Yield requests for the links of a page, and write the page."""
        self._keep_delay(response)
        url = urldefrag(response.url).url
        if response.meta.get("first"):
            self.state["hosts"] = list({*self._hosts, urlsplit(url).netloc})
        if urlsplit(url).netloc not in self._hosts or url in self.folder.done:  # after a redirect
            return
        if not isinstance(response, HtmlResponse):
            self.folder.fail(url, "not an HTML page")
            return
        if self._begun >= self.max_pages:
            yield self._again(response)  # for the command that goes on
            raise CloseSpider(MAX_PAGES)
        self._begun += 1
        self.folder.done.add(url)
        for link in self._links.extract_links(readable(response)):
            if urlsplit(link.url).netloc in self._hosts:
                yield Request(urldefrag(link.url).url, self.parse, errback=self.no_page)
        page = await Dripper.from_crawler(self.crawler).extract(response)
        if page is None:
            self.folder.fail(url, "not an HTML page" if response.body.strip() else "an empty response")
        else:
            try:
                self.folder.write(url, page)
            except OSError as error:
                print(on_one_line(f"cannot write {error.filename or self.folder.path}: {why(error)}"), file=sys.stderr)
                yield self._again(response)
                raise CloseSpider("cannot_write") from None
        self._bar.update(self.folder.pages - self._bar.n)
        if self.folder.pages >= self.max_pages:
            raise CloseSpider(MAX_PAGES)

    def _again(self, response: Response) -> Request:
        """Return a new request for a page. Its meta has nothing of the download."""
        meta = {"first": True} if response.meta.get("first") else {}
        return Request(response.url, self.parse, errback=self.no_page, dont_filter=True, meta=meta)

    def no_page(self, failure: Failure) -> None:
        """Write why a page cannot be downloaded."""
        request: Request = failure.request  # type: ignore[attr-defined]
        error = failure.value
        reason = f"HTTP {error.response.status}" if isinstance(error, HttpError) else failure.getErrorMessage()
        self.folder.fail(request.url, reason)
        if request.meta.get("first"):
            print(on_one_line(f"{request.url}: {reason}"), file=sys.stderr)

    def _is_wanted(self, url: str) -> bool:
        return urlsplit(url).netloc in self._hosts and self._links.matches(url)

    @property
    def _usual_sitemap(self) -> str:
        return urljoin(self.url, "/sitemap.xml")

    def _keep_delay(self, response: Response) -> None:
        """Let the downloader wait as long as robots.txt asks for."""
        assert self.crawler.engine is not None
        slot = self.crawler.engine.downloader.slots.get(str(response.meta.get("download_slot")))
        if slot is not None:
            slot.delay = max(slot.delay, self._delay)

    def closed(self, reason: str) -> None:
        """Remember why the crawl has ended."""
        self.reason = reason
        self._bar.close()


def readable(response: HtmlResponse) -> HtmlResponse:
    """Return a response that Scrapy can search for links in linear time.

    libxml2 takes quadratic time for an element with 100,000 attributes, and nothing else would happen in the crawl.
    """
    if not has_attribute_run(response.text.encode("utf-8", "replace")):
        return response
    try:
        root = parse(response.text)
    except PageError:
        return response.replace(body=b"")
    return response.replace(body=tostring(root, method="html", encoding="utf-8"), encoding="utf-8")


def _records(index: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of an index. Lines that are no records are ignored: the last one may be cut."""
    if not index.is_file():
        return
    with index.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and "url" in record:
                yield record
