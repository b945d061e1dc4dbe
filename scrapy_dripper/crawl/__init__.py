"""The extraction service of a crawl, shared by the middlewares, the pipeline, the provider and callbacks.

The other modules of this room have its batches, its items, the sites that it remembers, its stats and its report.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response
from scrapy.utils.asyncio import is_asyncio_available
from w3lib.encoding import http_content_type_encoding

from scrapy_dripper.characters import looks_binary
from scrapy_dripper.checks import short
from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.crawl.batcher import Batcher, Count
from scrapy_dripper.crawl.report import Report
from scrapy_dripper.crawl.stats import CrawlStats
from scrapy_dripper.data import Document, Extraction

if TYPE_CHECKING:
    from scrapy_dripper.crawl.sites import CrawlSites

META_KEY = "dripper"
BROWSER = "playwright"
"""The key of a request's meta with which scrapy-playwright downloads it in a browser."""


class Dripper:
    """Extract the main content of the responses of one crawl::

        extraction = await Dripper.from_crawler(crawler).extract(response)

    There is one instance per crawl. The middlewares, the pipeline and callbacks share it, so each response is extracted
    only once.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.config = Config.from_settings(crawler.settings)
        self._off = replace(self.config, enabled=False)
        self.stats = CrawlStats(crawler, Report(self.config))
        self._configs: WeakKeyDictionary[Response, Config] = WeakKeyDictionary()
        self._futures: WeakKeyDictionary[Response, asyncio.Future[Extraction] | None] = WeakKeyDictionary()
        self._described: WeakSet[Response] = WeakSet()
        """Responses that are extracted with metadata, whatever the options say."""
        self._batcher: Batcher | None = None
        self._sites: CrawlSites | None = None
        if self.config.enabled and self.config.sites != "off":
            from scrapy_dripper.crawl.sites import CrawlSites  # not needed by other crawls

            self._sites = CrawlSites(self.config, crawler.settings, self.stats)
        if not self.config.enabled:
            return
        if not is_asyncio_available():
            raise ConfigError(
                "TWISTED_REACTOR must be 'twisted.internet.asyncioreactor.AsyncioSelectorReactor', Scrapy's default, "
                f"to use scrapy-dripper (got {crawler.settings['TWISTED_REACTOR']!r})"
            )
        self._batcher = Batcher(self.config, self.stats)
        crawler.signals.connect(self._spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Dripper:
        """Return the instance of this crawl. The first call loads the engine.

        Raise :exc:`~scrapy_dripper.config.ConfigError` for an invalid setting and
        :exc:`~scrapy_dripper.engines.base.ModelError` if the engine cannot be loaded.
        """
        dripper = _drippers.get(crawler)
        if dripper is None:
            dripper = _drippers[crawler] = cls(crawler)
        return dripper

    @staticmethod
    def of(crawler: Crawler) -> Dripper | None:
        """Return the instance of this crawl if :meth:`from_crawler` has created it, without loading anything."""
        return _drippers.get(crawler)

    async def extract(
        self,
        response: Response,
        request: Request | None = None,
        *,
        metadata: bool = False,
        first_look: bool = False,
    ) -> Extraction | None:
        """Return the main content of a response, or None if it is not HTML or extraction is off.

        No page makes this method raise. ``request`` is only needed in downloader middlewares, where Scrapy has not set
        ``response.request`` yet. With ``metadata``, the extraction has the page's metadata and
        its content list, whatever the options say. With ``first_look``, the caller downloads a shell again.
        """
        return await _result(self.start(response, request, metadata=metadata, first_look=first_look))

    def start(
        self,
        response: Response,
        request: Request | None = None,
        *,
        metadata: bool = False,
        first_look: bool = False,
    ) -> asyncio.Future[Extraction] | None:
        """Start extracting a response, without waiting. A later :meth:`extract` returns the same result.

        If ``metadata`` is asked for only after a start without it, the response is extracted again.
        """
        config = self.config_for(response, request)
        if metadata and not config.reads_metadata:
            config = _with_metadata(config)
            if response not in self._described:
                self._described.add(response)
                self._futures.pop(response, None)
        if response not in self._futures:
            takes = self._takes(response.body, config, isinstance(response, HtmlResponse))
            request = request or response.request
            rendered = request is not None and bool(request.meta.get(BROWSER))
            count = self.stats.first_look if first_look else partial(self.stats.page, rendered=rendered)
            self._futures[response] = self._extract(self.document(response, config), count) if takes else None
        return self._futures[response]

    async def extract_document(self, document: Document, *, metadata: bool = False) -> Extraction | None:
        """Return the main content of a document that has no response, or None if it is not HTML.

        ``metadata`` is that of :meth:`extract`.
        """
        if self._batcher is None or not self._takes(document.html, self.config):
            return None
        config = document.config or self.config
        if metadata and not config.reads_metadata:
            document = replace(document, config=_with_metadata(config))
        return await _result(self._extract(document, self.stats.page))

    async def wait_for_capacity(self, response: Response, request: Request) -> None:
        """Apply backpressure: wait while the engine has too many pages queued.

        Responses that will not be extracted, or have been already, do not wait.
        """
        if self._batcher is None:
            return
        if response in self._futures:
            future = self._futures[response]
            is_to_come = future is not None and not future.done()
        else:
            is_to_come = isinstance(response, HtmlResponse) and self.config_for(response, request).enabled
        if is_to_come:
            await self._batcher.wait_for_capacity()

    def config_for(self, response: Response, request: Request | None = None) -> Config:
        """Return the options for one response: those of the crawl, overridden by its ``meta["dripper"]``.

        An invalid key or value is ignored with a warning; the others still apply.
        """
        if response in self._configs:
            return self._configs[response]
        request = request or response.request
        values = request.meta.get(META_KEY) if request is not None else None
        if values is None or values is True:
            return self.config
        if values is False:
            return self._off
        config = self._configs[response] = self._overridden(values, response.url)
        return config

    def _overridden(self, values: Any, url: str) -> Config:
        try:
            if isinstance(values, Mapping):
                config, wrong, problems = self.config.overridden(values)
            else:
                problems = [f'meta["dripper"] must be True, False or a dict (got {short(values)})']
                config, wrong = self.config, 1
        except Exception as error:  # any access to a custom object can raise, even to its class
            config, wrong, problems = self.config, 1, [f'meta["dripper"] cannot be read ({type(error).__name__})']
        if wrong:
            self.stats.meta_errors(url, problems, wrong)
        return config

    def _takes(self, html: str | bytes, config: Config, is_html: bool = True) -> bool:
        """Return True if a page can be extracted; count it as skipped otherwise."""
        if self._batcher is None or not config.enabled:
            reason = "disabled"
        elif not html or html.isspace():
            reason = "empty_body"
        elif not is_html or _is_binary(html):
            reason = "not_html"
        else:
            return True
        self.stats.count(f"skipped/{reason}")
        return False

    def document(self, response: Response, config: Config) -> Document:
        """Return a response as the document that is extracted."""
        content_type = (response.headers.get("Content-Type") or b"").decode("latin-1")
        # A response may carry an explicit encoding. Decoding can be slow, so the worker does it.
        charset = getattr(response, "_encoding", None) or http_content_type_encoding(content_type)
        return Document(response.body, response.url, charset, None if config is self.config else config)

    def _extract(self, document: Document, count: Count) -> asyncio.Future[Extraction]:
        assert self._batcher is not None
        if self._sites is None:
            return self._batcher.submit(document, count)
        future = self._batcher.submit(self._sites.hosts.site_document(document), count)
        future.add_done_callback(self._sites.learn)
        return future

    async def _spider_closed(self, spider: Spider) -> None:
        assert self._batcher is not None  # otherwise nothing waits for the signal
        self._batcher.stop()
        if self._sites is not None:
            self._sites.close()
        await self.stats.close(spider)


_drippers: WeakKeyDictionary[Crawler, Dripper] = WeakKeyDictionary()


def _with_metadata(config: Config) -> Config:
    """Return options with metadata and content list. No item gets such fields for it."""
    return replace(config, metadata_field="metadata", content_field=config.content_field or "content")


def _is_binary(html: str | bytes) -> bool:
    """Return True if a document starts like a PDF, an image or another binary file."""
    prefix = html[:1_024]
    if isinstance(prefix, bytes) and (b"<\0" in prefix or b"\0<" in prefix):
        return False  # UTF-16, whose bytes look like control characters before decoding
    return looks_binary(prefix) is not None


async def _result(future: asyncio.Future[Extraction] | None) -> Extraction | None:
    """Wait for a shared future. If the waiting task is cancelled, the future is not."""
    if future is None:
        return None
    if not future.done():
        await asyncio.wait([future])
    return None if future.cancelled() else future.result()
