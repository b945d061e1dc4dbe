"""The spider of ``scrapy dripper --follow URL -o folder/``, which writes sites as folders of Markdown."""

from __future__ import annotations

import asyncio
import math
import re
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urldefrag, urljoin

from lxml.html import tostring
from protego import Protego
from scrapy import Request, signals
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, DontCloseSpider, IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.spiders import SitemapSpider
from scrapy.utils.response import get_base_url
from tqdm import tqdm
from twisted.python.failure import Failure
from w3lib.url import canonicalize_url

from scrapy_dripper.characters import on_one_line
from scrapy_dripper.cli.console import why
from scrapy_dripper.commands.frontier import Site, is_on, name_of, site_of, without_tracking
from scrapy_dripper.commands.guard import RefusedRequest
from scrapy_dripper.commands.pages import Pages
from scrapy_dripper.crawl import META_KEY, Dripper
from scrapy_dripper.egress import Egress, checked_host
from scrapy_dripper.page import PageError
from scrapy_dripper.page.parse import has_attribute_run, parse

MOST_PAGES = 10_000
"""Default of ``--max-pages``. Some sites have no end, such as those with a calendar."""
MOST_DELAY = 60.0
"""The longest delay, in seconds, that robots.txt can ask for."""
MOST_ROBOTS = 500 * 1_024
"""How many bytes of robots.txt are read, which is what RFC 9309 asks for."""
MOST_RULES = 100_000
"""Largest number of rules of robots.txt, each counted for every program that it is for, because Protego copies it."""
MOST_SITEMAPS = 1_000
"""Largest number of sitemaps of a site. A server may name new ones for ever."""
MOST_SITES = 10
"""Largest number of sites on which robots.txt can name sitemaps. Each of them is asked for its own robots.txt, too."""
MAX_PAGES = "max_pages"
"""The reason for the end of a crawl that has as many pages as were asked for, and knows of more."""


_is_rule = re.compile(r"\s*(?:dis)?allow\s*:", re.I).match


class KnownPage(IgnoreRequest):
    """A redirect leads to a page that was written. The message is its URL."""


class InMemory(Scheduler):
    """Scrapy's scheduler without files in ``JOBDIR``: what is left to ask for is in the frontier of the crawl."""

    def __init__(self, dupefilter: Any, jobdir: Any = None, *options: Any, **named: Any) -> None:  # noqa: ARG002
        super().__init__(dupefilter, None, *options, **named)


class Robots(ProtegoRobotParser):
    """Scrapy's parser of robots.txt, which reads as much of it as :func:`readable_robots` says."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> Robots:
        return super().from_crawler(crawler, readable_robots(robotstxt_body).encode())


class SiteSpider(SitemapSpider):
    """Follows the links and the sitemaps of sites.

    Each site has as many requests at a time as the downloader makes to one host. Each that ends begins the next one.
    """

    name = "dripper-site"
    custom_settings = {  # noqa: RUF012
        "DRIPPER_META_FIELD": "dripper",
        "DRIPPER_METADATA_FIELD": "metadata",
        "ITEM_PIPELINES": {},
        "FEEDS": {},
        "SCHEDULER": InMemory,
        # Requests do not come from the page that has the link.
        "REFERRER_POLICY": "no-referrer",
        # Pages near the first one come first.
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }

    def __init__(
        self,
        egress: Egress,
        meta: Mapping[str, Any],
        pages: Pages,
        max_pages: int,
        depth: int | None,
        allow: Iterable[re.Pattern[str]],
        deny: Iterable[re.Pattern[str]],
    ) -> None:
        """``allow`` and ``deny`` are regular expressions for URLs, apart from those of the user. ``meta`` is that of
        requests for pages.

        Pages to which more than ``depth`` links lead from the first one are not followed, and no sitemaps then.
        """
        super().__init__()
        self.egress, self.meta, self.pages, self.max_pages, self.depth = egress, meta, pages, max_pages, depth
        self.reason: str | None = None
        """Why the crawl has ended; None before, and if it was killed."""
        self._links = LinkExtractor(allow=tuple(allow), deny=tuple(deny))
        self._left_out, self._unread = _Some(), _Some()
        """URLs of robots.txt and of sitemaps that are of other sites or schemes, and sitemaps that cannot be read."""
        self._bar: tqdm[Any] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def _sites(self) -> list[Site]:
        return self.pages.frontier.sites

    async def start(self) -> AsyncIterator[Any]:
        """Yield the first requests of each site: for its first page or, in a crawl that goes on, for robots.txt."""
        with self._writing():
            self.pages.begin()
        for site in self._sites:
            site.begun = self.pages.by_site[site.name]
        # On a terminal only. How many pages a site has is not known.
        total = None if self.max_pages == MOST_PAGES else self.max_pages * len(self._sites)
        self._bar = bar = tqdm(initial=self.pages.pages, total=total, unit="page", disable=None, dynamic_ncols=True)
        self._most = max(1, self.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"))
        self.crawler.signals.connect(self._go_on, signals.spider_idle)
        interval = self.settings.getfloat("LOGSTATS_INTERVAL")
        if bar.disable and interval > 0:
            self._task = asyncio.ensure_future(self._tell(interval))
        for site in self._sites:
            if site.home is None:
                for request in self._next(site):
                    yield request
            elif site.queue or not all(site.sitemaps.values()):
                yield self._robots(site)

    def _next(self, site: Site) -> Iterator[Request]:
        """Yield requests for the pages of a site that come next, as many as can be asked for now."""
        if site.queue and site.begun >= self.max_pages:
            site.has_more = True
            site.queue.clear()
        is_first = site.home is None
        while site.queue and site.asked < (1 if is_first else self._most if site.is_ready else 0):
            url, depth = site.queue.popleft()
            site.asked += 1
            meta = {**self.meta, "site": site, "links": depth, "first": is_first}
            # Scrapy's own filter would drop it without a word after a redirect to the same URL, which often sets a
            # cookie.
            yield Request(url, self.parse, errback=self.no_page, dont_filter=True, meta=meta)

    def _go_on(self) -> None:
        """Ask for the next pages if there is nothing else to do, because a middleware has dropped requests."""
        requests: list[Request] = []
        for site in self._sites:
            site.asked, site.is_ready, site.home = 0, True, site.home or site.url
            requests += self._next(site)
        for request in requests:
            assert self.crawler.engine is not None
            self.crawler.engine.crawl(request)
        if requests:
            raise DontCloseSpider

    async def _tell(self, seconds: float) -> None:
        """Print a line about the crawl now and then."""
        before = self.pages.pages
        while True:
            await asyncio.sleep(seconds)
            now, left = self.pages.pages, sum(len(site.queue) + site.asked for site in self._sites)
            rate = (now - before) * 60 / seconds
            made = f"{now:,} {'page' if now == 1 else 'pages'}, {rate:,.0f} a minute"
            text = f"{made}, {left:,} {'URL' if left == 1 else 'URLs'} to go, {self.pages.failed:,} not to be had"
            print(text, file=sys.stderr, flush=True)
            before = now

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """End the crawl if something cannot be written. What has no line in the index is asked for the next time."""
        try:
            yield
        except OSError as error:
            print(on_one_line(f"cannot write {error.filename or self.pages.path}: {why(error)}"), file=sys.stderr)
            raise CloseSpider("cannot_write") from None

    def _settle(self, site: Site, home: str) -> Request:
        """Keep the URL of the first page of a site, and return the request for its robots.txt."""
        with self._writing():
            self.pages.frontier.move(site, home)
            self.pages.frontier.flush()
        return self._robots(site)

    def _robots(self, site: Site) -> Request:
        assert site.home is not None
        self.egress.begin(site.home, site.url)
        url = urljoin(site.home, "/robots.txt")
        meta = {"site": site, META_KEY: False}
        return Request(url, self.parse_robots, errback=self.no_robots, dont_filter=True, meta=meta)

    def check(self, request: Request) -> None:
        """Raise IgnoreRequest for a request that leaves the site, or leads to a page that was written."""
        via = request.meta.get("redirect_urls", [])
        site: Site | None = request.meta.get("site")
        sites: set[str | None]
        if site is None:
            return
        if request.callback == self.parse_sitemap:
            sites = self._sitemap_sites(site)
        elif request.callback != self.parse:
            return
        elif not request.meta["first"]:
            sites = {site.name}
        elif len(sites := {site_of(url) for url in via}) < 2:
            return  # The first page may be on another site, but not after a second one.
        if not is_on(request.url, sites):
            raise RefusedRequest(f"leads to {checked_host(request.url)}, another site")
        if request.url in self.pages.done and request.url not in via:
            raise KnownPage(request.url)

    def _sitemap_sites(self, site: Site) -> set[str | None]:
        """Return the site, and those on which its robots.txt names a sitemap, but none that the user has named."""
        return {site.name, *(site.others - {one.name for one in self._sites})}

    def parse_robots(self, response: Response) -> Iterator[Request]:
        """Follow the sitemaps that robots.txt names, and keep the delay that it asks for."""
        site: Site = response.meta["site"]
        agent = self.settings["ROBOTSTXT_USER_AGENT"] or self.settings["USER_AGENT"]
        robots = readable_robots(response.body)
        site.delay, problem = delay_of(robots, str(agent))
        if problem:
            print(on_one_line(f"{response.url}: {problem}"), file=sys.stderr)
        self._keep_delay(response)
        named = [_absolute(response.url, url) for url in Protego.parse(robots).sitemaps]
        others = dict.fromkeys(filter(None, map(name_of, named[:MOST_SITEMAPS])))
        site.others = {*list(others)[:MOST_SITES]}
        yield from self._begin(site, named)

    def no_robots(self, failure: Failure) -> Iterator[Request]:
        """Look for a sitemap at its usual place."""
        yield from self._begin(failure.request.meta["site"], [])  # type: ignore[attr-defined]

    def _begin(self, site: Site, sitemaps: Iterable[str]) -> Iterator[Request]:
        """Yield requests for the sitemaps and the pages of a site whose robots.txt is known."""
        site.is_ready = True
        if self.depth is None:
            for url, is_read in list(site.sitemaps.items()):
                if not is_read:
                    yield self._sitemap(site, url)
            for url in sitemaps or [site.usual_sitemap]:
                yield from self._ask_sitemap(site, url)
        yield from self._next(site)

    def _ask_sitemap(self, site: Site, url: str) -> Iterator[Request]:
        if url in site.sitemaps:
            return
        if len(site.sitemaps) < MOST_SITEMAPS and is_on(url, self._sitemap_sites(site)):
            self.pages.frontier.sitemap(site, url, is_read=False)
            yield self._sitemap(site, url)
        else:
            self._left_out.add(url)

    def _sitemap(self, site: Site, url: str) -> Request:
        meta = {"site": site, "sitemap": url, META_KEY: False}
        return Request(url, self.parse_sitemap, errback=self.no_sitemap, dont_filter=True, meta=meta)

    def parse_sitemap(self, response: Response) -> Iterator[Request]:
        """Follow a sitemap, or a list of them."""
        site: Site = response.meta["site"]
        # Many sites answer any path with a page. In a second robots.txt, Scrapy would look for sitemaps.
        if isinstance(response, HtmlResponse) or response.url.endswith("/robots.txt"):
            self._cannot_read(site, response.meta["sitemap"], "not a sitemap")
        else:
            for request in self._parse_sitemap(response):
                if request.callback != self.parse:
                    yield from self._ask_sitemap(site, request.url)
                elif not is_on(request.url, {site.name}):
                    self._left_out.add(request.url)
                elif self._links.matches(request.url):
                    self.pages.frontier.add(site, without_tracking(request.url), 0)
        yield from self._end_sitemap(site, response.meta["sitemap"])

    def no_sitemap(self, failure: Failure) -> Iterator[Request]:
        """Go on without a sitemap that cannot be downloaded."""
        request: Request = failure.request  # type: ignore[attr-defined]
        if isinstance(failure.value, RefusedRequest):
            self._left_out.add(request.url)
        else:
            self._cannot_read(request.meta["site"], request.meta["sitemap"], _reason(failure))
        yield from self._end_sitemap(request.meta["site"], request.meta["sitemap"])

    def _end_sitemap(self, site: Site, url: str) -> Iterator[Request]:
        with self._writing():
            self.pages.frontier.sitemap(site, url, is_read=True)
            self.pages.frontier.flush()
        yield from self._next(site)

    def _cannot_read(self, site: Site, url: str, reason: str) -> None:
        if url != site.usual_sitemap:  # which nobody has named
            self._unread.add(f"{url}: {reason}")

    def sitemap_filter(self, entries: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the entries of a sitemap that are URLs of the web."""
        for entry in entries:
            if name_of(url := entry.get("loc", "")) is None:
                self._left_out.add(url)
            else:
                yield entry

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        """Yield requests for the next pages, follow the links of this one, and write it."""
        site: Site = response.meta["site"]
        site.asked -= 1
        self._keep_delay(response)
        url, asked = urldefrag(response.url).url, _asked(response.request)
        if response.meta["first"] and site.home is None:
            if not is_on(url, {site.name}):
                print(on_one_line(f"{site.url} redirects to {url}, whose site is followed"), file=sys.stderr)
            yield self._settle(site, url)
        is_new = self._is_new(response, site, url, asked)
        if is_new:
            assert isinstance(response, HtmlResponse)
            site.begun += 1
            place = self.pages.place(url, asked)
            self.pages.done |= {url, place}
            self.pages.frontier.known.add(canonicalize_url(url))
            if self.depth is None or response.meta["links"] < self.depth:
                for link in self._links.extract_links(readable(response)):
                    if is_on(link.url, {site.name}):
                        self.pages.frontier.add(site, without_tracking(link.url), response.meta["links"] + 1)
        for request in self._next(site):
            yield request
        if not is_new:
            return
        page = await Dripper.from_crawler(self.crawler).extract(response)
        with self._writing():
            if page is None:
                self.pages.fail(place, "not an HTML page" if response.body.strip() else "an empty response")
            else:
                self.pages.write(place, page)
            if asked != place:
                self.pages.redirect(asked, place)
        if self._bar is not None:
            self._bar.update(self.pages.pages - self._bar.n)

    def _is_new(self, response: Response, site: Site, url: str, asked: str) -> bool:
        """Return True for a page of the site that is to be written. If it is not, write why."""
        with self._writing():
            if not is_on(url, {site.name}):  # a browser follows redirects of its own
                self.pages.fail(asked, f"leads to {checked_host(url)}, another site")
            elif url in self.pages.done:
                self.pages.redirect(asked, url)
            elif not isinstance(response, HtmlResponse):
                self.pages.fail(asked, "not an HTML page")
            elif site.begun >= self.max_pages:
                site.has_more = True  # it is left to the next command
            else:
                return True
        return False

    def no_page(self, failure: Failure) -> Iterator[Request]:
        """Write why a page cannot be downloaded."""
        request: Request = failure.request  # type: ignore[attr-defined]
        site: Site = request.meta["site"]
        site.asked -= 1
        asked, error = _asked(request), failure.value
        reason = _reason(failure)
        if request.meta.get("redirect_urls") and not isinstance(error, RefusedRequest):
            reason = f"redirects to {request.url}: {reason}"
        with self._writing():
            if isinstance(error, KnownPage):
                self.pages.redirect(asked, str(error))
            elif asked not in self.pages.done:  # by another way
                self.pages.fail(asked, reason)
        if request.meta["first"] and site.home is None:
            print(on_one_line(f"{asked}: {reason}"), file=sys.stderr)
            yield self._settle(site, site.url)
        yield from self._next(site)

    def _keep_delay(self, response: Response) -> None:
        """Let the downloader wait as long as robots.txt asks for."""
        assert self.crawler.engine is not None
        slot = self.crawler.engine.downloader.slots.get(str(response.meta.get("download_slot")))
        if slot is not None:
            slot.delay = max(slot.delay, response.meta["site"].delay)

    def closed(self, reason: str) -> None:
        """Remember why the crawl has ended."""
        has_more = reason == "finished" and any(site.has_more for site in self._sites)
        self.reason = MAX_PAGES if has_more else reason
        if self._task is not None:
            self._task.cancel()
        if self._bar is not None:  # not its truth, which needs a total
            self._bar.close()
        self._left_out.tell(
            "URL of robots.txt and sitemaps is",
            "URLs of robots.txt and sitemaps are",
            f"not followed, because they are not of this site or come after {MOST_SITEMAPS:,} sitemaps",
        )
        self._unread.tell("sitemap", "sitemaps", "cannot be read")


class _Some:
    """Counts problems of one kind, and keeps the first one."""

    def __init__(self) -> None:
        self._count, self._first = 0, ""

    def add(self, problem: str) -> None:
        self._first = self._first or problem
        self._count += 1

    def tell(self, one: str, many: str, what: str) -> None:
        """Print a line about them, if there are any."""
        if self._count:
            text = f"{self._count:,} {one if self._count == 1 else many} {what}, such as {self._first[:200]}"
            print(on_one_line(text), file=sys.stderr)


def _reason(failure: Failure) -> str:
    """Return why a URL cannot be downloaded."""
    error = failure.value
    return f"HTTP {error.response.status}" if isinstance(error, HttpError) else why(error)


def _asked(request: Request | None) -> str:
    """Return the URL that was asked for, before redirects."""
    assert request is not None
    first: str = [*request.meta.get("redirect_urls", []), request.url][0]
    return urldefrag(first).url


def _absolute(base: str, url: str) -> str:
    """Return an absolute URL, or what is no URL as it is."""
    try:
        return urljoin(base, url)
    except ValueError:
        return url


def readable_robots(body: bytes) -> str:
    """Return the text of robots.txt up to the limits for its bytes and its rules."""
    lines = body[:MOST_ROBOTS].decode("utf-8-sig", "replace").splitlines()
    agents, rules, is_begun = 0, 0, False
    for number, line in enumerate(lines):
        if line.lstrip()[:4].lower() == "user":
            agents, is_begun = 1 if is_begun else agents + 1, False
        elif line.partition("#")[0].strip():
            rules += agents
            is_begun |= _is_rule(line) is not None
        if rules > MOST_RULES:
            return "\n".join(lines[:number])
    return "\n".join(lines)


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

    libxml2 takes quadratic time for an element with 100,000 attributes, and nothing else would happen in the crawl. A
    ``<base>`` that is no URL is taken out, because browsers ignore it, and Scrapy fails.
    """
    known = _knows_base(response)
    if known and not has_attribute_run(response.text.encode("utf-8", "replace")):
        return response
    try:
        root = parse(response.text)
    except PageError:
        return response.replace(body=b"")
    for base in () if known else root.xpath("//base"):
        base.drop_tree()
    return response.replace(body=tostring(root, method="html", encoding="utf-8"), encoding="utf-8")


def _knows_base(response: HtmlResponse) -> bool:
    try:
        return bool(get_base_url(response))
    except ValueError:
        return False
