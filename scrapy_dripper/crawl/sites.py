"""The site memory and the templates of a crawl, which are kept in its ``JOBDIR``."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from scrapy.settings import BaseSettings
from scrapy.utils.job import job_dir

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.stats import CrawlStats
from scrapy_dripper.data import Document, Extraction, TeachingExtraction, informed, known_of
from scrapy_dripper.sites import MemoryFileError, SiteMemory, Templates, read, read_templates, write, write_templates

logger = logging.getLogger(__name__)

T = TypeVar("T", SiteMemory, Templates)


class Knowledge(ABC, Generic[T]):
    """What a crawl has learnt about hosts from their pages. Call all methods on the event loop.

    It is in the process of the crawl and not in its workers, because any worker may get a page of a host. A document is
    sent with what is known about its host, and its extraction returns what can be learnt from the page. Both have a few
    kilobytes.
    """

    file: str
    """Name of the file in ``JOBDIR``."""
    name: str
    """Its name in messages."""

    def __init__(
        self,
        settings: BaseSettings,
        stats: CrawlStats,
        read: Callable[[Path], T],
        write: Callable[[T, Path], None],
        empty: T,
    ) -> None:
        folder = job_dir(settings)
        self._path = None if folder is None else Path(folder) / self.file
        self._stats = stats
        self._write: Callable[[T, Path], None] = write
        self._known: T = empty
        if self._path is not None:
            try:
                self._known = read(self._path)
            except MemoryFileError as error:
                logger.warning("%(error)s; %(name)s starts empty", {"error": error, "name": self.name})

    @abstractmethod
    def informed(self, document: Document) -> Document:
        """Return a document with what is known about its host."""

    @abstractmethod
    def learn_from(self, extraction: Extraction) -> None:
        """Learn from a page."""

    def learn(self, future: asyncio.Future[Extraction]) -> None:
        """Learn from a page that has been extracted."""
        if not future.cancelled():
            self.learn_from(future.result())

    def close(self) -> None:
        """Write everything that is known to ``JOBDIR``, if there is one."""
        if self._path is None:
            return
        try:
            self._write(self._known, self._path)
        except OSError as error:
            logger.warning(
                "%(name)s cannot be kept in JOBDIR: %(error)s", {"error": error, "name": self.name.capitalize()}
            )


class CrawlMemory(Knowledge[SiteMemory]):
    """The site memory of a crawl."""

    file, name = "dripper-sites", "the site memory"

    def __init__(self, settings: BaseSettings, stats: CrawlStats) -> None:
        super().__init__(settings, stats, read, write, SiteMemory())

    def informed(self, document: Document) -> Document:
        """Return a document with the hashes of the texts that its host repeats."""
        return informed(document, self._known.known(document.url), known_of(document)[1])

    def learn_from(self, extraction: Extraction) -> None:
        """Count the texts of a page."""
        if isinstance(extraction, TeachingExtraction) and extraction.digest:
            learnt = self._known.learn(extraction.url, extraction.digest)
            self._stats.remembered(learnt=learnt, hosts=len(self._known), blocks=extraction.details["repeated"])


class CrawlTemplates(Knowledge[Templates]):
    """The templates of a crawl."""

    file, name = "dripper-templates", "the memory of templates"

    def __init__(self, settings: BaseSettings, stats: CrawlStats) -> None:
        super().__init__(settings, stats, read_templates, write_templates, Templates())

    def informed(self, document: Document) -> Document:
        """Return a document with the templates of its host."""
        return informed(document, known_of(document)[0], self._known.known(document.url))

    def learn_from(self, extraction: Extraction) -> None:
        """Learn from the labels of a page."""
        if isinstance(extraction, TeachingExtraction) and extraction.lesson:
            dropped = self._known.learn(extraction.url, extraction.lesson)
            self._stats.taught(dropped=dropped, hosts=len(self._known))


def knowledge(config: Config, settings: BaseSettings, stats: CrawlStats) -> list[Knowledge[Any]]:
    """Return the site memory and the templates of a crawl, if they are on."""
    found: list[Knowledge[Any]] = []
    if config.site_memory:
        found.append(CrawlMemory(settings, stats))
    if config.templates:
        found.append(CrawlTemplates(settings, stats))
    return found
