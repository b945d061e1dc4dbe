"""Rows of an index, from extractions and from written items, and their summary."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper import Extraction, FallbackReason
from scrapy_dripper.cli import main
from scrapy_dripper.inspection.rows import MAX_TITLE, MAX_URL, Row, Sample, read_rows
from scrapy_dripper.inspection.summary import MOST_NAMES, OTHERS, Summary
from tests.inspection.conftest import PAGE, data_of

ROW = Row("https://e.org/", "Tides", "tagger", "", "article", 0.9, 400, 4, 2, 20.0, "0990")


def test_the_row_of_an_extraction() -> None:
    extraction = Extraction(
        "https://e.org/" + "x" * 1_000,
        "Tides\n and  more " + "x" * 1_000,
        *("<p>text</p>", "text", "text"),
        "tagger",
        FallbackReason.LOW_QUALITY,
        labels=(False, True, True, False),
        page_type="article",
        quality=0.25,
        details={"blocks": 4, "milliseconds": 12.5},
    )

    row = Row.of(extraction)

    assert row == Row(row.url, row.title, "tagger", "low_quality", "article", 0.25, 4, 4, 2, 12.5, "0990")
    assert (len(row.url), len(row.title)) == (MAX_URL, MAX_TITLE)
    assert row.title.startswith("Tides and more xxx")


def test_the_rows_of_both_kinds_of_items_are_the_same(tmp_path: Path) -> None:
    """Items of `extract -f jsonl` and of a crawl with DRIPPER_META_FIELD, whatever the field is called."""
    page, records = tmp_path / "page.html", tmp_path / "records.jsonl"
    page.write_text(PAGE, encoding="utf-8")
    assert main(["extract", str(page), "-f", "jsonl", "-o", str(records), "--url", "https://e.org/"]) == 0
    record = json.loads(records.read_text(encoding="utf-8"))
    meta = {name: record[name] for name in ("source", "fallback_reason", "page_type", "quality", "blocks", "strip")}
    item = {"url": record["url"], "title": record["title"], "text": record["text"], "by": {**meta, "main_blocks": 5}}

    (row,) = read_rows(records)

    assert row is not None
    assert (row.source, row.page_type, row.blocks, row.main_blocks) == ("tagger", "article", 8, 5)
    assert row.length == len(record["text"])
    assert len(row.strip) == 8
    assert Row.of_item(item) == replace(row, quality=record["quality"])


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*ROW.__slots__, "by"]), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*ROW.__slots__, "fallback_reason", "text", "by"]), _values))
def test_any_item_is_a_row_that_json_can_hold(item: dict[str, Any]) -> None:
    """The fields of a user's items can hold anything."""
    row = Row.of_item(item)
    summary = Summary()
    summary.add(row)

    json.dumps([getattr(row, name) for name in row.__slots__], allow_nan=False)
    assert summary.text().startswith("Main content of 1 page")


def test_what_no_extraction_says_is_left_out() -> None:
    """A user's item can have fields of the same names, and the browser reads ASCII digits only."""
    row = Row.of_item({"quality": 7, "strip": "\u0663\u0664", "blocks": -1, "milliseconds": "12"})

    assert (row.quality, row.strip, row.blocks, row.milliseconds) == (None, "", 0, None)


def test_lines_that_are_no_items_are_counted_and_files_may_be_gzipped(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"url": "https://e.org/"}\n\n[1]\nnonsense\n{"id": "second"}'))

    rows = list(read_rows(path))

    assert [row and row.url for row in rows] == ["https://e.org/", None, None, "second"]
    assert main(["inspect", str(path), "-o", str(tmp_path / "index.html")]) == 0
    assert data_of(tmp_path / "index.html")["notes"] == ["Lines that are not items: 2."]


@pytest.mark.parametrize("content", [b"", b"nonsense\n", b"\x1f\x8b nonsense"])
def test_a_file_without_items_has_no_index(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(content)

    assert main(["inspect", str(path), "-o", str(tmp_path / "index.html")]) == 1

    assert str(path) in capsys.readouterr().err
    assert not (tmp_path / "index.html").exists()


def test_what_items_say_does_not_end_the_data_of_an_index(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    hostile = "</script><script>ran(1)</script><!--"
    path.write_text(json.dumps({"url": "javascript:ran(2)", "title": hostile, "page_type": hostile}), encoding="utf-8")

    assert main(["inspect", str(path), "-o", str(tmp_path / "index.html")]) == 0

    assert (tmp_path / "index.html").read_text(encoding="utf-8").count("</script>") == 2
    assert data_of(tmp_path / "index.html")["rows"][0][1] == hostile


def test_a_sample_is_all_rows_or_a_random_part_of_them() -> None:
    sample = Sample(100)
    for number in range(100):
        sample.add(replace(ROW, length=number))
    assert [row.length for row in sample.rows] == list(range(100))

    for number in range(100, 1_000):
        sample.add(replace(ROW, length=number))

    lengths = [row.length for row in sample.rows]
    assert (len(set(lengths)), sample.seen) == (100, 1_000)
    assert 350 < sum(lengths) / 100 < 650


def test_the_summary_of_a_crawl() -> None:
    summary = Summary(batch_size=8)
    for number in range(100):
        summary.add(replace(ROW, milliseconds=10.0 if number < 90 else 300.0, quality=0.95 if number else 0.4))
    summary.add(replace(ROW, source="fallback:trafilatura", reason="timeout", page_type="", quality=None))
    summary.batch(8)
    summary.batch(4)

    lines = dict(summary.lines())

    assert lines["by source"] == "tagger 100 (99.0%), fallback:trafilatura 1 (1.0%)"
    assert lines["by reason"] == "timeout 1 (1.0%)"
    assert lines["by page type"] == "article 100 (99.0%)"
    assert lines["time a page"] == "p50 10.0 ms, p95 301 ms"
    assert lines["batches"] == "2, on average 6.0 of 8 pages (75%)"
    assert lines["quality"] == "mean 0.94, p10 0.95"
    assert summary.text().splitlines()[0] == "Main content of 101 pages"


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=50))
def test_times_are_known_to_one_per_cent(times: list[float]) -> None:
    summary = Summary()
    for time in times:
        summary.add(replace(ROW, milliseconds=time))

    said = dict(summary.lines())["time a page"].replace("p50 ", "").replace("p95 ", "").replace(",", "").split()
    p50 = float(said[0])

    middle = sorted(times)[(len(times) + 1) // 2 - 1]
    assert p50 == pytest.approx(middle, rel=0.01, abs=0.6)


def test_an_empty_crawl_has_no_lines() -> None:
    assert Summary(8).lines() == []


def test_names_without_end_are_counted_together() -> None:
    """A user's function could give each page a source name of its own."""
    summary = Summary()
    for number in range(1_000):
        summary.add(replace(ROW, source=f"mine {number}"))

    counts: Counter[str] = summary.by["source"]
    assert len(counts) == MOST_NAMES + 1
    assert counts[OTHERS] == 1_000 - MOST_NAMES
    assert "of other names" in dict(summary.lines())["by source"]
