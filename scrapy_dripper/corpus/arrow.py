"""Extract Arrow tables, for Ray Data (``map_batches``) and Spark (``mapInArrow``).

Both frameworks pass batches of rows that are read-only, and expect new batches. One column holds the HTML, as text or
bytes, and another may hold the URL. All columns are kept, and those of :data:`COLUMNS` are added or replaced. Each
input row gives exactly one output row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

import pyarrow as pa

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.extractor import Extractor

COLUMNS = {
    "markdown": pa.large_string(),
    "title": pa.string(),
    "page_type": pa.string(),
    "quality": pa.float32(),
    "source": pa.string(),
    "reason": pa.string(),
    "error": pa.string(),
}
"""The added columns and their types. ``reason`` and ``error`` say why the model did not decide."""
SPARK_COLUMNS = (
    "markdown string, title string, page_type string, quality float, source string, reason string, error string"
)
"""The same columns as a schema for Spark."""


def about_page(extraction: Extraction) -> dict[str, Any]:
    """Return the values of :data:`COLUMNS` apart from the text."""
    values = {name: getattr(extraction, name) for name in ("title", "page_type", "quality", "source", "error")}
    return values | {"reason": extraction.fallback_reason and extraction.fallback_reason.value}


Batch = TypeVar("Batch", pa.Table, pa.RecordBatch)


class RayExtractor:
    """The callable class for Ray Data's ``map_batches``, with ``batch_format="pyarrow"``."""

    def __init__(self, config: Config | None = None, html: str = "html", url: str | None = "url") -> None:
        """Load the model. ``html`` and ``url`` name columns. Raise the same errors as the extractor."""
        self._extractor = Extractor(config or Config())
        self._html, self._url = html, url

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch with the columns of the extraction. A page that is None counts as empty."""
        pages = batch.column(self._html).to_pylist()
        urls = batch.column(self._url).to_pylist() if self._url is not None else [None] * len(pages)
        documents = [Document(page or "", str(url or "")) for page, url in zip(pages, urls, strict=True)]
        found = self._extractor.extract(documents)
        rows = [about_page(one) | {"markdown": one.markdown or ""} for one in found]
        for name, kind in COLUMNS.items():
            column = pa.array([row[name] for row in rows], kind)
            at = batch.schema.get_field_index(name)
            batch = batch.append_column(name, column) if at < 0 else batch.set_column(at, name, column)
        return batch


def spark_extractor(
    config: Config | None = None, html: str = "html", url: str | None = "url"
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow``. ``html`` and ``url`` name columns.

    Spark matches columns by position, so its schema must have the columns of the frame, followed by
    :data:`SPARK_COLUMNS`.

    The model is loaded once for each Python worker, which Spark reuses for other tasks. Spark's strings have 32-bit
    offsets, so a batch must have less than 2 GiB of text: ``spark.sql.execution.arrow.maxRecordsPerBatch`` is 10,000 by
    default, and 256 is enough.
    """

    def extract(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        extractor = _shared(config, html, url)
        for batch in batches:
            found = extractor(batch)
            at = found.schema.get_field_index("markdown")
            yield found.set_column(at, "markdown", found.column(at).cast(pa.string()))

    return extract


@lru_cache(1)
def _shared(config: Config | None, html: str, url: str | None) -> RayExtractor:
    """Return the extractor of a worker. Spark finds this function by its name."""
    return RayExtractor(config, html, url)
