"""The spider of ``scrapy dripper --follow URL -o folder/``, which writes a site as a folder of Markdown."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urldefrag, urljoin, urlsplit

from lxml.html import tostring
from protego import Protego
from scrapy import Request
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.spiders import SitemapSpider
from scrapy.utils.sitemap import sitemap_urls_from_robots
from tqdm import tqdm
from twisted.python.failure import Failure
from w3lib.url import canonicalize_url, safe_url_string

from scrapy_dripper.characters import on_one_line
from scrapy_dripper.cli.console import why
from scrapy_dripper.cli.inputs import file_name, page_id, unique
from scrapy_dripper.commands.guard import RefusedRequest
from scrapy_dripper.crawl.dripper import Dripper
from scrapy_dripper.data import Extraction
from scrapy_dripper.egress import Egress, host_of
from scrapy_dripper.page import PageError
from scrapy_dripper.page.parse import parse
from scrapy_dripper.page.recover import has_attribute_run
from scrapy_dripper.replace import replace_file

INDEX = "index.jsonl"
JOB = ".crawl"
"""The folder, inside that of the pages, which an interrupted crawl leaves to the command that goes on with it."""
MOST_PAGES = 10_000
"""Default of ``--max-pages``. Some sites have no end, such as those with a calendar."""
MOST_DELAY = 60.0
"""The longest delay, in seconds, that robots.txt can ask for."""
MOST_SITEMAPS = 1_000
"""Largest number of sitemaps of a crawl. A server may name new ones for ever."""
MAX_PAGES = "max_pages"
"""The reason for the end of a crawl that has as many pages as were asked for."""
RECORD = ("title", "source", "fallback_reason", "error", "page_type", "quality")
"""The attributes of an extraction that are in the index."""


_PORTS = {"http": 80, "https": 443}


class KnownPage(IgnoreRequest):
    """A redirect leads to a page that the folder has. The message is its URL."""


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
        self._told: set[str] = set()
        """URLs with a line in the index."""
        self.pages = self.files = self.failed = 0
        self._counts: dict[str, int] = {}
        begun = self.job / "url"
        # Scrapy loses requests if it is killed. Such a crawl begins again.
        self.was_killed = self._running.exists()
        self.goes_on = begun.is_file() and not self.was_killed
        if self.goes_on and (before := begun.read_text(encoding="utf-8")) != url:
            raise FolderError(
                f"{path} holds an unfinished crawl of {before}; choose another folder, or delete {self.job}"
            )
        index = path / INDEX
        for record in _records(index):
            if not (self.goes_on or is_on(str(record["url"]), {site_of(url)})):
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
        self._told.add(str(record["url"]))
        if "source" in record:
            self.pages += 1
            self.done.add(str(record["url"]))
        else:
            self.failed += "error" in record
        if file is not None:
            self.files += 1
            unique(str(file).removesuffix(".md"), self._counts)

    def place(self, url: str, asked: str) -> str:
        """Return the URL of a page's line in the index. ``asked`` is the one that led to it, and gets a line as well.

        A page at a URL that has given none before has the line of the URL that led to it this time.
        """
        if url in self._told:
            return asked
        if url != asked:
            self.redirect(asked, url)
        return url

    def write(self, url: str, page: Extraction) -> None:
        """Write the Markdown of a page, if it has any, and its line in the index."""
        file = None
        if page.markdown:
            file = file_name(unique(page_id(url), self._counts), ".md")
            replace_file(self.path / file, page.markdown.strip("\n") + "\n")
        about = page.metadata.as_dict() if page.metadata else None
        self._add({"url": url, "file": file} | {name: getattr(page, name) for name in RECORD} | {"metadata": about})
        self.pages += 1
        self.files += file is not None

    def redirect(self, url: str, to: str) -> None:
        """Write that a URL leads to a page that has its own line."""
        self._add({"url": url, "file": None, "redirects_to": to})

    def fail(self, url: str, error: str) -> None:
        """Write why there is no page at a URL."""
        self.failed += self._add({"url": url, "file": None, "error": error})

    def _add(self, record: dict[str, Any]) -> bool:
        """Write the line of a URL. Return False if it has one."""
        assert self._index is not None
        if record["url"] in self._told:
            return False
        self._told.add(record["url"])
        self._index.write(json.dumps(record, ensure_ascii=False) + "\n")
        self._index.flush()
        return True

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
    """Follows the links and the sitemaps of one site."""

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
        egress: Egress,
        folder: SiteFolder,
        max_pages: int,
        allow: Iterable[re.Pattern[str]],
        deny: Iterable[re.Pattern[str]],
    ) -> None:
        """``allow`` and ``deny`` are regular expressions for URLs, apart from the first one."""
        super().__init__()
        self.url, self.egress, self.folder, self.max_pages = url, egress, folder, max_pages
        self.reason: str | None = None
        """Why the crawl has ended; None before, and if it was killed."""
        self._links = LinkExtractor(allow=tuple(allow), deny=tuple(deny))
        self._begun = folder.pages
        self._delay = 0.0
        self._left_out, self._example = 0, ""
        """Number of URLs of robots.txt and of sitemaps that are of other sites or schemes, and the first of them."""
        # On a terminal only. How many pages a site has is not known.
        total = None if max_pages == MOST_PAGES else max_pages
        self._bar = tqdm(initial=folder.pages, total=total, unit="page", disable=None, dynamic_ncols=True)

    @property
    def _home(self) -> str:
        """The URL of the first page, after its redirects. Its site is the one that is followed."""
        return str(self.state.get("home", self.url))

    @property
    def _known(self) -> set[str]:
        """URLs that were asked for, or that redirects have led to, in one form for all that Scrapy takes for equal."""
        known: set[str] = self.state.setdefault("known", set())
        return known

    @property
    def _sites(self) -> set[str]:
        return {site_of(self._home)}

    @property
    def _sitemap_sites(self) -> set[str]:
        """The site, and those on which robots.txt names a sitemap."""
        return {*self._sites, *self.state.setdefault("sitemap_sites", set())}

    async def start(self) -> AsyncIterator[Any]:
        """Yield the request for the first page or, in a crawl that goes on, for robots.txt, because of its delay."""
        self.folder.begin()
        for request in self._ask(self.url, self.parse, self.no_page, {"first": True}):
            yield request
        if "home" in self.state:
            yield self._settle(self._home)

    def _ask(
        self,
        url: str,
        callback: Callable[[Response], Any],
        errback: Callable[[Failure], Any],
        meta: dict[str, Any] | None = None,
    ) -> Iterator[Request]:
        """Yield a request for a URL, unless there was one.

        Scrapy's own filter would drop it without a word after a redirect to the same URL, which often sets a cookie.
        """
        if (known := canonicalize_url(url)) not in self._known:
            self._known.add(known)
            yield Request(urldefrag(url).url, callback, errback=errback, dont_filter=True, meta=meta)

    def _settle(self, home: str) -> Request:
        """Keep the URL of the first page, and return the request for the robots.txt of its site."""
        self.state["home"] = home
        self.egress.begin(home)
        url = urljoin(home, "/robots.txt")
        return Request(url, self.parse_robots, errback=self.no_robots, dont_filter=True)

    def check(self, request: Request) -> None:
        """Raise IgnoreRequest for a request that leaves the site, or leads to a page that the folder has."""
        via = request.meta.get("redirect_urls", [])
        if request.callback == self.parse_sitemap:
            sites = self._sitemap_sites
        elif request.callback != self.parse:
            return
        elif not request.meta.get("first"):
            sites = self._sites
        elif len(sites := {site_of(url) for url in via}) < 2:
            return  # The first page may be on another site, but not after a second one.
        if not is_on(request.url, sites):
            raise RefusedRequest(f"leads to {host_of(request.url)}, another site")
        if request.url in self.folder.done and request.url not in via:
            raise KnownPage(request.url)

    def parse_robots(self, response: Response) -> Iterator[Request]:
        """Follow the sitemaps that robots.txt names, and keep the delay that it asks for."""
        agent = self.settings["ROBOTSTXT_USER_AGENT"] or self.settings["USER_AGENT"]
        self._delay, problem = delay_of(response.body.decode("utf-8", "replace"), str(agent))
        if problem:
            print(on_one_line(f"{response.url}: {problem}"), file=sys.stderr)
        self._keep_delay(response)
        named = list(sitemap_urls_from_robots(response.body, base_url=response.url))
        self.state.setdefault("sitemap_sites", set()).update(filter(None, map(_site, named)))
        for url in named or [self._usual_sitemap]:
            yield from self._ask_sitemap(url)

    def no_robots(self, _: Failure) -> Iterator[Request]:
        """Look for a sitemap at its usual place."""
        yield from self._ask_sitemap(self._usual_sitemap)

    def _ask_sitemap(self, url: str) -> Iterator[Request]:
        asked = self.state.setdefault("sitemaps", 0)
        if asked < MOST_SITEMAPS and is_on(url, self._sitemap_sites):
            self.state["sitemaps"] = asked + 1
            yield from self._ask(url, self.parse_sitemap, self.no_sitemap)
        else:
            self._leave_out(url)

    def parse_sitemap(self, response: Response) -> Iterator[Request]:
        """Follow a sitemap, or a list of them."""
        # Many sites answer any path with a page. In a second robots.txt, Scrapy would look for sitemaps.
        if isinstance(response, HtmlResponse) or response.url.endswith("/robots.txt"):
            return
        for request in self._parse_sitemap(response):
            if request.callback == self.parse:
                yield from self._ask(request.url, self.parse, self.no_page)
            else:
                yield from self._ask_sitemap(request.url)

    def no_sitemap(self, failure: Failure) -> None:
        """Go on without a sitemap that cannot be downloaded."""
        if isinstance(failure.value, RefusedRequest):
            self._leave_out(failure.request.url)  # type: ignore[attr-defined]

    def _leave_out(self, url: str) -> None:
        self._example = self._example or url
        self._left_out += 1

    def sitemap_filter(self, entries: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the entries of a sitemap that are to be followed."""
        is_index = getattr(entries, "type", None) == "sitemapindex"
        for entry in entries:
            url = entry.get("loc", "")
            if not is_on(url, self._sitemap_sites if is_index else self._sites):
                self._leave_out(url)
            elif is_index or self._links.matches(url):
                yield entry

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        """Yield requests for the links of a page, and write the page."""
        self._keep_delay(response)
        url, asked = urldefrag(response.url).url, _asked(response.request)
        if response.meta.get("first") and "home" not in self.state:
            if not is_on(url, self._sites):
                print(on_one_line(f"{self.url} redirects to {url}, whose site is followed"), file=sys.stderr)
            yield self._settle(url)
        if not self._is_new(response, url, asked):
            return
        assert isinstance(response, HtmlResponse)
        if self._begun >= self.max_pages:
            yield self._again(response)  # for the command that goes on
            raise CloseSpider(MAX_PAGES)
        self._begun += 1
        place = self.folder.place(url, asked)
        self.folder.done |= {url, place}
        self._known.add(canonicalize_url(url))
        for link in self._links.extract_links(readable(response)):
            if is_on(link.url, self._sites):
                for request in self._ask(link.url, self.parse, self.no_page):
                    yield request
        page = await Dripper.from_crawler(self.crawler).extract(response)
        if page is None:
            self.folder.fail(place, "not an HTML page" if response.body.strip() else "an empty response")
        else:
            try:
                self.folder.write(place, page)
            except OSError as error:
                print(on_one_line(f"cannot write {error.filename or self.folder.path}: {why(error)}"), file=sys.stderr)
                yield self._again(response)
                raise CloseSpider("cannot_write") from None
        self._bar.update(self.folder.pages - self._bar.n)
        if self.folder.pages >= self.max_pages:
            raise CloseSpider(MAX_PAGES)

    def _is_new(self, response: Response, url: str, asked: str) -> bool:
        """Return True for a page of the site that the folder does not have. If not, write so."""
        if not is_on(url, self._sites):  # a browser follows redirects of its own
            self.folder.fail(asked, f"leads to {host_of(url)}, another site")
        elif url in self.folder.done:
            self.folder.redirect(asked, url)
        elif not isinstance(response, HtmlResponse):
            self.folder.fail(asked, "not an HTML page")
        else:
            return True
        return False

    def _again(self, response: Response) -> Request:
        """Return a new request for a page. Its meta has nothing of the download."""
        meta = {"first": True} if response.meta.get("first") else {}
        return Request(_asked(response.request), self.parse, errback=self.no_page, dont_filter=True, meta=meta)

    def no_page(self, failure: Failure) -> Iterator[Request]:
        """Write why a page cannot be downloaded."""
        request: Request = failure.request  # type: ignore[attr-defined]
        asked, error = _asked(request), failure.value
        if isinstance(error, KnownPage):
            self.folder.redirect(asked, str(error))
        if isinstance(error, KnownPage) or asked in self.folder.done:  # by another way
            return
        reason = failure.getErrorMessage()
        if isinstance(error, HttpError):
            reason = f"HTTP {error.response.status}"
        if request.meta.get("redirect_urls") and not isinstance(error, RefusedRequest):
            reason = f"redirects to {request.url}: {reason}"
        self.folder.fail(asked, reason)
        if request.meta.get("first"):
            print(on_one_line(f"{asked}: {reason}"), file=sys.stderr)
            if "home" not in self.state:
                yield self._settle(self.url)

    @property
    def _usual_sitemap(self) -> str:
        return urljoin(self._home, "/sitemap.xml")

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
        if self._left_out:
            what = "URL of robots.txt and sitemaps is" if self._left_out == 1 else "URLs of robots.txt and sitemaps are"
            text = (
                f"{self._left_out:,} {what} not followed, because they are not of this site or come after "
                f"{MOST_SITEMAPS:,} sitemaps, such as {self._example[:200]}"
            )
            print(on_one_line(text), file=sys.stderr)


def site_of(url: str) -> str:
    """Return what the URLs of a site have in common: the host without ``www.``, and the port if it is an unusual one.

    Raise :exc:`~scrapy_dripper.egress.RefusedError` if it is no URL of the web.
    """
    host, parts = host_of(url).removeprefix("www."), urlsplit(url)
    return host if parts.port in (None, _PORTS[parts.scheme]) else f"{host}:{parts.port}"


def is_on(url: str, sites: Container[str]) -> bool:
    """Return True for a URL of one of these sites."""
    return _site(url) in sites


def _site(url: str) -> str | None:
    try:
        return site_of(safe_url_string(url))
    except ValueError:
        return None


def _asked(request: Request | None) -> str:
    """Return the URL that was asked for, before redirects."""
    assert request is not None
    first: str = [*request.meta.get("redirect_urls", []), request.url][0]
    return urldefrag(first).url


def delay_of(robots: str, agent: str) -> tuple[float, str | None]:
    """Return the delay that robots.txt asks an agent for, in seconds, and what is wrong with it."""
    asked = Protego.parse(robots).crawl_delay(agent)
    if asked is not None and asked >= 0:
        problem = f"a Crawl-delay of {asked:g} s is too long; it is {MOST_DELAY:g} s" if asked > MOST_DELAY else None
        return min(asked, MOST_DELAY), problem
    lines = (line.partition("#")[0].partition(":") for line in robots.splitlines())
    values = (value.strip() for name, _, value in lines if name.strip().lower() == "crawl-delay")
    wrong = next((value for value in values if not _is_delay(value)), None)
    return 0.0, None if wrong is None else f"a Crawl-delay of {wrong[:40]} is not a number of seconds, and is ignored"


def _is_delay(value: str) -> bool:
    try:
        return 0 <= float(value) < math.inf
    except ValueError:
        return False


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
