"""Other faults of crawls that last days: each in a live crawl, with its books balanced."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.faults.fault_site import kind_of, pages_of
from tests.faults.harness import Crawl

SITE = {
    "moved": [60, 1],
    "loop": [400, 3],
    "flaky": [60, 5],
    "gone": [60, 7],
    "header": [400, 9],
    "silent": [10**9, 11],
    "big": [300, 13],
    "half": [60, 15],
    "gzip_half": [60, 17],
    "pdf": [60, 19],
    "empty": [60, 21],
}
SPIDER = {
    "raise_before": [60, 2],
    "raise_after": [60, 4],
    "two": [60, 6],
    "none": [60, 8],
    "drop": [60, 10],
    "fail": [60, 12],
    "filter": [60, 14],
    "stop": [60, 16],
    "stop_fail": [60, 18],
}
ENGINE = {"raise": [60, 20], "nan": [60, 22], "die": [1000, 104]}


def test_everything_at_once(crawl: Crawl, pages: int) -> None:
    """Redirects and their loops, retries, huge headers, silence, callbacks that raise, dropped items ..."""
    every = range(pages + pages // 5)
    books = crawl(
        "everything at once, workers: 2",
        process="CrawlerProcess",
        processes=2,
        pages=len(every),
        site=SITE,
        spider=SPIDER,
        faults=ENGINE,
        settings={
            "DOWNLOAD_MAXSIZE": 200_000,
            "RETRY_ENABLED": True,
            "RETRY_TIMES": 1,
            "ITEM_PIPELINES": {"tests.faults.fault_crawl.Mishaps": 300},
            "SPIDER_MIDDLEWARES": {"tests.faults.fault_crawl.Filter": 500},
        },
    )

    books.balance()
    ledger = books.ledger
    assert ledger["responses"] >= pages
    assert {kind: books.injected(kind) for kind in SITE} == {kind: pages_of(kind, SITE, every) for kind in SITE}
    come = {number for number in every if kind_of(number, SITE) in (None, "moved", "flaky")}
    for kind in ("raise_before", "none", "two", "drop"):
        assert set(books.injected(kind)) >= come & set(pages_of(kind, SPIDER, every))
    assert books.stats["spider_exceptions/RuntimeError"] == len(
        books.injected("raise_before") + books.injected("raise_after")
    )
    assert Counter(map(int, ledger["dropped"])) == Counter(books.injected("drop"))
    assert Counter(map(int, ledger["failed"])) == Counter(books.injected("fail"))
    assert Counter(map(int, ledger["filtered"])) == Counter(books.injected("filter"))
    for number in pages_of("two", SPIDER, every):
        if number in come:
            assert {f"{number}", f"{number}b"} <= set(books.by)
    for number in pages_of("raise", ENGINE, every):
        if str(number) in books.by and number in come:
            assert books.by[str(number)] == ("fallback:html", "engine_error")


def test_pages_from_a_cache_and_one_response_for_two_requests(crawl: Crawl, pages: int, tmp_path: Path) -> None:
    """A cached page is extracted like any other; a response that comes twice is extracted once, for both requests."""
    books = crawl(
        "HTTP cache; one response for two requests",
        pages=pages // 2 + 50,
        again=True,
        settings={
            "HTTPCACHE_ENABLED": True,
            "HTTPCACHE_DIR": str(tmp_path / "cache"),
            "DOWNLOADER_MIDDLEWARES": {"tests.faults.fault_crawl.Twice": 890},
        },
    )

    books.balance()
    assert len(books.by) == pages + 100
    assert books.injected("twice")
    assert books.stats["httpcache/hit"] > 0
    assert set(books.by.values()) == {("rules", None)}
