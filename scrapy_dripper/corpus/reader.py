"""A datatrove reader for the HTML pages of WARC files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.readers.base import BaseDiskReader

from scrapy_dripper.corpus.records import Recorded, Skip, pages
from scrapy_dripper.page.charset import decode_html

MOST_BYTES = 100_000_000
"""Size limit of a record in bytes, before and after decompression: ten times ``DRIPPER_LIMITS["bytes"]``."""


class FastWarcReader(BaseDiskReader):  # type: ignore[misc]
    """Read the HTML pages of WARC files, uncompressed or compressed with gzip, zstd or lz4, with FastWARC.

    The text of a document is the page's HTML, decoded as in a crawl (:mod:`scrapy_dripper.page.charset`). Its metadata
    are ``url``, ``date``, ``digest`` (SHA-1 of the body as it was sent), ``truncated`` (why the archive only holds a
    part of the page; None if it is complete) and ``file_path``. Its id is that of the record.

    Pages are counted as ``pages``, and also as ``truncated`` or ``wrong_digest`` if they are. Other records are counted
    as ``skipped/REASON`` (:class:`~scrapy_dripper.corpus.records.Skip`).
    """

    name = "FastWARC"
    _requires_dependencies = ["fastwarc"]  # noqa: RUF012 (datatrove's)

    def __init__(
        self, data_folder: Any, paths_file: Any = None, *, max_bytes: int = MOST_BYTES, **options: Any
    ) -> None:
        """``max_bytes`` is the size limit of a record. Other options are those of datatrove's readers."""
        super().__init__(data_folder, paths_file, **options)
        self.max_bytes = max_bytes

    def read_file(self, filepath: str) -> Iterator[Document]:
        """Yield the documents of one file."""

        def skip(reason: Skip) -> None:
            self.stat_update(f"skipped/{reason}")

        with self.data_folder.open(filepath, "rb") as stream:
            found = pages(stream, self.max_bytes, skip, filepath)
            number = 0
            while True:
                with self.track_time():
                    page = next(found, None)
                    document = None if page is None else self._document(page, filepath, number)
                if page is None:
                    return
                number += 1
                if document is not None:
                    yield document

    def _document(self, page: Recorded, filepath: str, number: int) -> Document | None:
        self.stat_update("pages")
        if page.truncated:
            self.stat_update("truncated")
        if not page.is_intact:
            self.stat_update("wrong_digest")
        data = {
            "text": decode_html(page.body, page.charset),
            "url": page.url,
            "date": page.date,
            "digest": page.digest,
            "truncated": page.truncated,
        }
        if page.id:
            data["id"] = page.id
        return self.get_document_from_dict(data, filepath, number)
