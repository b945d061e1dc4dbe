"""A crawl of pages of one size in a process of its own: ``big_crawl.py JSON``; prints JSON.

The engine answers its first batch when so many pages as the job says have come to the callback.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import scrapy
from scrapy.crawler import AsyncCrawlerProcess

import scrapy_dripper.extractor
from scrapy_dripper.engines.base import Labels, Limits

JOB = json.loads(sys.argv[1])
PATIENCE = 60

arrived = threading.Semaphore(0)
batches: list[int] = []
items: list[str] = []


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        data = "x" * JOB["bytes"]  # as pages have it that are large because of their scripts
        html = f"<html><body><article><p>Page {self.path}.</p></article><script>'{data}'</script></body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(html)))
        self.end_headers()
        self.wfile.write(html.encode())

    def log_message(self, *_: object) -> None:
        pass


class Engine:
    """Takes everything for main."""

    name = "fake"
    profile = "native"
    limits = Limits()

    def label(self, pages: Sequence[Any]) -> list[Labels]:
        if not batches:
            for _ in range(JOB["hold"]):
                if not arrived.acquire(timeout=PATIENCE):
                    break
        batches.append(len(pages))
        sizes = [len(page.blocks) for page in pages]
        return [Labels(np.full(n, 0.9, dtype=np.float32), np.ones(n, dtype=bool)) for n in sizes]

    def close(self) -> None:
        pass


class PageSpider(scrapy.Spider):
    name = "pages"

    async def start(self) -> AsyncIterator[Any]:
        for number in range(JOB["pages"]):
            yield scrapy.Request(f"http://127.0.0.1:{server.server_port}/{number}")

    def parse(self, response: Any) -> Iterator[dict[str, Any]]:
        arrived.release()
        yield {"path": response.url.rpartition("/")[2]}


def scraped(item: dict[str, Any]) -> None:
    """Note items that have what is on their page."""
    if item["markdown"].strip() == f"Page /{item['path']}.":
        items.append(item["path"])


if __name__ == "__main__":
    scrapy_dripper.extractor.load_engine = lambda config: Engine()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    process = AsyncCrawlerProcess(
        {
            "ADDONS": {"scrapy_dripper.Addon": 500},
            "CONCURRENT_REQUESTS": 1,  # nothing is let in beyond the limit but the page that exceeds it
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": False,
            "RETRY_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_LEVEL": "ERROR",
            "DRIPPER_TIMEOUT": 2 * PATIENCE,
            **JOB["settings"],
        }
    )
    crawler = process.create_crawler(PageSpider)
    crawler.signals.connect(scraped, scrapy.signals.item_scraped)
    process.crawl(crawler)
    process.start()
    assert crawler.stats is not None
    print(json.dumps({"items": items, "batches": batches, "stats": crawler.stats.get_stats()}, default=str))
