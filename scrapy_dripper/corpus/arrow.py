"""Extract Arrow tables, for Ray Data (``map_batches``) and Spark (``mapInArrow``).

Both frameworks pass batches of rows that are read-only, and expect new batches. One column holds the HTML, as text or
bytes, and another may hold the URL. All columns are kept, and those of :data:`COLUMNS` are added or replaced. Each
input row gives exactly one output row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
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


class RayExtractor:
    """The callable class for Ray Data's ``map_batches``, with ``batch_format="pyarrow"``."""

    def __init__(self, config: Config | None = None, html: str = "html", url: str | None = "url") -> None:
        """Load the model. ``html`` and ``url`` name columns. Raise the same errors as the extractor."""
        self._extractor = Extractor(config or Config())
        self._html, self._url = html, url

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Return the batch with the columns of the extraction."""
        for name, values in _of_batch(self._extractor, batch, self._html, self._url).items():
            column = pa.array(values, COLUMNS[name])
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
    options = config or Config()

    def extract(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        extractor = _shared(options)
        for batch in batches:
            table = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name, values in _of_batch(extractor, batch, html, url).items():
                table[name] = pa.array(values, pa.string() if name == "markdown" else COLUMNS[name])
            yield pa.RecordBatch.from_pydict(table)

    return extract


@lru_cache(1)
def _shared(config: Config) -> Extractor:
    return Extractor(config)


def _of_batch(extractor: Extractor, batch: Any, html: str, url: str | None) -> dict[str, list[Any]]:
    """Extract the pages of a batch, and return the values of :data:`COLUMNS`. A page that is None counts as empty."""
    pages = batch.column(html).to_pylist()
    urls = batch.column(url).to_pylist() if url is not None else [None] * len(pages)
    found = extractor.extract([Document(page or "", str(url or "")) for page, url in zip(pages, urls, strict=True)])
    values: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for one in found:
        row = {name: getattr(one, name, None) for name in COLUMNS}
        row["markdown"] = one.markdown or ""
        row["reason"] = None if one.fallback_reason is None else one.fallback_reason.value
        for name, value in row.items():
            values[name].append(value)
    return values
