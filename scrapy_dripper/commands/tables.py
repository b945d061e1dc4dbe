"""Write the records of pages as a table of Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from scrapy_dripper.output.chunks import Chunk

ROWS_TOGETHER = 256
"""Number of rows to hold in memory."""
_KINDS = {"str": pa.string(), "int": pa.int64(), "tuple[str, ...]": pa.list_(pa.string())}
CHUNKS = pa.list_(pa.struct([(one.name, _KINDS[str(one.type)]) for one in fields(Chunk)]))
COLUMNS = pa.schema(
    [
        ("url", pa.string()),
        ("title", pa.string()),
        ("markdown", pa.large_string()),
        ("page_type", pa.string()),
        ("quality", pa.float32()),
        ("source", pa.string()),
        ("fallback_reason", pa.string()),
        ("error", pa.string()),
        ("redirects_to", pa.string()),
        ("content_hash", pa.string()),
        ("simhash", pa.string()),
        ("duplicate_of", pa.string()),
        ("metadata", pa.string()),
    ]
)
"""The columns of a record. The metadata are JSON, because each page has others."""


def write_table(records: Iterable[dict[str, Any]], path: Path, *, chunks: bool) -> None:
    """Write a file with a row for each record. Raise OSError if that fails."""
    schema = COLUMNS.append(pa.field("chunks", CHUNKS)) if chunks else COLUMNS
    rows = map(_row, records)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(islice(rows, ROWS_TOGETHER)):
            writer.write_table(pa.Table.from_pylist(batch, schema))


def urls(path: Path) -> Iterator[str]:
    """Yield the URLs of a table. Raise ValueError or OSError if it is none."""
    for batch in pq.ParquetFile(path).iter_batches(columns=["url"]):
        yield from map(str, batch.column("url").to_pylist())


def _row(record: dict[str, Any]) -> dict[str, Any]:
    about = record.get("metadata")
    return record | {"metadata": None if about is None else json.dumps(about, ensure_ascii=False)}
