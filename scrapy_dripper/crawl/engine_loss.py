"""Handle the loss of the engine: report it, or stop the crawl."""

from __future__ import annotations

import asyncio
import logging
from weakref import ref

from scrapy.crawler import Crawler

from scrapy_dripper.extraction import Extraction, FallbackReason

logger = logging.getLogger(__name__)

CASCADE = "tagger"
"""The engine of the cascade that labels pages itself. It cannot be lost."""
TEMPLATE = "template"
"""The same, with ``DRIPPER_TEMPLATES``."""
CLOSE_REASON = "dripper_engine_lost"
"""Scrapy's stat ``finish_reason`` if the crawl was stopped because the engine was lost."""


class EngineLoss:
    """Watches the extractions of a crawl. Call all methods on the event loop."""

    def __init__(self, crawler: Crawler, *, stop: bool) -> None:
        """With ``stop``, the crawl ends when the engine is lost."""
        self._crawler, self._stop = ref(crawler), stop
        self._lost = self._stopping = False
        self._pages = 0
        self._closing: asyncio.Task[None] | None = None

    def page(self, extraction: Extraction) -> None:
        """Process the extraction of a page."""
        if extraction.fallback_reason is FallbackReason.ENGINE_LOST:
            self._pages += 1
            if not self._lost:
                self._begin(extraction.error or "")
        elif self._lost and extraction.labels and extraction.source not in (CASCADE, TEMPLATE):
            self._lost = False
            logger.warning("The engine works again; %(pages)d pages fell back without it.", {"pages": self._pages})

    def closed(self) -> None:
        """Log the number of affected pages if the engine has not recovered. Call it at the end of the crawl."""
        if self._lost:
            logger.error(
                "The engine was lost until the end of the crawl: %(pages)d pages fell back without it.",
                {"pages": self._pages},
            )

    def _begin(self, error: str) -> None:
        self._lost = True
        if not self._stop:
            logger.error(
                "The engine is lost: %(error)s. Pages fall back until it works again; it is retried every 30 seconds. "
                'DRIPPER_ON_ENGINE_LOSS = "stop" ends the crawl instead.',
                {"error": error},
            )
            return
        logger.error("The engine is lost, so the crawl stops: %(error)s", {"error": error})
        crawler = self._crawler()
        if crawler is not None and crawler.engine is not None and not self._stopping:
            self._stopping = True
            closing = crawler.engine.close_spider_async(reason=CLOSE_REASON)
            self._closing = asyncio.get_running_loop().create_task(closing)
