"""The usual way: yield items, and the add-on fills in their main content."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from scrapy import Request
from scrapy.http import Response

from example.base import OWN_SITE, PageSpider
from example.items import Page


class SiteSpider(PageSpider):
    """Crawls the example's own website, following its links. It has no code for scrapy-dripper."""

    name = "site"
    allowed_domains = ("127.0.0.1",)
    custom_settings = OWN_SITE

    async def start(self) -> AsyncIterator[Request]:
        """Begin at the home page."""
        yield Request(self.home() + "/", errback=self.failed)

    def parse(self, response: Response) -> Iterator[Page | Request]:
        """Yield the page and requests for its links."""
        yield self.page(response)
        yield from self.follow_links(response)
