"""Live crawls that are stopped while batches are being labelled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import Crawl


def workers(processes: int) -> str:
    """Return the table's words for a number of worker processes."""
    return f", workers: {processes}" if processes else ""


@pytest.mark.parametrize(
    ("name", "door", "process", "processes"),
    [
        ("ERRORCOUNT", "middleware", "reactorless", 0),
        ("ITEMCOUNT", "pipeline", "reactorless", 1),
        ("PAGECOUNT", "middleware", "AsyncCrawlerProcess", 2),
        ("TIMEOUT", "callback", "CrawlerProcess", 1),
    ],
)
def test_closespider_within_a_batch(
    crawl: Crawl, pages: int, name: str, door: str, process: str, processes: int
) -> None:
    """Pages downloaded by then are extracted; no page waits for a batch that will never be full."""
    values = {"ITEMCOUNT": pages, "PAGECOUNT": pages, "TIMEOUT": 0.2, "ERRORCOUNT": pages // 50}
    settings: dict[str, Any] = {f"CLOSESPIDER_{name}": values[name], "DRIPPER_BATCH_SIZE": 100}
    if name == "TIMEOUT":
        settings["EXTENSIONS"] = {
            "scrapy.extensions.closespider.CloseSpider": None,
            "tests.faults.fault_crawl.LateCloseSpider": 0,
        }

    books = crawl(
        f"CLOSESPIDER_{name} within a batch, {door}, {process}{workers(processes)}",
        door=door,
        process=process,
        processes=processes,
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
    ("name", "door", "process", "processes"),
    [
        ("SIGINT", "pipeline", "reactorless", 0),
        ("SIGTERM", "middleware", "CrawlerProcess", 1),
    ],
)
def test_one_signal_within_a_batch(
    crawl: Crawl, pages: int, name: str, door: str, process: str, processes: int
) -> None:
    """The crawl takes no new pages and finishes those in progress."""
    books = crawl(
        f"{name}, {door}, {process}{workers(processes)}",
        door=door,
        process=process,
        processes=processes,
        signals=[name],
        pages=100 * pages,
    )

    books.balance(complete=False)
    books.balance_items()
    assert books.injected(name) == [0]
    assert books.stats["finish_reason"] == "shutdown"
    assert books.ledger["responses"] >= pages
    assert len(books.ledger["callbacks"]) == books.ledger["responses"]
    assert set(books.group("pages")) == {"rules"}


def test_one_signal_while_workers_are_stuck(crawl: Crawl, pages: int) -> None:
    """Every page ends within its time: those that hung fall back."""
    books = crawl(
        "SIGINT, engine hangs for some pages, workers: 2",
        processes=2,
        signals=["SIGINT"],
        stuck=True,
        pages=100 * pages,
        settings={"DRIPPER_TIMEOUT": 1},
    )

    books.balance(complete=False)
    books.balance_items()
    assert books.injected("SIGINT") == [0]
    assert len(books.ledger["callbacks"]) == books.ledger["responses"] >= pages
    late = {int(id_) for id_, by in books.by.items() if by == ("fallback:html", "timeout")}
    assert late == set(books.injected("stuck"))
    assert set(books.group("pages")) == {"rules", "fallback:html"}


@pytest.mark.parametrize(("process", "processes"), [("CrawlerProcess", 0), ("reactorless", 2)])
def test_two_signals_while_the_engine_hangs(crawl: Crawl, pages: int, process: str, processes: int) -> None:
    """The process ends though the engine never answers; the items so far came out once and are right."""
    books = crawl(
        f"SIGINT twice, engine hangs, {process}{workers(processes)}",
        process=process,
        processes=processes,
        stuck=bool(processes),
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


def test_a_crawl_that_is_killed(crawls: Any, pages: int) -> None:
    """Its workers end with it, even those that hold the GIL."""
    crawls(
        "kill -9 of the crawl, 2 workers hang",
        processes=2,
        signals=["SIGKILL"],
        stuck=True,
        pages=100 * pages,
        settings={"DRIPPER_TIMEOUT": 3600},
    )


def test_a_job_that_is_paused_and_resumed(crawl: Crawl, pages: int, tmp_path: Path) -> None:
    """Both runs together yield every page of the site exactly once, with its own content."""
    site = 50 * (pages // 20)
    job = {
        "process": "CrawlerProcess",
        "lists": True,
        "processes": 2,
        "pages": site,
        "settings": {"JOBDIR": str(tmp_path / "job"), "DRIPPER_BATCH_SIZE": 30},
    }

    paused = crawl("JOBDIR, paused by SIGINT, workers: 2", **job, signals=["SIGINT"])
    resumed = crawl("JOBDIR, resumed, workers: 2", **job, at=1_000_000)

    paused.balance(complete=False)
    resumed.balance(complete=False)
    assert paused.stats["finish_reason"] == "shutdown"
    assert resumed.stats["finish_reason"] == "finished"
    assert paused.ledger["responses"] >= pages
    assert resumed.by
    came_out = Counter([*paused.by, *resumed.by])
    assert came_out == Counter(str(number) for number in range(site))
    assert {source for books in (paused, resumed) for source, _ in books.by.values()} == {"rules"}
