"""Write documents as Parquet rows with a fixed schema."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.data import Document
from datatrove.pipeline.writers.parquet import ParquetWriter

# A batch of large pages can exceed the offsets of a plain string column (2 GiB).
_LONG = pa.large_string()
_COLUMNS = {
    "id": pa.string(),
    "url": pa.string(),
    "date": pa.string(),
    "title": pa.string(),
    "text": _LONG,
    "main_html": _LONG,
    "content": _LONG,
    "page": pa.string(),
    "page_type": pa.string(),
    "quality": pa.float32(),
    "source": pa.string(),
    "reason": pa.string(),
    "error": pa.string(),
    "truncated": pa.string(),
    "digest": pa.string(),
    "file_path": pa.string(),
    "language": pa.string(),
    "language_score": pa.float32(),
}
_OPTIONAL = ("main_html", "content", "page", "language", "language_score")
ROWS_TOGETHER = 256
"""Number of rows to hold in memory before they are written."""


def schema(optional: Iterable[str] = ()) -> pa.Schema:
    """Return the columns of a document.

    ``main_html``, ``content``, ``page``, ``language`` and ``language_score`` are optional.
    """
    left_out = set(_OPTIONAL) - set(optional)
    return pa.schema([(name, kind) for name, kind in _COLUMNS.items() if name not in left_out])


class RowWriter(ParquetWriter):  # type: ignore[misc]
    """Write the documents of each rank into a file of a folder, which appears once it is complete.

    A Parquet file that was not closed cannot be read at all. Until then, it is in the folder ``unfinished``, and named
    after the process, because a cluster may run a rank twice: it cannot distinguish a dead machine from a machine that
    it no longer reaches. A rank without documents writes a table without rows.
    """

    def __init__(self, folder: str | os.PathLike[str], columns: pa.Schema) -> None:
        self.folder = Path(folder)
        super().__init__(
            str(self.folder / "unfinished"),
            compression="zstd",
            adapter=_row,
            batch_size=ROWS_TOGETHER,
            max_file_size=-1,  # one file per rank
            schema=columns,
        )

    def _get_output_filename(self, document: Document, rank: int | str = 0, **options: Any) -> str:
        if isinstance(rank, str):  # datatrove's name of the stat for this file
            return str(super()._get_output_filename(document, rank, **options))
        return f"{rank:05d}-{platform.node()}-{os.getpid()}.parquet"

    def run(self, data: Iterable[Document], rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        """Yield the documents, close their file and move it. Files that killed processes have left are removed."""
        yield from super().run(data, rank, world_size)
        unfinished = self.folder / "unfinished"
        written = unfinished / self._get_output_filename(Document("", ""), rank)
        if not written.exists():
            unfinished.mkdir(parents=True, exist_ok=True)
            pq.write_table(self.schema.empty_table(), written)
        written.replace(self.folder / f"{rank:05d}.parquet")
        for rest in unfinished.glob(f"{rank:05d}-*.parquet"):
            rest.unlink(missing_ok=True)


def _row(writer: RowWriter, document: Document) -> dict[str, Any]:
    values = {"id": document.id, "text": document.text} | document.metadata
    return {name: values.get(name) for name in writer.schema.names}
