"""docs/guides/feeds.md: what it says is in the feeds of a crawl. And Parquet, whatever the items hold."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import DropItem

from scrapy_dripper import PageItem
from tests.crawl.crawling import Crawls, Site, spider

pq = pytest.importorskip("pyarrow.parquet")
from scrapy_dripper.exporters import ParquetItemExporter  # noqa: E402 (it needs pyarrow)

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "feeds.md").read_text(encoding="utf-8")
MAIN = "MAIN text of page {}, which is about nothing in particular."


def code(name: str) -> list[dict[str, Any]]:
    """Return the names that each snippet of the guide defines."""
    found = []
    for text in re.findall(rf"```python\n# {name}\.py\n(.*?)```", GUIDE, re.S):
        values: dict[str, Any] = {}
        exec(text, values)
        found.append(values)
    return found


def test_the_feeds_of_the_guide(crawl: Crawls, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each, all items of a crawl, whatever comes first."""
    monkeypatch.chdir(tmp_path)
    site.routes["/file"] = ("application/pdf", b"%PDF-1.4")
    first, second = ({name: one for name, one in values.items() if name.isupper()} for values in code("settings"))
    settings = {**first, **second, "FEEDS": {**first["FEEDS"], **second["FEEDS"]}, "CONCURRENT_REQUESTS": 1}
    urls = [site.url("/file"), *site.pages(2)]

    result = crawl(spider(urls), settings)

    texts = ["", *(MAIN.format(number) for number in (0, 1))]
    lines = [json.loads(line) for line in Path("pages.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [*csv.DictReader(io.StringIO(Path("pages.csv").read_text(encoding="utf-8")))]
    table = pq.read_table("pages.parquet").to_pylist()
    for items in (lines, rows, table):
        assert sorted(item["markdown"] or "" for item in items) == texts
        assert {item["url"] for item in items} == set(urls)
    assert {*table[0]} == {"url", "markdown", "dripper"}
    assert [json.loads(one["dripper"])["source"] for one in table if one["dripper"]] == ["fake"] * 2
    assert result.stats.get("log_count/ERROR", 0) == 0


def test_only_good_pages() -> None:
    """The pipeline of the guide, which reads the field that its settings name."""
    (pipeline,) = (values["GoodPages"]() for values in code("pipelines"))
    good = {"url": "u", "dripper": {"fallback_reason": None, "quality": 0.9}}

    assert pipeline.process_item(good) is good
    for wrong in ({"fallback_reason": "oversize"}, {"quality": 0.2}, {"quality": None}):
        with pytest.raises(DropItem):
            pipeline.process_item({"url": "u", "dripper": good["dripper"] | wrong})  # type: ignore[operator]


def test_a_parquet_feed_is_not_added_to(crawl: Crawls, site: Site, tmp_path: Path) -> None:
    """The crawl stops at its start, with what to do, before it loses its items."""
    path = tmp_path / "pages.parquet"
    path.write_bytes(b"PAR1")
    settings = {**code("settings")[1], "FEEDS": {str(path): {"format": "parquet"}}}

    with pytest.raises(Exception, match="'overwrite': True"):
        crawl(spider(site.pages(1)), {name: one for name, one in settings.items() if name.isupper()})
    assert path.read_bytes() == b"PAR1"


def parquet_of(items: list[Any], **options: Any) -> pq.ParquetFile:
    file = io.BytesIO()
    exporter = ParquetItemExporter(file, **options)
    exporter.start_exporting()
    for item in items:
        exporter.export_item(item)
    exporter.finish_exporting()
    return pq.ParquetFile(io.BytesIO(file.getvalue()))


def exported(items: list[Any], **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parquet_of(items, **options).read().to_pylist()
    return found


circle: list[Any] = []
circle.append(circle)


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([None, "a", ""], [None, "a", ""]),
        ([1, None, 2], [1, None, 2]),
        ([1, 0.5], [1.0, 0.5]),
        ([True, None], [True, None]),
        ([True, 1], ["true", "1"]),
        ([["sea", "moon"], []], [["sea", "moon"], []]),
        ([["sea"], "sea"], ['["sea"]', "sea"]),
        ([{"a": 1}, "x", 7], ['{"a": 1}', "x", "7"]),
        ([2**70], [str(2**70)]),
        ([float("inf")], [float("inf")]),
        (["\ud800", "\u6d77"], ["?", "\u6d77"]),
        ([b"bytes\xff", dt.date(2024, 5, 1), object], ["bytes\ufffd", "2024-05-01", str(object)]),
        ([circle, "x"], [str(circle), "x"]),
    ],
)
def test_values_of_any_type_are_in_a_column(values: list[Any], column: list[Any]) -> None:
    assert [row["x"] for row in exported([{"x": value} for value in values])] == column


def test_columns_are_those_of_all_items() -> None:
    """Or those that the feed names, in its order and with its names; also if there are no items."""
    items = [{"a": 1}, PageItem(url="u", title="t"), {"b": "x"}]

    assert exported(items) == [
        {"a": 1, "url": None, "title": None, "b": None},
        {"a": None, "url": "u", "title": "t", "b": None},
        {"a": None, "url": None, "title": None, "b": "x"},
    ]
    assert exported(items, fields_to_export={"b": "B", "a": "A"})[0] == {"B": None, "A": 1}
    assert exported([], fields_to_export=["url"]) == []
    assert exported([]) == []


def test_many_rows() -> None:
    """They are written in groups, so that not all are in memory."""
    file = parquet_of([{"n": number} for number in range(2_500)])

    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [1_000, 1_000, 500]
    assert file.read()["n"].to_pylist() == [*range(2_500)]
