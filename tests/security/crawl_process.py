"""Crawls the given addresses with the plugin and prints the result of each."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from twisted.python.failure import Failure

from tests.crawl.crawling import EXTENSIONS


class Pages(Spider):
    """Yields an item for each page."""

    name = "pages"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        """Request all addresses at once."""
        for url in self.urls:
            yield Request(url, self.parse, errback=self.failed)

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        """Yield an item to be filled."""
        yield {"url": response.url, "bytes": len(response.body), "markdown": None, "by": None}

    def failed(self, failure: Failure) -> dict[str, Any]:
        """Return an item for a request that failed."""
        return {"url": failure.request.url, "failed": failure.type.__name__}  # type: ignore[attr-defined]


class Print:
    """Prints items."""

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        """Print an item without most of its text."""
        print("ITEM " + json.dumps({**item, "markdown": (item.get("markdown") or "")[:100]}), flush=True)
        return item


def main(settings: dict[str, Any], urls: list[str]) -> None:
    """Run the crawl."""
    process = CrawlerProcess(
        {
            "ADDONS": {"scrapy_dripper.Addon": 500},
            "ITEM_PIPELINES": {Print: 900},
            "DRIPPER_META_FIELD": "by",
            "RETRY_ENABLED": False,
            "LOG_LEVEL": "ERROR",
            "EXTENSIONS_BASE": EXTENSIONS,
            **settings,
        }
    )
    process.crawl(Pages, urls=urls)
    process.start()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
