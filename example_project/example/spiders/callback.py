"""Extraction in a callback, for spiders that use the content to decide what to do next."""

from __future__ import annotations

from collections.abc import AsyncIterator

from scrapy import Request
from scrapy.http import Response

from example.base import OWN_SITE
from example.items import Page
from example.spiders.site import SiteSpider
from scrapy_dripper import Dripper

LONG_READ = 1500


class CallbackSpider(SiteSpider):
    """Yields only pages with long texts, which it knows from their main content."""

    name = "callback"
    custom_settings = OWN_SITE

    async def parse(self, response: Response) -> AsyncIterator[Page | Request]:  # type: ignore[override]
        """Yield the page if the model found a long text in it, and follow its links in any case."""
        for request in self.follow_links(response):
            yield request
        extraction = await Dripper.from_crawler(self.crawler).extract(response)
        if extraction is not None and extraction.fallback_reason is None and len(extraction.text or "") >= LONG_READ:
            # Values set here are kept. Empty fields are filled as usual, without another extraction.
            yield Page(response.url, extraction.title)
