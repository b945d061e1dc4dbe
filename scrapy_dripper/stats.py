"""What a crawl counts, and what it warns about: once per kind, however often it happens."""

from __future__ import annotations

import logging
from collections import Counter
from weakref import ref

from scrapy.crawler import Crawler

from scrapy_dripper.extraction import Extraction

logger = logging.getLogger(__name__)

PREFIX = "dripper/"
CASCADE = "tagger"
"""The engine that is asked first in a cascade."""


class CrawlStats:
    """Writes the stats of a crawl, ``dripper/...``. Belongs to the event loop."""

    def __init__(self, crawler: Crawler, cascade: float | None = None) -> None:
        """``cascade`` is the tagger's confidence from which on pages do not go to the engine, if there is one."""
        self._crawler = ref(crawler)  # What the crawler's components share may not keep the crawler alive.
        self._warned: set[str] = set()
        self._batches = self._batched = 0
        self._decided: Counter[str] = Counter()
        self._cascade = cascade

    def waiting(self, pages: int) -> None:
        """Note that so many pages wait or are being worked on."""
        if (crawler := self._crawler()) is not None:
            crawler.stats.max_value(f"{PREFIX}queue/max", pages)

    def batch(self, pages: int) -> None:
        """Count a batch of so many pages."""
        self._batches += 1
        self._batched += pages
        if (crawler := self._crawler()) is not None:
            crawler.stats.inc_value(f"{PREFIX}batches")
            crawler.stats.set_value(f"{PREFIX}batch_size/mean", round(self._batched / self._batches, 2))

    def page(self, extraction: Extraction) -> None:
        """Count a page by who decided about it, and by why if that was a fallback."""
        self._count("pages")
        self._count(f"pages/{extraction.source}")
        if extraction.fallback_reason is not None:
            self._count(f"fallback/{extraction.fallback_reason}")
        if extraction.truncated:
            self._count("truncated")
        crawler = self._crawler()
        if crawler is None:
            return
        for name, value in extraction.work.items():
            crawler.stats.inc_value(f"{PREFIX}{extraction.source}/{name}", value)
        if self._cascade is not None and extraction.labels:
            self._decided[extraction.source] += 1
            share = self._decided[CASCADE] / self._decided.total()
            crawler.stats.set_value(f"{PREFIX}cascade/threshold", self._cascade)
            crawler.stats.set_value(f"{PREFIX}cascade/share", round(share, 4))

    def skipped(self, reason: str) -> None:
        """Count a page that was not extracted at all."""
        self._count(f"skipped/{reason}")

    def meta_error(self, message: str) -> None:
        """Count a part of a request's ``meta["dripper"]`` that was left out."""
        self._count("meta_errors")
        self._warn("meta", '%s; this part of meta["dripper"] is ignored', message)

    def field_error(self, cls: str, field: str, problem: str) -> None:
        """Count a field that could not be filled."""
        self._count(f"field_errors/{cls}.{field}")
        self._warn(
            f"{cls}.{field}",
            "%s.%s cannot be filled: %s. Items of this class are passed on without it.",
            cls,
            field,
            problem,
        )

    def bug(self, where: str) -> None:
        """Count an exception of our own, being handled now, that must not cost the crawl anything."""
        self._count("bugs")
        if where not in self._warned:
            self._warned.add(where)
            logger.error("scrapy-dripper failed in %s; items are passed on as they are", where, exc_info=True)

    def stopping(self) -> bool:
        """Return True if the crawl takes no new requests any more."""
        crawler = self._crawler()
        return crawler is None or not crawler.crawling

    def _count(self, name: str) -> None:
        if (crawler := self._crawler()) is not None:
            crawler.stats.inc_value(PREFIX + name)

    def _warn(self, kind: str, message: str, *args: object) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            logger.warning(message, *args)
