"""Live crawls that are stopped while batches are on their way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from harness import Crawl


@pytest.mark.parametrize(
    ("name", "door", "process"),
    [
        ("ITEMCOUNT", "middleware", "AsyncCrawlerProcess"),
        ("PAGECOUNT", "callback", "CrawlerProcess"),
        ("TIMEOUT", "pipeline", "AsyncCrawlerProcess"),
        ("ERRORCOUNT", "middleware", "reactorless"),
    ],
)
def test_closespider_within_a_batch(crawl: Crawl, pages: int, name: str, door: str, process: str) -> None:
    """What has been downloaded by then gets its content; nobody waits for a batch that will never be full."""
    values = {"ITEMCOUNT": pages, "PAGECOUNT": pages, "TIMEOUT": 0.2, "ERRORCOUNT": pages // 50}
    settings: dict[str, Any] = {f"CLOSESPIDER_{name}": values[name], "DRIPPER_BATCH_SIZE": 100}
    if name == "TIMEOUT":
        settings["EXTENSIONS"] = {"scrapy.extensions.closespider.CloseSpider": None, "fault_crawl.LateCloseSpider": 0}

    books = crawl(
        f"CLOSESPIDER_{name} within a batch, {door}, {process}",
        door=door,
        process=process,
        pages=100 * pages,
        spider={"raise_after": [50, 25]} if name == "ERRORCOUNT" else {},
        settings=settings,
    )

    books.balance(complete=False)
    books.balance_items()
    assert books.stats["finish_reason"] == f"closespider_{name.lower()}"
    assert books.ledger["responses"] >= pages - 50
    assert len(books.ledger["callbacks"]) == books.ledger["responses"]
    assert set(books.group("pages")) == {"rules"}


@pytest.mark.parametrize(
    ("name", "door", "process"),
    [
        ("SIGTERM", "callback", "AsyncCrawlerProcess"),
        ("SIGINT", "pipeline", "reactorless"),
    ],
)
def test_one_signal_within_a_batch(crawl: Crawl, pages: int, name: str, door: str, process: str) -> None:
    """The crawl takes no new pages and finishes those that it has."""
    books = crawl(f"{name}, {door}, {process}", door=door, process=process, signals=[name], pages=100 * pages)

    books.balance(complete=False)
    books.balance_items()
    assert books.injected(name) == [0]
    assert books.stats["finish_reason"] == "shutdown"
    assert books.ledger["responses"] >= pages
    assert len(books.ledger["callbacks"]) == books.ledger["responses"]
    assert set(books.group("pages")) == {"rules"}


@pytest.mark.parametrize("process", ["CrawlerProcess", "reactorless"])
def test_two_signals_while_the_engine_hangs(crawl: Crawl, pages: int, process: str) -> None:
    """The process ends though the engine never answers; what had come out by then came out once, and is right."""
    books = crawl(
        f"SIGINT twice, engine hangs, {process}",
        process=process,
        signals=["SIGINT", "SIGINT"],
        pages=100 * pages,
        patience=0,
        settings={"DRIPPER_TIMEOUT": 3600},
    )

    books.balance(finished=False)
    assert books.injected("SIGINT") == [0, 1]
    asked, done = books.ledger["asked"], books.stat("pages")
    assert books.ledger["responses"] >= pages
    # Those are missing that were waiting for the engine, and a few that had just been answered.
    assert books.unaccounted().total() >= asked - done > 0
    assert len(books.by) <= done


def test_a_job_that_is_paused_and_resumed(crawl: Crawl, pages: int, tmp_path: Path) -> None:
    """Over both runs every page of the site comes out exactly once, with its own content."""
    site = 50 * (pages // 20)
    job = {
        "process": "CrawlerProcess",
        "lists": True,
        "pages": site,
        "settings": {"JOBDIR": str(tmp_path / "job"), "DRIPPER_BATCH_SIZE": 30},
    }

    paused = crawl("JOBDIR, paused by SIGINT", **job, signals=["SIGINT"])
    resumed = crawl("JOBDIR, resumed", **job, at=1_000_000)

    paused.balance(complete=False)
    resumed.balance(complete=False)
    assert paused.stats["finish_reason"] == "shutdown"
    assert resumed.stats["finish_reason"] == "finished"
    assert paused.ledger["responses"] >= pages
    assert resumed.by
    came_out = Counter([*paused.by, *resumed.by])
    assert came_out == Counter(str(number) for number in range(site))
    assert {source for books in (paused, resumed) for source, _ in books.by.values()} == {"rules"}
