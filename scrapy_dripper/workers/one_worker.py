"""The worker of an :class:`Extractor`, for pages that might block or exhaust the process of a program."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy_dripper.checks import FALLBACKS, is_method
from scrapy_dripper.config import Config
from scrapy_dripper.data import SUSPECT, Document, Extraction, FallbackReason

if TYPE_CHECKING:
    from scrapy_dripper.workers.pool import Pool

logger = logging.getLogger(__name__)

MOST_CHARS = 400_000
"""Number of characters or bytes up to which a page is read here. The attributes of a longer one may take minutes."""
MOST_TAGS = 40_000
"""The same for the number of ``<``, which bounds the elements. The maximum among 1,310 real pages is 22,000."""
MOST_TAGS_FOR_FALLBACK = 2_000
"""The same for a fallback. Trafilatura searches the tree repeatedly, in time proportional to elements times depth."""


class OneWorker:
    """A pool of one worker, which is started when it is needed and replaced when it ends."""

    def __init__(self, config: Config, *, local_engine: bool = False) -> None:
        """With ``local_engine``, the engine is an object of this process, so that only fallbacks can run in the worker.

        A custom fallback runs in this process, because it may be a function that no other process can import.
        """
        self._config, self._local_engine, self._warned = config, local_engine, False
        self.pool: Pool | None = None

    def extract(self, document: Document, config: Config) -> Extraction | None:
        """Return the extraction of a page that the worker is to read, or None for other pages and without a worker.

        The worker reads large pages, and pages that a user's selectors apply to. If the page needs a custom fallback,
        the extraction has the reason, and its source is ``fallback:none``.
        """
        if self._config.processes == 0:
            return None
        ruled = bool(config.rules and config.rules.of(document.url))
        if self._local_engine or not (ruled or is_large(document.html, MOST_TAGS)):
            return None
        return self._extracted(document, _without_custom_fallback(config))

    def fall_back(
        self, document: Document, config: Config, reason: FallbackReason, error: str | None
    ) -> Extraction | None:
        """Return the extraction of a fallback that is to run in the worker, or None for others."""
        if self._config.processes == 0 or not is_method(config.fallback):
            return None
        if reason not in SUSPECT and not is_large(document.html, MOST_TAGS_FOR_FALLBACK):
            return None
        return self._extracted(document, config, reason, error)

    def close(self) -> None:
        """End the worker."""
        if self.pool is not None:
            self.pool.close()

    def _extracted(
        self, document: Document, config: Config, reason: FallbackReason | None = None, error: str | None = None
    ) -> Extraction | None:
        from scrapy_dripper.workers.pool import Pool  # most programs have no such pages
        from scrapy_dripper.workers.process import StartError
        from scrapy_dripper.workers.wire import Task

        self.pool = self.pool or Pool(_without_custom_fallback(self._config), 1)
        try:
            return self.pool.extract_alone(Task(document, config, reason, error))
        except StartError as problem:
            logger.log(
                logging.DEBUG if self._warned else logging.WARNING,
                "The worker process for large pages cannot be started (%(error)s); they are extracted in this process, "
                "which a bad page can block. Set DRIPPER_PROCESSES = 0 to silence this warning.",
                {"error": problem},
            )
            self._warned = True
            return None


def _without_custom_fallback(config: Config) -> Config:
    return config if config.fallback in FALLBACKS else replace(config, fallback="none")


def is_large(html: str | bytes, most_tags: int) -> bool:
    """Return True for a document that is long or has more than a number of ``<``."""
    tags = html.count("<") if isinstance(html, str) else html.count(b"<")
    return len(html) > MOST_CHARS or tags > most_tags
