"""A page on its way through a worker process, in a process that can be suspended.

``python -m tests.load.standstill_crawl SECONDS`` prints who has extracted the page, and why.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.batcher import Batcher
from scrapy_dripper.data import Document
from tests.load.observer import Observer


async def crawl(timeout: float) -> None:
    """Extract a page with a timeout in seconds for each step."""
    config = Config(
        engine="tests.load.slow_engine.Engine", processes=1, timeout=timeout, batch_wait=0.01, fallback="none"
    )
    observer: Any = Observer()
    batcher = Batcher(config, observer)
    html = "<html><body><p>A page like any other.</p></body></html>"
    found = await batcher.submit(Document(html, "https://a.example/"))
    print(found.source, found.error)
    batcher.stop()


if __name__ == "__main__":
    asyncio.run(crawl(float(sys.argv[1])))
