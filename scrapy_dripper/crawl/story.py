"""What a crawl tells when it ends: a summary in the log, and the file of ``DRIPPER_REPORT``."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.extraction import Extraction
from scrapy_dripper.inspection.rows import Row, Sample
from scrapy_dripper.inspection.summary import Summary

logger = logging.getLogger(__name__)


class Story:
    """Listens to a crawl. Of bounded memory: counts, and of the pages a sample of small rows."""

    def __init__(self, config: Config) -> None:
        """Raise :exc:`~scrapy_dripper.config.ConfigError` if the report is to be written where a folder is."""
        self._path = Path(config.report) if config.report is not None else None
        if self._path is not None and self._path.is_dir():
            raise ConfigError(f"DRIPPER_REPORT must be the path of a file (got the folder {str(self._path)!r})")
        self.summary = Summary(config.batch_size)
        self._sample = Sample()

    def page(self, extraction: Extraction) -> None:
        """Note a page that is done."""
        row = Row.of(extraction)
        self.summary.add(row)
        if self._path is not None:
            self._sample.add(row)

    def tell(self, name: str) -> None:
        """Write the summary into the log, unless there were no pages, and the report if it is wanted. Never raises."""
        if self.summary.pages:
            logger.info("%s", self.summary.text())
        if self._path is not None:
            try:
                self._write(self._path, name)
            except Exception as error:  # It is the end of a crawl that went well: nobody loses it over a report.
                logger.error("DRIPPER_REPORT: cannot write %s: %s", self._path, error)
            else:
                logger.info("Report of the crawl: %s", self._path)

    def _write(self, path: Path, name: str) -> None:
        from scrapy_dripper.inspection.render import index_file

        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            text = index_file(name, self._sample, self.summary)
            beside.write_text(text, encoding="utf-8", errors="replace", newline="\n")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
