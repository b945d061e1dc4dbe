"""The downloader middlewares of the example project."""

from __future__ import annotations

from asyncio import Lock
from collections import defaultdict
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware


class PatientRobotsTxtMiddleware(RobotsTxtMiddleware):
    """Scrapy's middleware, but requests to a new host are processed one at a time until its robots.txt is there.

    In Scrapy 2.14 to 2.19, if several requests wait for the same robots.txt, only the first two are checked.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    async def process_request(self, request: Request) -> None:  # type: ignore[override]
        """Raise IgnoreRequest for a request that the host's robots.txt forbids."""
        if request.meta.get("dont_obey_robotstxt"):  # This includes the request for the robots.txt itself.
            return
        async with self._locks[urlsplit(request.url).netloc]:
            await super().process_request(request)
