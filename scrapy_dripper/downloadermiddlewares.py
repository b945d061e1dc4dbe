"""The downloader middlewares: hold responses back while the engine is busy, and download pages that need a browser
again."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import BaseSettings

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.crawl import BROWSER, Dripper
from scrapy_dripper.crawl.stats import JAVASCRIPT, is_shell


def has_browser(settings: BaseSettings) -> bool:
    """Return True if scrapy-playwright is the download handler for http or https."""
    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
    return any(BROWSER in f"{handlers[scheme]}".lower() for scheme in ("http", "https") if scheme in handlers)


class DripperBackpressureMiddleware:
    """Hold responses back while enough pages wait. Through ``CONCURRENT_REQUESTS``, this also pauses downloads.

    Enough is one batch for each worker, and one more batch. Without this limit, a crawl that is faster than its workers
    would have as many responses in callbacks as fit into 8 MB, which are hundreds if pages are small. Scrapy creates
    ``CONCURRENT_ITEMS`` tasks for each, and Python's garbage collector scans all these tasks repeatedly. Raise
    :exc:`~scrapy.exceptions.NotConfigured` if ``DRIPPER_ENABLED`` is False, or ``CONCURRENT_REQUESTS`` is 0.
    """

    def __init__(self, crawler: Crawler) -> None:
        if not Config.from_settings(crawler.settings).enabled:
            raise NotConfigured("DRIPPER_ENABLED is False")
        if not crawler.settings.getint("CONCURRENT_REQUESTS"):
            # Downloads would continue, and responses held back do not count against SCRAPER_SLOT_MAX_ACTIVE_SIZE.
            raise NotConfigured("CONCURRENT_REQUESTS is 0, so responses that are held back would not pause downloads")
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DripperBackpressureMiddleware:
        """Return the middleware of this crawl. Raise :exc:`~scrapy_dripper.config.ConfigError` for a wrong setting."""
        return cls(crawler)

    async def process_response(self, request: Request, response: Response) -> Response:
        """Return the response when there is room for it."""
        dripper = Dripper.of(self._crawler)
        if dripper is not None and request.callback is not NO_CALLBACK:  # robots.txt and media do not go to the engine
            try:
                await dripper.wait_for_capacity(response, request)
            except Exception:
                dripper.stats.bug("the backpressure middleware")
        return response


class DripperShellMiddleware:
    """Download a page again in a browser if it is a shell, which is empty until a script fills it.

    This applies to requests with ``DRIPPER_RETRY_SHELLS``. Their responses wait here for their extraction, and count
    against ``CONCURRENT_REQUESTS`` in the meantime. The item later gets the same extraction. A callback never gets the
    shell, and a page is downloaded again at most once. Scrapy's HTTP cache is bypassed, because it does not distinguish
    the two requests.
    """

    def __init__(self, crawler: Crawler) -> None:
        config = Config.from_settings(crawler.settings)
        if not config.enabled:
            raise NotConfigured("DRIPPER_ENABLED is False")
        if not has_browser(crawler.settings):
            raise ConfigError(
                "DRIPPER_RETRY_SHELLS needs the download handler of scrapy-playwright in DOWNLOAD_HANDLERS (got "
                "none): pip install 'scrapy-dripper[playwright]', and set it for http and https: "
                f"{JAVASCRIPT}"
            )
        self._dripper = Dripper.from_crawler(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DripperShellMiddleware:
        """Return the middleware of this crawl. Raise :exc:`~scrapy_dripper.config.ConfigError` for a wrong setting."""
        return cls(crawler)

    async def process_response(self, request: Request, response: Response) -> Response | Request:
        """Return the response, or the request for a browser if the response is a shell without its article."""
        if request.meta.get(BROWSER) or request.callback is NO_CALLBACK:
            return response
        try:
            config = self._dripper.config_for(response, request)
            if not (200 <= response.status < 300 and config.enabled and config.retry_shells):
                return response
            extraction = await self._dripper.extract(response, request, first_look=True)
        except Exception:
            self._dripper.stats.bug("the retry of a shell")
            return response
        if extraction is None or not is_shell(extraction):
            return response
        meta = {**request.meta, BROWSER: True, "dont_cache": True}
        return request.replace(meta=meta, dont_filter=True)
