"""Engines that fail in live crawls without worker processes: no item is lost, and each page names its outcome."""

from __future__ import annotations

import pytest

from tests.faults.fault_site import kind_of, pages_of
from tests.faults.harness import Crawl

NOW_AND_THEN = {
    "raise": [101, 1],
    "memory": [101, 2],
    "onnx": [101, 3],
    "nan": [101, 4],
    "short": [101, 5],
    "long": [101, 6],
    "fewer": [101, 7],
    "exit": [500, 110],
    "die": [500, 130],
}


@pytest.mark.parametrize(
    ("door", "process"),
    [("pipeline", "CrawlerProcess"), ("callback", "reactorless")],
)
def test_an_engine_that_fails_now_and_then(crawl: Crawl, pages: int, door: str, process: str) -> None:
    """It raises, runs out of memory, answers nonsense, and ends its thread; other pages are not affected."""
    books = crawl(
        f"engine fails now and then, {door}, {process}", door=door, process=process, faults=NOW_AND_THEN, no_thread=7
    )

    books.balance()
    books.balance_items()
    assert len(books.by) == pages + 50
    assert books.injected("no_thread")
    for kind in NOW_AND_THEN:
        assert books.injected(kind) == pages_of(kind, NOW_AND_THEN, range(pages + 50))
    assert books.by == {
        id_: ("rules", None) if kind_of(int(id_), NOW_AND_THEN) is None else ("fallback:html", "engine_error")
        for id_ in books.by
    }


@pytest.mark.parametrize(
    ("kind", "door", "fallback"),
    [("raise", "middleware", "trafilatura"), ("die", "middleware", "none")],
)
def test_an_engine_that_always_fails(crawl: Crawl, pages: int, kind: str, door: str, fallback: str) -> None:
    """Every page falls back."""
    books = crawl(
        f"engine always fails: {kind}, {door}",
        door=door,
        faults={kind: [1, 0]},
        settings={"DRIPPER_FALLBACK": fallback},
    )

    books.balance()
    books.balance_items()
    assert len(books.by) == pages + 50
    assert set(books.by.values()) == {(f"fallback:{fallback}", "engine_error")}
