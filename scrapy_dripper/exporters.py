"""A feed exporter for Parquet: ``FEED_EXPORTERS = {"parquet": "scrapy_dripper.exporters.ParquetItemExporter"}``."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from itemadapter import is_item
from scrapy.crawler import Crawler
from scrapy.exporters import BaseItemExporter
from scrapy.settings import BaseSettings
from scrapy.utils.serialize import ScrapyJSONEncoder
from w3lib.url import file_uri_to_path

from scrapy_dripper.config import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

OTHER = "_other"
"""The column that holds, as JSON, the values that have no column or do not fit into theirs."""
GROUP_BYTES = 16 << 20
"""Size of the values in memory, in characters and bytes, at which they are written as a row group."""
GROUP_ROWS = 20_000

_fields = getattr(BaseItemExporter, "get_serialized_fields", None) or getattr(  # noqa: B009 (before Scrapy 2.19)
    BaseItemExporter, "_get_serialized_fields"
)
_types: WeakKeyDictionary[Crawler, dict[str, Any]] = WeakKeyDictionary()
"""The types of the columns of a crawl, so that the files of a feed in batches have the same."""


class ParquetItemExporter(BaseItemExporter):
    """Write items as the rows of a Parquet file.

    Columns are the declared fields of the items in the first row group, and the keys of dicts; or ``fields`` of the
    feed. Their types are those of the values: boolean, int64, float64, timestamp, date32, binary, and otherwise string.
    Lists, dicts and nested items are written as JSON. With ``schema``, a :class:`pyarrow.Schema`, columns and types are
    those of the schema, and values can be nested.

    Once a file has been begun, its columns and their types cannot change. A later value that has no column, or does not
    fit into its column, is kept in the column ``_other``, which holds a JSON object. If ``schema`` has no such column,
    the value is left out, counted in the stat ``dripper/parquet/left_out``, and logged once for its field.
    """

    def __init__(
        self,
        file: IO[bytes],
        *,
        schema: pa.Schema | None = None,
        row_group_bytes: int = GROUP_BYTES,
        compression: str = "zstd",
        crawler: Crawler | None = None,
        **options: Any,
    ) -> None:
        """Options are those of the feed; ``item_export_kwargs`` are the first three.

        Raise :exc:`~scrapy_dripper.config.ConfigError` if pyarrow is not installed, or if there is something in the
        file already.
        """
        super().__init__(**options)
        _need_pyarrow()
        if file.seekable() and file.tell():
            raise ConfigError(_no_append(str(getattr(file, "name", "the feed"))))
        self._file, self._schema, self._compression = file, schema, compression
        self._group_bytes, self._crawler = row_group_bytes, crawler
        self._encoder = ScrapyJSONEncoder(ensure_ascii=False)
        self._rows: list[dict[str, Any]] = []
        self._size = 0
        self._writer: Any = None
        self._reported: set[str] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: IO[bytes], **options: Any) -> ParquetItemExporter:
        """Return the exporter of a feed."""
        return cls(file, crawler=crawler, **options)

    def export_item(self, item: Any) -> None:
        """Add a row, and write the row group if it is full."""
        row = {name: self._plain(name, value) for name, value in _fields(self, item, include_empty=True)}
        self._rows.append(row)
        self._size += sum(len(value) for value in row.values() if isinstance(value, (str, bytes)))
        if self._size >= self._group_bytes or len(self._rows) >= GROUP_ROWS:
            self._write()

    def finish_exporting(self) -> None:
        """Write the last row group, and the footer without which the file cannot be read."""
        if self._rows or self._writer is None:
            self._write()
        self._writer.close()

    def _plain(self, name: str, value: Any) -> Any:
        """Return a list, a dict or an item as JSON, unless the schema says that it is nested."""
        nested = isinstance(value, (list, tuple, set, frozenset, Mapping)) or is_item(value)
        schema = self._schema
        if nested and (schema is None or name not in schema.names or _is_text(schema.field(name).type)):
            return self._json(value)
        return value

    def _json(self, value: Any) -> str:
        try:
            return self._encoder.encode(value)
        except TypeError:  # something that JSON cannot hold
            return json.dumps(value, ensure_ascii=False, default=str)

    def _write(self) -> None:
        """Write the rows as a row group."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._schema is None:
            self._schema = self._inferred()
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, self._schema, compression=self._compression)
        columns: dict[str, list[Any]] = {name: [] for name in self._schema.names}
        names = columns.keys() - {OTHER}
        for row in self._rows:
            other = {name: value for name, value in row.items() if name not in names and value is not None}
            for name in names:
                value, fits = _cell(row.get(name), self._schema.field(name).type)
                columns[name].append(value)
                if not fits:
                    other[name] = row[name]
            if OTHER in columns:
                columns[OTHER].append(self._json(other) if other else None)
            else:
                self._report(other)
        if self._rows:
            arrays = [pa.array(columns[field.name], field.type) for field in self._schema]
            self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows, self._size = [], 0

    def _inferred(self) -> pa.Schema:
        """Return a schema for the rows of the first row group."""
        import pyarrow as pa

        names = dict.fromkeys(self._named())
        for row in self._rows:
            names |= dict.fromkeys(row)
        known = _types.setdefault(self._crawler, {}) if self._crawler is not None else {}
        for name in names:
            values = [value for row in self._rows if (value := row.get(name)) is not None]
            if values and name not in known:
                known[name] = _type_of(values)
        names.pop(OTHER, None)
        return pa.schema([*((name, known.get(name, pa.string())) for name in names), (OTHER, pa.string())])

    def _named(self) -> Iterable[str]:
        """Return the columns that the feed's ``fields`` name."""
        fields = self.fields_to_export or ()
        return fields.values() if isinstance(fields, Mapping) else fields

    def _report(self, values: Mapping[str, Any]) -> None:
        """Count values that do not fit into the schema, and log each field once."""
        if self._crawler is not None and self._crawler.stats is not None and values:
            self._crawler.stats.inc_value("dripper/parquet/left_out", len(values))
        for name in values.keys() - self._reported:
            self._reported.add(name)
            logger.error(
                "Values of %(name)r are left out of the Parquet feed, because its schema has no such column or another "
                "type for it; correct the schema, or give it a column %(other)r of strings for them",
                {"name": name, "other": OTHER},
            )


def _cell(value: Any, kind: pa.DataType) -> tuple[Any, bool]:
    """Return a value for a column, and whether it fits."""
    import pyarrow as pa

    if value is None:
        return None, True
    if _is_text(kind):
        text = value if isinstance(value, str) else json.dumps(value) if _is_number(value) else str(value)
        return text.encode("utf-8", "replace").decode() if not text.isascii() else text, True
    try:
        return pa.scalar(value, kind), True
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None, False


def _type_of(values: Iterable[Any]) -> pa.DataType:
    """Return the type of a column for values that are not None."""
    import pyarrow as pa

    kinds = {type(value) for value in values}
    if kinds == {datetime}:
        zones = {value.tzinfo is None for value in values}
        if len(zones) == 1:
            return pa.timestamp("us", None if zones == {True} else "UTC")
    simple = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), bytes: pa.binary(), date: pa.date32()}
    if kinds == {int, float}:
        return simple[float]
    return simple.get(next(iter(kinds)), pa.string()) if len(kinds) == 1 else pa.string()


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def check_feeds(settings: BaseSettings) -> None:
    """Raise :exc:`~scrapy_dripper.config.ConfigError` for a Parquet feed that cannot be written.

    This is the case if pyarrow is missing, or if the file exists and is not to be overwritten. Scrapy would append to
    such a file, and neither its old items nor the new ones could then be read.
    """
    for uri, options in settings.getdict("FEEDS").items():
        name = str(uri)
        if (options.get("format") or Path(name).suffix[1:]) != "parquet":
            continue
        _need_pyarrow()
        if "://" in name and not name.startswith("file://"):
            continue
        path = Path(file_uri_to_path(name) if name.startswith("file://") else name)
        if not options.get("overwrite") and path.is_file() and path.stat().st_size:
            raise ConfigError(_no_append(str(path)))


def _need_pyarrow() -> None:
    if find_spec("pyarrow") is None:
        raise ConfigError("Parquet feeds need pyarrow: pip install 'scrapy-dripper[corpus]', or pyarrow alone")


def _no_append(name: str) -> str:
    return (
        f"{name} exists, and Parquet cannot be appended to: set 'overwrite': True for this feed, or put %(time)s into "
        f"its name"
    )
