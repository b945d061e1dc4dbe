"""The site memory of a crawl. Each extraction uses and updates it, and the crawl's ``JOBDIR`` keeps it."""

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
    """The texts that the pages of a crawl's hosts repeat. Call all methods on the event loop.

    The memory is in the crawl's process and not in the workers, because any worker may get the pages of a host. The
    hashes that are known for a host are sent with a document, and a digest of the page comes back. Each takes a few
    kilobytes.
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
        """Return a document with the hashes that are known for its site."""
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
            logger.warning("The site memory cannot be saved in JOBDIR: %(error)s", {"error": error})
