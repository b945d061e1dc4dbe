"""Write documents as Parquet rows with a fixed schema."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep
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
}
_OPTIONAL = ("main_html", "content", "page")
ROWS_TOGETHER = 256
"""Number of rows to hold in memory before they are written."""


def schema(optional: Iterable[str] = ()) -> pa.Schema:
    """Return the columns of a document. ``main_html``, ``content`` and ``page`` are optional."""
    left_out = set(_OPTIONAL) - set(optional)
    return pa.schema([(name, kind) for name, kind in _COLUMNS.items() if name not in left_out])


class RowWriter(ParquetWriter):  # type: ignore[misc]
    """Write the documents of a rank into a folder ``unfinished`` below the output folder, as ``RANK.parquet``."""

    def __init__(self, folder: str | os.PathLike[str], columns: pa.Schema) -> None:
        super().__init__(
            str(Path(folder) / "unfinished"),
            compression="zstd",
            adapter=_row,
            batch_size=ROWS_TOGETHER,
            max_file_size=-1,  # one file per rank
            schema=columns,
        )


def _row(writer: RowWriter, document: Document) -> dict[str, Any]:
    values = {"id": document.id, "text": document.text} | document.metadata
    return {name: values.get(name) for name in writer.schema.names}


class Publish(PipelineStep):  # type: ignore[misc]
    """Move the file of a rank to the output folder once it is complete, so that the folder never holds partial files.

    A Parquet file that was not closed cannot be read at all.
    """

    type = "WRITER"
    name = "Publish"

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        self.folder = Path(folder)

    def run(self, data: Iterable[Document], rank: int = 0, world_size: int = 1) -> Iterator[Document]:  # noqa: ARG002
        """Yield the documents, close the files of their writers, and move the file of this rank."""
        yield from data
        name = f"{rank:05d}.parquet"
        written = self.folder / "unfinished" / name
        if written.exists():  # a rank without pages writes no file
            written.replace(self.folder / name)
