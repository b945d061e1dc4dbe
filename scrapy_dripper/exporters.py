"""An exporter for feeds in Parquet, which the setting ``FEED_EXPORTERS`` names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, BinaryIO

from scrapy.exporters import BaseItemExporter
from scrapy.utils.serialize import ScrapyJSONEncoder

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError(
        "scrapy_dripper.exporters needs pyarrow: pip install 'scrapy-dripper[corpus]'", name=error.name
    ) from error

ROWS, CHARS = 1_000, 32_000_000
"""Maximum number of rows, and of their characters, that are in memory at the end of a feed: a row group."""
_NOTHING, _TEXT, _TEXTS, _JSON = "nothing", "text", "texts", "json"
_TYPES = {
    **dict.fromkeys((_NOTHING, _TEXT, _JSON), pa.string()),
    _TEXTS: pa.list_(pa.string()),
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
}


class ParquetItemExporter(BaseItemExporter):
    """Write the items of a feed to Parquet when it ends, with the columns of all items, whichever comes first.

    Until then, they are in a temporary file. Text, numbers, booleans and lists of texts have columns of their types.
    A column with anything else, or with values of several types, is text: JSON, beside texts as they are.
    """

    def __init__(self, file: BinaryIO, **options: Any) -> None:
        super().__init__(**options)
        self._file = file
        self._rows = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 (finish_exporting closes it)
        self._kinds: dict[str, str] = {}
        names = self.fields_to_export
        for name in names.values() if isinstance(names, dict) else names or ():
            self._kinds[name] = _NOTHING

    def start_exporting(self) -> None:
        """Raise ValueError if the file has content, to which no rows can be added."""
        if self._file.seekable() and self._file.tell():
            raise ValueError("the file of the feed has content, and no rows can be added to a Parquet file")

    def export_item(self, item: Any) -> None:
        """Keep an item for the end of the feed."""
        # Scrapy 2.14 has it under its former name.
        name = "get_serialized_fields"
        serialized = getattr(self, name if hasattr(self, name) else f"_{name}")
        row = {name: _plain(value) for name, value in serialized(item, None)}
        for name, value in row.items():
            self._kinds[name] = _common(self._kinds.get(name, _NOTHING), _kind(value))
        self._rows.write(json.dumps(row) + "\n")

    def finish_exporting(self) -> None:
        """Write all items."""
        schema = pa.schema([(name, _TYPES[kind]) for name, kind in self._kinds.items()])
        with self._rows, TemporaryDirectory() as folder:
            self._rows.seek(0)
            path = Path(folder) / "feed.parquet"
            with pq.ParquetWriter(path, schema, compression="zstd") as writer:
                for lines in _groups(self._rows):
                    rows = [json.loads(line) for line in lines]
                    columns = [
                        pa.array([_of_kind(row.get(name), kind) for row in rows], _TYPES[kind])
                        for name, kind in self._kinds.items()
                    ]
                    writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            with path.open("rb") as made:
                shutil.copyfileobj(made, self._file)


class _Encoder(ScrapyJSONEncoder):
    """Writes what no feed of Scrapy can write as the text that stands for it."""

    def default(self, o: Any) -> Any:
        try:
            return super().default(o)
        except TypeError:
            return o.decode("utf-8", "replace") if isinstance(o, bytes) else str(o)


_encoder = _Encoder(skipkeys=True)


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it."""
    if value is None or type(value) in (str, bool, int, float):
        return value
    try:
        return json.loads(_encoder.encode(value))
    except (ValueError, RecursionError):  # it is in a circle, or too deep
        return str(value)


def _kind(value: Any) -> str:
    if value is None:
        return _NOTHING
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return _TEXTS
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return _JSON
    return {str: _TEXT, bool: "bool", int: "int", float: "float"}.get(type(value), _JSON)


def _common(one: str, other: str) -> str:
    """Return the kind of a column with values of two kinds."""
    kinds = {one, other} - {_NOTHING}
    if kinds == {"int", "float"}:
        return "float"
    return _JSON if len(kinds) > 1 else next(iter(kinds), _NOTHING)


def _of_kind(value: Any, kind: str) -> Any:
    """Return a value for a column, without lone surrogates."""
    if value is None or kind in ("bool", "int", "float"):
        return value
    if kind == _TEXTS:
        return [_of_kind(one, _TEXT) for one in value]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def _groups(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield lines in groups of a limited size."""
    group: list[str] = []
    chars = 0
    for line in lines:
        group.append(line)
        chars += len(line)
        if len(group) == ROWS or chars >= CHARS:
            yield group
            group, chars = [], 0
    if group:
        yield group
