"""What a crawl does about an engine that labels no page any more: it says so, or stops."""

from __future__ import annotations

import asyncio
import logging
from weakref import ref

from scrapy.crawler import Crawler

from scrapy_dripper.extraction import Extraction, FallbackReason

logger = logging.getLogger(__name__)

CASCADE = "tagger"
"""Who labels pages that do not go to the engine; it is not lost."""
TEMPLATE = "template"
"""The same, with ``DRIPPER_TEMPLATES``."""
CLOSE_REASON = "dripper_engine_lost"
"""Why the spider was closed, in Scrapy's stat ``finish_reason``."""


class EngineLoss:
    """Looks at the extractions of a crawl. Belongs to the event loop."""

    def __init__(self, crawler: Crawler, *, stop: bool) -> None:
        """With ``stop``, the crawl ends when the engine is lost."""
        self._crawler, self._stop = ref(crawler), stop
        self._lost = self._stopping = False
        self._pages = 0
        self._closing: asyncio.Task[None] | None = None

    def page(self, extraction: Extraction) -> None:
        """Take note of what became of a page."""
        if extraction.fallback_reason is FallbackReason.ENGINE_LOST:
            self._pages += 1
            if not self._lost:
                self._begin(extraction.error or "")
        elif self._lost and extraction.labels and extraction.source not in (CASCADE, TEMPLATE):
            self._lost = False
            logger.warning("The engine works again; %(pages)d pages fell back without it.", {"pages": self._pages})

    def closed(self) -> None:
        """Say what it has cost, if the engine has not come back."""
        if self._lost:
            logger.error(
                "The engine was lost until the end of the crawl: %(pages)d pages fell back without it.",
                {"pages": self._pages},
            )

    def _begin(self, error: str) -> None:
        self._lost = True
        if not self._stop:
            logger.error(
                "The engine is lost: %(error)s. Pages fall back until it works again, which is tried every half "
                'minute; DRIPPER_ON_ENGINE_LOSS = "stop" ends the crawl instead.',
                {"error": error},
            )
            return
        logger.error("The engine is lost, and so the crawl stops: %(error)s", {"error": error})
        crawler = self._crawler()
        if crawler is not None and crawler.engine is not None and not self._stopping:
            self._stopping = True
            closing = crawler.engine.close_spider_async(reason=CLOSE_REASON)
            self._closing = asyncio.get_running_loop().create_task(closing)
