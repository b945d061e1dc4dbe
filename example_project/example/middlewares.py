"""The downloader middlewares of the example project."""

from __future__ import annotations

from asyncio import Lock
from collections import defaultdict
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware


class PatientRobotsTxtMiddleware(RobotsTxtMiddleware):
    """Scrapy's own, with requests to a new host in single file until its robots.txt is there.

    In Scrapy 2.14 to 2.19, of the requests that wait together for the same robots.txt, all after the second are let
    through unchecked.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    async def process_request(self, request: Request) -> None:  # type: ignore[override]
        """Raise IgnoreRequest for a request that the host's robots.txt forbids."""
        if request.meta.get("dont_obey_robotstxt"):  # The request for the robots.txt itself is one of these.
            return
        async with self._locks[urlsplit(request.url).netloc]:
            await super().process_request(request)
