"""Crawl pages of one size, and print a report in JSON: ``python -m tests.load.big_crawl JSON``.

The engine answers its first batch when so many pages as the job says have come to the callback.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import AsyncCrawlerProcess

import scrapy_dripper.extractor
from tests.crawl.crawling import EXTENSIONS
from tests.load.big_engine import PATIENCE, Engine

JOB = json.loads(sys.argv[1])

arrived = threading.Event()
come: list[str] = []
batches: list[int] = []
items: list[str] = []


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        data = "x" * JOB["bytes"]  # like pages that are large because of their scripts
        html = f"<html><body><article><p>Page {self.path}.</p></article><script>'{data}'</script></body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(html)))
        self.end_headers()
        self.wfile.write(html.encode())

    def log_message(self, *_: object) -> None:
        pass


class PageSpider(scrapy.Spider):
    name = "pages"

    async def start(self) -> AsyncIterator[Any]:
        for number in range(JOB["pages"]):
            yield scrapy.Request(f"http://127.0.0.1:{server.server_port}/{number}")

    def parse(self, response: Any) -> Iterator[dict[str, Any]]:
        come.append(response.url)
        if len(come) == JOB["hold"]:
            arrived.set()
            (folder / "arrived").touch()
        yield {"path": response.url.rpartition("/")[2]}


def scraped(item: dict[str, Any]) -> None:
    """Record items that have the text of their page."""
    if item["markdown"].strip() == f"Page /{item['path']}.":
        items.append(item["path"])


if __name__ == "__main__":
    scrapy_dripper.extractor.load_engine = lambda config: Engine(lambda: arrived.wait(PATIENCE), batches.append)
    temporary = tempfile.TemporaryDirectory()
    folder = Path(temporary.name)
    os.environ["BIG_CRAWL"] = temporary.name
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    process = AsyncCrawlerProcess(
        {
            "ADDONS": {"scrapy_dripper.Addon": 500},
            "CONCURRENT_REQUESTS": 1,  # only the page that exceeds the limit is accepted beyond it
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": False,
            "RETRY_ENABLED": False,
            "EXTENSIONS_BASE": EXTENSIONS,
            "LOG_LEVEL": "ERROR",
            "DRIPPER_TIMEOUT": 2 * PATIENCE,
            "DRIPPER_PROCESSES": 0,
            **JOB["settings"],
        }
    )
    crawler = process.create_crawler(PageSpider)
    crawler.signals.connect(scraped, scrapy.signals.item_scraped)
    process.crawl(crawler)
    process.start()
    assert crawler.stats is not None
    if (folder / "batches").exists():
        batches = [int(pages) for pages in (folder / "batches").read_text(encoding="ascii").split()]
    temporary.cleanup()
    print(json.dumps({"items": items, "batches": batches, "stats": crawler.stats.get_stats()}, default=str))
