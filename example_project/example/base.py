"""The base class of the spiders of this project."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard

import scrapy
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.python.failure import Failure

from example.extensions import OwnSite
from example.items import Page

OWN_SITE: dict[str, Any] = {
    "OWN_SITE": True,
    # The server is on the same machine, so there is no need for delays or a proxy.
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "HTTPPROXY_ENABLED": False,
}
"""Settings of a spider that crawls the example's own website."""

LARGE = 1_000_000
"""Size in bytes above which a spider does not query a page itself.

``response.css`` has no limits. On the page in this project with 100,000 attributes on one element, it would block the
whole crawl for minutes. scrapy-dripper limits everything when it reads such pages, and works outside the event loop.
"""

PLAIN_WORDS = {
    "CannotResolveHostError": "host name not found",
    "DNSLookupError": "host name not found",
    "ConnectionRefusedError": "connection refused",
    "DownloadConnectionRefusedError": "connection refused",
    "DownloadTimeoutError": "no answer in time",
    "TimeoutError": "no answer in time",
    "TCPTimedOutError": "no answer in time",
}


class PageSpider(scrapy.Spider):
    """A spider that records why requests failed: ``failures`` has the reasons by URL."""

    links = LinkExtractor(deny_extensions=[])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.failures: dict[str, str] = {}

    def home(self) -> str:
        """Return the URL of the example's own website."""
        site = self.crawler.get_extension(OwnSite)
        assert site is not None, "the spider needs custom_settings = OWN_SITE"
        return site.url

    def can_read(self, response: Response) -> TypeGuard[HtmlResponse]:
        """Return True if the spider may query a page."""
        return isinstance(response, HtmlResponse) and len(response.body) <= LARGE

    def follow_links(self, response: Response) -> Iterable[Request]:
        """Return a request for each link of a page."""
        if not self.can_read(response):
            return []
        return response.follow_all(self.links.extract_links(response), errback=self.failed)

    def page(self, response: Response) -> Page:
        """Return the item of a response. scrapy-dripper fills in its content later."""
        title = response.css("title::text").get() if self.can_read(response) else None
        return Page(response.url, title and title.strip())

    def failed(self, failure: Failure) -> None:
        """Record why a request failed. This is the errback of every request."""
        error = failure.value
        request = failure.request  # type: ignore[attr-defined]
        if isinstance(error, HttpError):
            self.failures[request.url] = f"HTTP {error.response.status}"
        elif isinstance(error, IgnoreRequest):
            self.failures[request.url] = str(error).lower() or "ignored"
        else:
            name = type(error).__name__
            self.failures[request.url] = PLAIN_WORDS.get(name, f"{name}: {error}".splitlines()[0])
