"""The early door: extraction begins when a response arrives, before its callback asks for it."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from scrapy_dripper.dripper import Dripper


class DripperDownloaderMiddleware:
    """Hand responses to the engine the moment they arrive, and let them go on at once.

    Whoever asks later for the same response gets that result. Worth it in crawls where nearly every page ends in an
    item; elsewhere it extracts pages that nobody asks for. Raise :exc:`~scrapy.exceptions.NotConfigured` if
    ``DRIPPER_ENABLED`` is False.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._dripper = Dripper.from_crawler(crawler)
        if not self._dripper.config.enabled:
            raise NotConfigured("DRIPPER_ENABLED is False")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DripperDownloaderMiddleware:
        """Return the middleware of this crawl. Raises what :meth:`Dripper.from_crawler` raises."""
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        """Return the response, its extraction begun if it is a page that a callback will get."""
        # Waiting here would hold a download slot; robots.txt and media come with NO_CALLBACK.
        if 200 <= response.status < 300 and request.callback is not NO_CALLBACK:
            try:
                self._dripper.start(response, request)
            except Exception:
                self._dripper.stats.bug("the downloader middleware")
        return response
