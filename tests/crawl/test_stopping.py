"""Crawls that are stopped while batches are being labelled: they end in bounded time, and lose nothing."""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.conftest import Start
from tests.crawl.crawling import TIMES, Crawls, Site, eventually, page, workers
from tests.crawl.processes import Program
from tests.faults.ledger import DOORS, SETTINGS, fault_spider, note
from tests.workers.children import gone

WORKERS = workers(2, batch_size=8)


def test_p03_ctrl_c_while_a_batch_waits_for_more_pages(start: Start, site: Site) -> None:
    """The batch is sent before it is full, and the crawl ends normally."""
    process = start("AsyncCrawlerProcess", {"DRIPPER_BATCH_WAIT": 1}, urls=site.pages(3))
    process.wait_for("parsed", 3)

    process.send_signal()

    assert process.end() == 0
    assert len(process.items) == 3
    assert all(item["markdown"] for item in process.items)


def test_p05_ctrl_c_once_finishes_what_waits_and_says_how_much(start: Start, site: Site) -> None:
    """Every downloaded page is extracted, also those that are held back, and the log explains the delay."""
    process = start("AsyncCrawlerProcess", {"DRIPPER_BATCH_SIZE": 3}, urls=site.pages(8), engine="held")
    process.wait_for("parsed", 6)
    process.wait_for("labelling")
    eventually("two responses held back", lambda: len(site.seen) == 8)
    time.sleep(0.5)
    process.send_signal()

    process.wait_for("8 pages are still waiting to be extracted")
    process.say()

    assert process.end() == 0
    assert len(process.items) == 8
    assert all(item["markdown"] for item in process.items)
    assert sum("still wait" in line for line in process.logged) == 1


@pytest.mark.parametrize(
    ("name", "value", "door", "processes"),
    [
        ("ERRORCOUNT", 2, "middleware", 0),
        ("ITEMCOUNT", 40 * TIMES, "pipeline", 1),
        ("PAGECOUNT", 40 * TIMES, "middleware", 2),
        ("TIMEOUT", 0.5, "callback", 0),
    ],
)
def test_closespider_within_a_batch(
    crawl: Crawls, site: Site, name: str, value: float, door: str, processes: int
) -> None:
    """Pages downloaded by then are extracted; no page waits for a batch that will never be full."""
    faults = {30 * TIMES: "raise after", 40 * TIMES: "raise after"} if name == "ERRORCOUNT" else {}
    spider = fault_spider(site.pages(5_000), faults, door)
    settings = SETTINGS | DOORS[door] | workers(processes, batch_size=100) | {f"CLOSESPIDER_{name}": value}
    result = crawl(spider, settings)

    spider.ledger.balance(result, complete=False)
    assert result.stats["finish_reason"] == f"closespider_{name.lower()}"
    assert {source for source, _ in spider.ledger.by.values()} == {"truth" if processes else "fake"}


def settled(program: Program, expected: set[Any]) -> None:
    """Check that every page that was parsed came out once, with its own content, and that nothing is left."""
    parsed = Counter(line.removeprefix("parsed ") for line in program.said if line.startswith("parsed "))
    out = Counter(item["url"] for item in program.items)
    reasons = Counter(f"fallback/{reason}" for item in program.items if (reason := item["by"]["fallback_reason"]))
    note(parsed.total(), out.total(), reasons, (parsed - out).total())
    assert out == parsed
    assert all(f"page {item['url'].rpartition('/')[2]}," in item["markdown"] for item in program.items)
    assert {item["by"]["fallback_reason"] for item in program.items} == expected
    assert "left" in program.said


@pytest.mark.parametrize(("kind", "number"), [("CrawlerProcess", signal.SIGTERM), ("reactorless", signal.SIGINT)])
def test_one_signal_while_workers_are_stuck(start: Start, site: Site, kind: str, number: int) -> None:
    """The crawl takes no new pages, and those in progress end within their time: those that hang fall back."""
    site.routes["/page/30"] = ("text/html", page(30, "<p>STICK </p>").encode())
    process = start(kind, WORKERS | {"DRIPPER_TIMEOUT": 1.5}, urls=site.pages(2_000 * TIMES), engine="real", check=True)
    process.wait_for("parsed", 60 * TIMES)
    process.send_signal(number)

    assert process.end() == 0
    assert "closed shutdown" in process.said
    settled(process, {None, "timeout"})
    assert len(process.items) < 2_000 * TIMES


@pytest.mark.parametrize(("kind", "engine"), [("CrawlerProcess", "hung"), ("reactorless", "real")])
def test_p04_two_signals_while_the_engine_hangs(start: Start, site: Site, kind: str, engine: str) -> None:
    """The process ends though the engine never answers; the items so far came out once."""
    for number in range(4, 60):  # which leaves most of the first 12 waiting
        site.routes[f"/page/{number}"] = ("text/html", page(number, "<p>STICK </p>").encode())
    settings = {"DRIPPER_TIMEOUT": 3_600, **(WORKERS if engine == "real" else {})}
    process = start(kind, settings, urls=site.pages(2_000), engine=engine)
    process.wait_for("parsed", 12)
    process.send_signal()
    process.wait_for("still waiting to be extracted")
    process.send_signal()

    process.end()
    urls = [item["url"] for item in process.items]
    assert len(set(urls)) == len(urls) < sum(line.startswith("parsed") for line in process.said)


def test_a_crawl_that_is_killed(start: Start, site: Site) -> None:
    """Its workers end with it, even those that hold the GIL."""
    for number in range(20):
        site.routes[f"/page/{number}"] = ("text/html", page(number, "<p>HANG </p>").encode())
    process = start("AsyncCrawlerProcess", WORKERS | {"DRIPPER_TIMEOUT": 3_600}, urls=site.pages(20), engine="real")
    process.wait_for("parsed", 16)
    pids = process.children()
    process.send_signal(signal.SIGKILL)

    assert process.end() == -signal.SIGKILL
    deadline = time.monotonic() + 5
    while left := [pid for pid in pids if not gone(pid)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


def test_a_job_that_is_paused_and_resumed(start: Start, site: Site, tmp_path: Path) -> None:
    """Both runs together yield every page of the site exactly once, with its own content."""
    settings = WORKERS | {"JOBDIR": str(tmp_path), "CONCURRENT_REQUESTS": 4, "DOWNLOAD_DELAY": 0.01}
    urls = site.pages(150 * TIMES)
    paused = start("CrawlerProcess", settings, urls=urls, engine="real", check=True)
    paused.wait_for("parsed", 40 * TIMES)
    paused.send_signal()
    assert paused.end() == 0
    resumed = start("CrawlerProcess", settings, urls=urls, engine="real", check=True)
    assert resumed.end() == 0

    assert "closed shutdown" in paused.said
    assert "closed finished" in resumed.said
    for process in (paused, resumed):
        settled(process, {None})
    assert Counter(item["url"] for process in (paused, resumed) for item in process.items) == Counter(urls)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")
def test_a_crawl_that_is_suspended_gives_no_page_up(start: Start, site: Site, tmp_path: Path) -> None:
    """The time for which it is suspended does not count, although it is longer than the limit."""
    limit, flag = 4.0, tmp_path / "flag"
    site.routes["/page/0"] = ("text/html", page(0, f"<p>THEN WAIT-FOR {flag} </p>").encode())
    # The limit lets the fallback have the page, which waits for the flag.
    settings = workers(1, limits={"blocks": 1}, fallback="tests.workers.engines.fallback", timeout=limit)
    process = start("AsyncCrawlerProcess", settings, urls=site.pages(1), engine="real")
    process.wait_for("parsed")
    time.sleep(0.5)

    process.send_signal(signal.SIGSTOP)
    time.sleep(1.5 * limit)
    process.send_signal(signal.SIGCONT)
    flag.touch()

    assert process.end() == 0
    assert [item["by"]["fallback_reason"] for item in process.items] == ["oversize"]
