"""Feeds that cannot be written, in a live crawl."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.harness import Crawl


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_is_full(crawl: Crawl, pages: int, tmp_path: Path) -> None:
    """One feed has no room and one fills up half-way; a third has every item, and the crawl ends as usual."""
    half, good = tmp_path / "half.jsonl", tmp_path / "good.csv"

    fields = {"fields": ["id", "main_html", "markdown"], "format": "jsonlines"}
    feeds = {str(good): {"format": "csv", "fields": ["id"]}, str(half): fields, "/dev/full": fields}
    books = crawl("disk of the feeds is full", file_limit=pages * 200, settings={"FEEDS": feeds})

    errors = {error: books.log.count(error) for error in ("No space left on device", "File too large")}
    books.ledger["injected"] = {error: range(count) for error, count in errors.items()}
    books.balance()
    books.balance_items()
    assert len(books.by) == pages + 50
    assert all(errors.values())
    assert 0 < half.stat().st_size <= pages * 200
    assert sorted(map(int, good.read_text().split()[1:])) == list(range(pages + 50))
