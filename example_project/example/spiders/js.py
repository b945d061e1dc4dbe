"""Pages that JavaScript writes: scrapy-playwright renders them, and scrapy-dripper works as usual."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from scrapy import Request
from scrapy.http import Response
from scrapy.settings import BaseSettings

from example.base import OWN_SITE, PageSpider
from example.browser import find_chromium
from example.items import AppPage


class JsSpider(PageSpider):
    """Downloads one page twice: by plain HTTP, and rendered by a browser."""

    name = "js"
    custom_settings = OWN_SITE | {
        "DOWNLOAD_HANDLERS": {
            "http": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler",
            "https": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler",
        },
    }

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Set the browser to start."""
        super().update_settings(settings)
        # Root needs --no-sandbox, and a container with a small /dev/shm needs --disable-dev-shm-usage.
        options = {"executable_path": find_chromium(), "args": ["--no-sandbox", "--disable-dev-shm-usage"]}
        settings.set("PLAYWRIGHT_LAUNCH_OPTIONS", options, "spider")

    async def start(self) -> AsyncIterator[Request]:
        """Request the page both ways."""
        from scrapy_playwright.page import PageMethod

        url = self.home() + "/app/"
        rendered = {"playwright": True, "playwright_page_methods": [PageMethod("wait_for_selector", "article")]}
        yield Request(url, errback=self.failed, dont_filter=True)
        yield Request(url, errback=self.failed, dont_filter=True, meta=rendered)

    def parse(self, response: Response) -> Iterator[AppPage]:
        """Yield the page."""
        page = self.page(response)
        yield AppPage(page.url, page.title, rendered="playwright" in response.flags)
