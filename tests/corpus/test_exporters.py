"""Parquet feeds, as written by live crawls, hold every value."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import scrapy
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings

from scrapy_dripper import Addon
from scrapy_dripper.config import ConfigError
from scrapy_dripper.exporters import ParquetItemExporter

ROOT = Path(__file__).parents[2]


def test_without_pyarrow_the_crawl_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra; without a Parquet feed, there is none."""
    monkeypatch.setattr("scrapy_dripper.exporters.find_spec", lambda name: None)
    Addon().update_settings(Settings({"FEEDS": {"items.jsonl": {"format": "jsonlines"}}}))
    for feeds in ({"items.parquet": {}}, {"x": {"format": "parquet"}}):
        with pytest.raises(ConfigError, match=r"scrapy-dripper\[corpus\]"):
            Addon().update_settings(Settings({"FEEDS": feeds}))


def test_another_exporter_stays() -> None:
    settings = Settings(
        {"FEED_EXPORTERS": {"parquet": "scrapy.exporters.JsonItemExporter"}, "FEEDS": {"a.parquet": {}}}
    )
    Addon().update_settings(settings)
    assert settings["FEED_EXPORTERS"]["parquet"] == "scrapy.exporters.JsonItemExporter"


pa = pytest.importorskip("pyarrow", reason="needs the extra [corpus]")
import pyarrow.parquet as pq  # noqa: E402


def written(items: Iterable[Any], **options: Any) -> Any:
    """Return the table of a feed."""
    file = io.BytesIO()
    exporter = ParquetItemExporter(file, **options)
    exporter.start_exporting()
    for item in items:
        exporter.export_item(item)
    exporter.finish_exporting()
    assert not file.closed  # the storage still has to read it
    return pq.read_table(io.BytesIO(file.getvalue()))


@dataclass
class Offer:
    name: str
    price: float | None = None


class Page(scrapy.Item):
    url = scrapy.Field()
    size = scrapy.Field(serializer=len)


def test_items_of_different_types() -> None:
    """All declared fields are columns, and each value has the type that it had."""
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    items = [
        Page(url="https://example.org/", size="four"),
        Offer("tea", 2.5),
        {"when": now, "day": date(2026, 1, 2), "raw": b"\x00", "ok": True, "tags": ["a", "ü"], "page": Page(url="u")},
    ]
    table = written(items)
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds == {
        **dict.fromkeys(("url", "name", "tags", "page", "_other"), "string"),
        "size": "int64",
        "price": "double",
        "day": "date32[day]",
        "raw": "binary",
        "ok": "bool",
        "when": "timestamp[us, tz=UTC]",
    }
    assert list(kinds)[2:] == ["name", "price", "when", "day", "raw", "ok", "tags", "page", "_other"]
    first, second, third = table.to_pylist()
    assert (first["url"], first["size"], first["name"]) == ("https://example.org/", 4, None)
    assert (second["name"], second["price"]) == ("tea", 2.5)
    assert (third["when"], third["raw"], third["tags"]) == (now, b"\x00", '["a", "ü"]')
    assert json.loads(third["page"]) == {"url": "u"}


def test_what_comes_later_is_kept() -> None:
    """This applies to a field that the first row group did not have, and to a value of another type."""
    items = [{"a": 1}, {"a": 2}, {"a": "three", "b": [4]}, {"a": 2**70, "_other": "mine"}]
    rows = written(items, row_group_bytes=0).to_pylist()
    assert [row["a"] for row in rows] == [1, 2, None, None]
    assert [row["_other"] and json.loads(row["_other"]) for row in rows] == [
        *(None, None),
        {"a": "three", "b": "[4]"},
        {"a": 2**70, "_other": "mine"},
    ]


def test_schema() -> None:
    """The schema decides, also about nested values. A value that does not fit is logged once for its field."""
    schema = pa.schema({"tags": pa.list_(pa.string()), "price": pa.decimal128(8, 2), "n": pa.int16()})
    table = written([{"n": 1, "tags": ["a", "b"]}, {"n": 2}], schema=schema)
    assert table.schema == schema
    assert table.column("tags").to_pylist() == [["a", "b"], None]


def test_values_without_a_place_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    assert written([{"n": "x", "m": 1}] * 3, schema=pa.schema({"n": pa.int8()})).to_pylist() == [{"n": None}] * 3
    assert sorted(record.args["name"] for record in caplog.records) == ["m", "n"]  # type: ignore[index,call-overload]


def test_fields_of_the_feed() -> None:
    """They choose and rename columns, even if there are no items."""
    assert written([], fields_to_export=["url", "markdown"]).schema.names == ["url", "markdown", "_other"]
    table = written([{"url": "u", "other": 1}], fields_to_export={"url": "address"})
    assert table.to_pylist() == [{"address": "u", "_other": None}]
    assert written([]).num_rows == 0


def test_row_groups_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    with path.open("wb") as file:
        exporter = ParquetItemExporter(file, row_group_bytes=10_000)
        for _ in range(100):
            exporter.export_item({"text": "x" * 1000})
        exporter.finish_exporting()
    assert pq.ParquetFile(path).metadata.num_row_groups == 10


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=9)
values = plain | st.lists(st.integers()) | st.dictionaries(st.text(), st.integers())


@given(
    items=st.lists(st.dictionaries(st.sampled_from("abc"), values), max_size=9), size=st.sampled_from([0, 10, 10**9])
)
def test_property_no_value_is_lost(items: list[dict[str, Any]], size: int) -> None:
    """Every value is in its column (unchanged, as an equal number, or as text) or in the last column."""
    rows = written(items, row_group_bytes=size).to_pylist()
    assert len(rows) == len(items)
    for item, row in zip(items, rows, strict=True):
        other = json.loads(row["_other"] or "{}")
        for name, value in item.items():
            if value is None:
                assert row.get(name) is None
            elif row.get(name) is None:
                assert name in other
            elif isinstance(value, str):
                assert row[name] == value.encode("utf-8", "replace").decode()
            elif isinstance(value, (list, dict)):
                assert json.loads(row[name]) == value
            else:
                assert row[name] in (value, json.dumps(value) if not isinstance(value, bytes) else str(value))


SPIDER = """
import scrapy, sys
from scrapy.crawler import CrawlerProcess
class Pages(scrapy.Spider):
    name = "pages"
    async def start(self):
        for number in range(NUMBER):
            yield scrapy.Request(f"data:text/html,<title>{number}</title><main><p>Page number {number} has some words "
                "in a paragraph that is long enough to be the main content of a page.</p></main>", dont_filter=True)
    def parse(self, response):
        number = int(response.css("title::text").get())
        yield {"number": number, "markdown": None} if number % 2 else {"number": number, "name": "even", "markdown": ""}
process = CrawlerProcess({"ADDONS": {"scrapy_dripper.Addon": 500}, "FEEDS": FEEDS, "LOG_LEVEL": "INFO", **MORE})
process.crawl(Pages)
process.start()
"""


def crawl(folder: Path, feeds: str, number: int = 12, more: str = "{}") -> subprocess.Popen[str]:
    """Start a crawl as a user does."""
    code = SPIDER.replace("NUMBER", str(number)).replace('"FEEDS": FEEDS', f'"FEEDS": {feeds}')
    return subprocess.Popen(
        [sys.executable, "-c", code.replace("**MORE", f"**{more}")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_crawl_writes_batches(tmp_path: Path) -> None:
    """All files have the same schema, with main content in their columns. A second crawl refuses to append to them."""
    feeds = (
        '{"%(batch_id)d.parquet": {"format": "parquet", "batch_item_count": 5}, "all.parquet": {"format": "parquet"}}'
    )
    process = crawl(tmp_path, feeds)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0
    tables = [pq.read_table(tmp_path / f"{number}.parquet") for number in (1, 2, 3)]
    assert [table.num_rows for table in tables] == [5, 5, 2], said
    assert len({str(table.schema.field("number").type) for table in tables}) == 1
    rows = pq.read_table(tmp_path / "all.parquet").to_pylist()
    assert sorted(row["number"] for row in rows) == list(range(12))
    assert all(f"Page number {row['number']} has" in row["markdown"] for row in rows)

    before = (tmp_path / "all.parquet").read_bytes()
    process = crawl(tmp_path, feeds)
    _, said = process.communicate(timeout=120)
    assert "all.parquet exists, and Parquet cannot be appended to" in said
    assert (tmp_path / "all.parquet").read_bytes() == before


def test_a_crawl_that_is_interrupted_has_a_footer(tmp_path: Path) -> None:
    """With Ctrl-C, all items so far can be read."""
    process = crawl(tmp_path, '{"all.parquet": {"format": "parquet"}}', 10_000, '{"DOWNLOAD_DELAY": 0.05}')
    deadline = time.monotonic() + 100
    while not (tmp_path / "all.parquet").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    rows = pq.read_table(tmp_path / "all.parquet").num_rows
    assert 0 < rows < 10_000
    assert f"'item_scraped_count': {rows}" in said
