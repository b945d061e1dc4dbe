"""The site memory and the templates of a crawl, which are kept in its ``JOBDIR``."""

from __future__ import annotations

import asyncio
import logging
import pickle
import zlib
from pathlib import Path
from typing import TypeVar

from scrapy.settings import BaseSettings
from scrapy.utils.job import job_dir

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.stats import CrawlStats
from scrapy_dripper.data import Extraction
from scrapy_dripper.paths import replace_file
from scrapy_dripper.sites import Hosts
from scrapy_dripper.sites.memory import SiteMemory
from scrapy_dripper.sites.templates import Templates

logger = logging.getLogger(__name__)

T = TypeVar("T", SiteMemory, Templates)

FORMAT = 6
"""Version of the files, and of the way in which the hashes in them are computed."""

MEMORY_FILE, TEMPLATES_FILE = "dripper-sites", "dripper-templates"
"""Names of the files in ``JOBDIR``."""


class CrawlSites:
    """What a crawl has learnt about hosts from their pages. Call all methods on the event loop.

    It is in the process of the crawl and not in its workers, because any worker may get a page of a host. A document is
    sent with what is known about its host, and its extraction returns what can be learnt from the page. Both have a few
    kilobytes.
    """

    def __init__(self, config: Config, settings: BaseSettings, stats: CrawlStats) -> None:
        folder = job_dir(settings)
        self._folder = None if folder is None else Path(folder)
        self._stats = stats
        self.hosts = Hosts(
            self._read(MEMORY_FILE, SiteMemory()) if config.site_memory else None,
            self._read(TEMPLATES_FILE, Templates()) if config.templates else None,
        )

    def _read(self, name: str, empty: T) -> T:
        if self._folder is not None:
            try:
                return load(self._folder / name, type(empty))
            except FileNotFoundError:
                pass
            except Exception as error:  # unpickling can raise anything
                words = {"path": self._folder / name, "error": error}
                logger.warning("%(path)s cannot be used (%(error)s); the crawl begins without it", words)
        return empty

    def learn(self, future: asyncio.Future[Extraction]) -> None:
        """Learn from a page that has been extracted."""
        extraction = None if future.cancelled() else future.result()
        if extraction is None:
            return
        memory, templates = self.hosts.memory, self.hosts.templates
        if memory is not None and extraction.site.memory:
            learnt = memory.learn(extraction.url, extraction.site.memory)
            self._stats.count("site_memory/pages" if learnt else "site_memory/copies")
            self._stats.put("site_memory/hosts", len(memory))
            if blocks := extraction.details["repeated"]:
                self._stats.count("site_memory/changed")
                self._stats.count("site_memory/blocks", blocks)
        if templates is not None and extraction.site.templates:
            if dropped := templates.learn(extraction.url, extraction.site.templates):
                self._stats.count("templates/dropped", dropped)
            self._stats.put("templates/hosts", len(templates))

    def close(self) -> None:
        """Write everything that is known to ``JOBDIR``, if there is one."""
        if self._folder is None:
            return
        try:
            for name, learnt in ((MEMORY_FILE, self.hosts.memory), (TEMPLATES_FILE, self.hosts.templates)):
                if learnt is not None:
                    save(learnt, self._folder / name)
        except OSError as error:
            logger.warning("What was learnt about sites cannot be kept in JOBDIR: %(error)s", {"error": error})


def save(learnt: SiteMemory | Templates, path: Path) -> None:
    """Write what is known about sites to a file, which is replaced atomically. Raise OSError if that fails."""
    data = pickle.dumps(learnt)
    replace_file(path, _head(data) + data)


def load(path: Path, kind: type[T]) -> T:
    """Return what :func:`save` has written. Raise ValueError if the file is damaged or of another version, and OSError
    if it cannot be read.

    Files of this kind are trusted, as are Scrapy's own in a ``JOBDIR``, which are pickled as well.
    """
    head, _, data = path.read_bytes().partition(b"\n")
    found = pickle.loads(data) if head + b"\n" == _head(data) else None
    if not isinstance(found, kind):
        raise ValueError(f"it is damaged, or not of format {FORMAT}")
    return found


def _head(data: bytes) -> bytes:
    return f"{FORMAT} {zlib.crc32(data)}\n".encode()
