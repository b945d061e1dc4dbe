"""What a crawl counts, and what it warns about: once per kind, however often it happens."""

from __future__ import annotations

import logging
import re
from collections import Counter
from weakref import ref

from scrapy.crawler import Crawler

from scrapy_dripper.crawl.engine_loss import CASCADE, EngineLoss
from scrapy_dripper.extraction import Extraction

logger = logging.getLogger(__name__)
_is_short_name = re.compile(r"[a-z][a-z0-9_-]{0,31}").fullmatch

PREFIX = "dripper/"
MOST_TYPES = 40
"""Page types that are counted by their names; an engine of the user's could make up one for each page."""
OTHER_TYPE = "other"

STATS = {
    "pages": "pages extracted, by the model or a fallback; once per response, however many ask for it",
    "pages/{source}": "the same by who decided: `tagger`, `fallback:trafilatura`, ...",
    "fallback/{reason}": "pages without main content from the model, by reason",
    "page_type/{name}": "pages by type: `article`, `forum`, ...; types of an engine of your own count as `other` after "
    f"the first {MOST_TYPES}, or if their names are long or not in lower case",
    "quality/pages": "pages that have a quality",
    "quality/mean": "their mean quality; to combine several crawls, weight it by `dripper/quality/pages`",
    "skipped/{reason}": "responses that were not extracted at all, although an item or a caller asked for it",
    "truncated": "oversize pages of which only the first part was used",
    "cancelled": "pages that were not done when the crawl ended",
    "cascade/threshold": "the value of `DRIPPER_CASCADE`, if it is set",
    "cascade/share": "share of the labelled pages, 0 to 1, that kept the tagger's labels under it",
    "{source}/{name}": "what an engine counts of its own work, summed up over its pages",
    "batches": "batches that the model has answered",
    "batch_size/mean": "mean number of pages in a batch",
    "queue/max": "most pages that waited or were worked on at the same time",
    "held_back": "responses that had to wait until fewer pages were waiting",
    "workers/max": "most worker processes at the same time",
    "workers/memory": "most memory that one of them has held, in bytes; 0 where the system does not say",
    "workers/{reason}": "worker processes that were killed because they were stuck (`timeout`) or that died "
    "(`worker_error`)",
    "field_errors/{class}.{field}": "items that have no such field, or did not let it be set",
    "meta_errors": 'options in `meta["dripper"]` that were left out because they were wrong',
    "warc/records": "responses written to `DRIPPER_WARC`",
    "warc/errors": "responses that could not be written there",
    "bugs": "exceptions in the plugin itself that cost an item its content, never the item; please report them",
}
"""What each stat counts. The reference of stats is generated from it."""


class CrawlStats:
    """Writes the stats of a crawl, ``dripper/...``. Belongs to the event loop."""

    def __init__(self, crawler: Crawler, cascade: float | None = None, *, stop_on_loss: bool = False) -> None:
        """``cascade`` is the tagger's confidence from which on pages do not go to the engine, if there is one.

        With ``stop_on_loss``, the crawl ends when the engine labels no page any more.
        """
        self._loss = EngineLoss(crawler, stop=stop_on_loss)
        self._crawler = ref(crawler)  # What the crawler's components share may not keep the crawler alive.
        self._warned: set[str] = set()
        self._batches = self._batched = 0
        self._decided: Counter[str] = Counter()
        self._types: set[str] = set()
        self._judged = 0
        self._quality = 0.0
        self._cascade = cascade

    def waiting(self, pages: int) -> None:
        """Note that so many pages wait or are being worked on."""
        self._write("max_value", "queue/max", pages)

    def held_back(self) -> None:
        """Count a response that waits for room among the pages that wait."""
        self._count("held_back")

    def batch(self, pages: int) -> None:
        """Count a batch of so many pages."""
        self._batches += 1
        self._batched += pages
        self._count("batches")
        self._write("set_value", "batch_size/mean", round(self._batched / self._batches, 2))

    def workers(self, processes: int, memory: int) -> None:
        """Note how many worker processes there are, and the most bytes that one of them has held."""
        self._write("max_value", "workers/max", processes)
        self._write("max_value", "workers/memory", memory)

    def killed(self, reason: str) -> None:
        """Count a worker process that died, or was killed because it was stuck."""
        self._count(f"workers/{reason}")

    def page(self, extraction: Extraction) -> None:
        """Count a page by who decided about it, and by why if that was a fallback."""
        self._loss.page(extraction)
        self._count("pages")
        self._count(f"pages/{extraction.source}")
        if extraction.fallback_reason is not None:
            self._count(f"fallback/{extraction.fallback_reason}")
        if extraction.truncated:
            self._count("truncated")
        if extraction.page_type is not None:
            self._count(f"page_type/{self._type_name(extraction.page_type)}")
        if extraction.quality is not None:
            self._judged += 1
            self._quality += extraction.quality
            self._count("quality/pages")
            self._write("set_value", "quality/mean", round(self._quality / self._judged, 4))
        for name, value in extraction.work.items():
            self._count(f"{extraction.source}/{name}", value)
        if self._cascade is not None and extraction.labels:
            self._decided[extraction.source] += 1
            share = self._decided[CASCADE] / self._decided.total()
            self._write("set_value", "cascade/threshold", self._cascade)
            self._write("set_value", "cascade/share", round(share, 4))

    def cancelled(self, pages: int) -> None:
        """Count pages that were not done before the crawl ended."""
        self._count("cancelled", pages)

    def skipped(self, reason: str) -> None:
        """Count a page that was not extracted at all."""
        self._count(f"skipped/{reason}")

    def meta_error(self, message: str, parts: int = 1) -> None:
        """Count parts of a request's ``meta["dripper"]`` that were left out."""
        self._count("meta_errors", parts)
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

    def closed(self) -> None:
        """Say what can only be said at the end of a crawl."""
        self._loss.closed()

    def stopping(self) -> bool:
        """Return True if the crawl takes no new requests any more."""
        crawler = self._crawler()
        return crawler is None or not crawler.crawling

    def _type_name(self, page_type: str) -> str:
        """Return the name under which a page type is counted: its own, if that is short, and of no more than enough."""
        if page_type in self._types:
            return page_type
        if len(self._types) >= MOST_TYPES or not _is_short_name(page_type):
            return OTHER_TYPE
        self._types.add(page_type)
        return page_type

    def _count(self, name: str, value: int = 1) -> None:
        self._write("inc_value", name, value)

    def _write(self, method: str, name: str, value: float) -> None:
        crawler = self._crawler()
        if crawler is None:
            return
        try:
            getattr(crawler.stats, method)(PREFIX + name, value)
        except Exception as error:  # A collector of the user's, with a server behind it; no page may wait for ever.
            self._warn("stats", "%s cannot be counted: %s: %s", PREFIX + name, type(error).__name__, error)

    def _warn(self, kind: str, message: str, *args: object) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            logger.warning(message, *args)
