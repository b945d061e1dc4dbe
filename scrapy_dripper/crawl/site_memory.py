"""The site memory of a crawl: asked before a page is extracted, told afterwards, and kept in the crawl's ``JOBDIR``."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

from scrapy.settings import BaseSettings
from scrapy.utils.job import job_dir

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.stats import CrawlStats
from scrapy_dripper.extraction import Document, Extraction
from scrapy_dripper.sites import MemoryFileError, SiteMemory, read, write

logger = logging.getLogger(__name__)

FILE = "dripper-sites"
"""Name of the file in ``JOBDIR``."""


class CrawlMemory:
    """What the pages of a crawl have shown of their hosts. Call all methods on the event loop.

    It is here, not in the worker processes, because the pages of a host go to any of them. What is known of a host goes
    out with a document, and a digest of the page comes back: a few kilobytes each.
    """

    def __init__(self, settings: BaseSettings, stats: CrawlStats) -> None:
        folder = job_dir(settings)
        self._path = None if folder is None else Path(folder) / FILE
        self._stats = stats
        self._memory = SiteMemory()
        if self._path is not None:
            try:
                self._memory = read(self._path)
            except MemoryFileError as error:
                logger.warning("%(error)s; the site memory starts empty", {"error": error})

    @classmethod
    def of(cls, config: Config, settings: BaseSettings, stats: CrawlStats) -> CrawlMemory | None:
        """Return the memory of a crawl, or None if it is off."""
        return cls(settings, stats) if config.enabled and config.site_memory == "on" else None

    def informed(self, document: Document) -> Document:
        """Return a document with what is known of its site."""
        return replace(document, known=self._memory.known(document.url))

    def learn(self, future: asyncio.Future[Extraction]) -> None:
        """Learn from a page that has been extracted."""
        if future.cancelled():
            return
        extraction = future.result()
        if extraction.digest:
            learnt = self._memory.learn(extraction.url, extraction.digest)
            self._stats.remembered(learnt=learnt, hosts=len(self._memory), blocks=extraction.repeated)

    def close(self) -> None:
        """Write the memory to ``JOBDIR``, if there is one."""
        if self._path is None:
            return
        try:
            write(self._memory, self._path)
        except OSError as error:
            logger.warning("The site memory cannot be kept in JOBDIR: %(error)s", {"error": error})
