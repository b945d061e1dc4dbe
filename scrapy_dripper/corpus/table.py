"""Write documents as Parquet rows with a fixed schema, and read them back."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
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
    """Write the documents of a rank into a folder ``unfinished`` below the output folder.

    The file is named after the process, because a cluster may run a rank twice: it cannot distinguish a dead machine
    from a machine that it no longer reaches.
    """

    def __init__(self, folder: str | os.PathLike[str], columns: pa.Schema) -> None:
        super().__init__(
            str(Path(folder) / "unfinished"),
            compression="zstd",
            adapter=_row,
            batch_size=ROWS_TOGETHER,
            max_file_size=-1,  # one file per rank
            schema=columns,
        )

    def _get_output_filename(self, document: Document, rank: int | str = 0, **options: Any) -> str:
        if isinstance(rank, str):  # datatrove's name of the stat for this file
            return str(super()._get_output_filename(document, rank, **options))
        return _unfinished(rank)


def _unfinished(rank: int) -> str:
    return f"{rank:05d}-{platform.node()}-{os.getpid()}.parquet"


def _row(writer: RowWriter, document: Document) -> dict[str, Any]:
    values = {"id": document.id, "text": document.text} | document.metadata
    return {name: values.get(name) for name in writer.schema.names}


class Publish(PipelineStep):  # type: ignore[misc]
    """Move the file of a rank to the output folder once it is complete, so that the folder never holds partial files.

    A Parquet file that was not closed cannot be read at all. Files of this rank that killed processes have left behind
    are removed.
    """

    type = "WRITER"
    name = "Publish"

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        self.folder = Path(folder)

    def run(self, data: Iterable[Document], rank: int = 0, world_size: int = 1) -> Iterator[Document]:  # noqa: ARG002
        """Yield the documents, close the files of their writers, and move the file of this rank."""
        yield from data
        folder = self.folder / "unfinished"
        written = folder / _unfinished(rank)
        if written.exists():  # a rank without pages writes no file
            written.replace(self.folder / f"{rank:05d}.parquet")
        for rest in folder.glob(f"{rank:05d}-*.parquet"):
            rest.unlink(missing_ok=True)


class RowReader(PipelineStep):  # type: ignore[misc]
    """Read the documents with text from Parquet files, in order; rank R of N reads the files R, R + N, and so on.

    All columns except ``id`` and ``text`` are metadata. A missing file counts as empty. All rows are counted as
    ``rows``, and rows without text also as ``empty``.
    """

    type = "READER"
    name = "rows"

    def __init__(self, files: Sequence[str]) -> None:
        super().__init__()
        self.files = list(files)

    def run(self, data: Iterable[Document] | None = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:  # noqa: ARG002
        """Yield the documents of this rank."""
        for file in self.files[rank::world_size]:
            if not os.path.exists(file):
                continue
            with pq.ParquetFile(file) as table:
                for batch in table.iter_batches(batch_size=ROWS_TOGETHER):
                    for row in batch.to_pylist():
                        self.stat_update("rows")
                        text = row.pop("text")
                        if text:
                            yield Document(text, row.pop("id"), metadata=row)
                        else:
                            self.stat_update("empty")
