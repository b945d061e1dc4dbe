"""Sites that fail in live crawls: every request ends once, and every response is extracted."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.faults.fault_site import kind_of, pages_of
from tests.faults.harness import Crawl

BROKEN = {
    "reset": [80, 1],
    "reset_half": [80, 3],
    "half": [80, 5],
    "chunk": [80, 7],
    "garbage": [80, 9],
    "gzip_half": [80, 11],
    "gzip_lie": [80, 13],
    "header": [400, 15],
    "header_long": [80, 17],
    "empty": [80, 19],
    "pdf": [80, 21],
}


@pytest.mark.parametrize(
    ("keep", "engine", "process", "door", "processes"),
    [
        (False, "tagger", "AsyncCrawlerProcess", "middleware", 0),
        (True, "tagger", "reactorless", "middleware", 1),
    ],
)
def test_a_site_that_resets_and_cuts_off(
    crawl: Crawl, pages: int, keep: bool, engine: str, process: str, door: str, processes: int
) -> None:
    """Scrapy refuses truncated pages, or they are extracted under DOWNLOAD_FAIL_ON_DATALOSS = False."""
    every = range(pages + pages // 5)
    books = crawl(
        f"site resets, half bodies {'kept' if keep else 'refused'}, {door}, {process} ({engine})"
        f"{f', workers: {processes}' * bool(processes)}",
        engine=engine,
        process=process,
        door=door,
        processes=processes,
        site=BROKEN,
        pages=len(every),
        settings={"DOWNLOAD_FAIL_ON_DATALOSS": not keep, "DOWNLOAD_TIMEOUT": 60},
    )

    books.balance()
    books.balance_items()
    assert books.ledger["responses"] >= pages
    for kind in BROKEN:
        assert books.injected(kind) == pages_of(kind, BROKEN, every)
    came = Counter(kind_of(number, BROKEN) for number in books.ledger["callbacks"])
    failed = Counter(kind_of(int(number), BROKEN) for number in books.ledger["errbacks"])
    assert failed[None] == 0
    assert came[None] == sum(kind_of(number, BROKEN) is None for number in every)
    assert came["reset"] == 0
    assert bool(came["half"]) == keep
    assert books.group("skipped")["empty_body"] >= came["empty"]
