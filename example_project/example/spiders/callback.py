"""The door in the callback: when the content decides what the spider does next."""

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
    """Keeps the long reads only, and has their main content before it decides."""

    name = "callback"
    custom_settings = OWN_SITE

    async def parse(self, response: Response) -> AsyncIterator[Page | Request]:  # type: ignore[override]
        """Yield the page if the model found a long text in it; follow its links in any case."""
        for request in self.follow_links(response):
            yield request
        extraction = await Dripper.from_crawler(self.crawler).extract(response)
        if extraction is not None and extraction.fallback_reason is None and len(extraction.text or "") >= LONG_READ:
            # What is set here stays; the fields left empty are filled as always, without extracting again.
            yield Page(response.url, extraction.title)
