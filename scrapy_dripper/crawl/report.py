"""Report on a crawl when it ends: a summary in the log, and the file of ``DRIPPER_REPORT``."""

from __future__ import annotations

import logging
from pathlib import Path
from tempfile import TemporaryFile

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.data import Extraction
from scrapy_dripper.inspection.rows import Row, Sample
from scrapy_dripper.inspection.summary import Summary
from scrapy_dripper.replace import replace_file

logger = logging.getLogger(__name__)


class Report:
    """Collects counts and a sample of the pages of a crawl, in bounded memory."""

    def __init__(self, config: Config) -> None:
        """Raise :exc:`~scrapy_dripper.config.ConfigError` if the report cannot be written."""
        self._path = Path(config.report) if config.report is not None else None
        if self._path is not None and self._path.is_dir():
            raise ConfigError(f"DRIPPER_REPORT must be the path of a file (got the folder {str(self._path)!r})")
        if self._path is not None:
            _check_folder(self._path.parent)
        self.summary = Summary(config.batch_size)
        self._sample = Sample()

    def page(self, extraction: Extraction) -> None:
        """Record a page that has been extracted."""
        row = Row.of(extraction)
        self.summary.add(row)
        if self._path is not None:
            self._sample.add(row)

    def tell(self, name: str) -> None:
        """Log the summary if there were any pages, and write the report if it is configured. Never raises."""
        if self.summary.pages:
            logger.info("%s", self.summary.text())
        if self._path is not None:
            try:
                self._write(self._path, name)
            except Exception as error:  # a missing report must not spoil the end of a successful crawl
                logger.error("DRIPPER_REPORT: cannot write %s: %s", self._path, error)
            else:
                logger.info("Report of the crawl: %s", self._path)

    def _write(self, path: Path, name: str) -> None:
        from scrapy_dripper.inspection.render import index_file

        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, index_file(name, self._sample, self.summary))


def _check_folder(folder: Path) -> None:
    """Raise :exc:`~scrapy_dripper.config.ConfigError` if no file can be written into a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise ConfigError(f"DRIPPER_REPORT: {folder} cannot be written to: {error.strerror or error}") from None
