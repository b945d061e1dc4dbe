"""Real URLs: ``scrapy crawl urls -a urls="https://... https://..."``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request
from scrapy.http import Response

from example.base import PageSpider
from example.items import Page


class UrlsSpider(PageSpider):
    """Crawls the given URLs, and no others."""

    name = "urls"

    def __init__(self, urls: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = [url if "://" in url else f"https://{url}" for url in urls.split()]
        if not self.urls:
            raise ValueError(
                'urls must be addresses separated by white space: -a urls="https://example.org" (got none)'
            )

    async def start(self) -> AsyncIterator[Request]:
        """Request each URL."""
        for url in self.urls:
            yield Request(url, errback=self.failed)

    def parse(self, response: Response) -> Iterator[Page]:
        """Yield the page."""
        yield self.page(response)
