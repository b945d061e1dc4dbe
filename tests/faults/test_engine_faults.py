"""Engines that fail in live crawls: no item is lost, and each page names its outcome."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import scrapy_dripper.models

from tests.faults.books import Books
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
    "sleep": [1000, 140],
}


def assert_only_the_bad_fall_back(books: Books, faults: dict[str, list[int]]) -> None:
    """Check the reason of every page. On a busy machine a good page can be too slow as well."""
    for id_, (source, reason) in books.by.items():
        kind = kind_of(int(id_), faults)
        if kind is None:
            assert (source, reason) == ("rules", None) or reason == "timeout", id_
        elif kind == "sleep":
            assert reason == "timeout", id_
        else:
            assert reason in ("engine_error", "timeout"), id_


@pytest.mark.parametrize(
    ("door", "process"),
    [("middleware", "AsyncCrawlerProcess"), ("pipeline", "CrawlerProcess"), ("callback", "reactorless")],
)
def test_an_engine_that_fails_now_and_then(crawl: Crawl, pages: int, door: str, process: str) -> None:
    """It raises, runs out of memory, answers nonsense, kills its thread and hangs; other pages are not affected."""
    books = crawl(
        f"engine fails now and then, {door}, {process}",
        door=door,
        process=process,
        faults=NOW_AND_THEN,
        seconds=4,
        settings={"DRIPPER_TIMEOUT": 3},
    )

    books.balance()
    books.balance_items()
    assert len(books.by) == pages + 50
    assert "Giving the engine up" not in books.log
    for kind in NOW_AND_THEN:
        assert books.injected(kind) == pages_of(kind, NOW_AND_THEN, range(pages + 50))
    assert_only_the_bad_fall_back(books, NOW_AND_THEN)


@pytest.mark.parametrize(
    ("kind", "door", "fallback", "reason"),
    [
        ("raise", "middleware", "trafilatura", "engine_error"),
        ("nan", "pipeline", "html", "engine_error"),
        ("sleep", "callback", "empty", "timeout"),
        ("die", "middleware", "none", "engine_error"),
    ],
)
def test_an_engine_that_always_fails(
    crawl: Crawl, pages: int, kind: str, door: str, fallback: str, reason: str
) -> None:
    """Every page falls back. If threads must be replaced for it, the engine is given up."""
    books = crawl(
        f"engine always fails: {kind}, {door}",
        door=door,
        faults={kind: [1, 0]},
        seconds=600,
        settings={"DRIPPER_TIMEOUT": 1 if kind == "sleep" else 30, "DRIPPER_FALLBACK": fallback},
    )

    books.balance()
    books.balance_items()
    assert len(books.by) == pages + 50
    assert set(books.by.values()) == {(f"fallback:{fallback}", reason)}
    assert ("Giving the engine up" in books.log) == (kind in ("sleep", "die"))


def test_threads_that_die_while_they_wait_for_a_batch_to_fill(crawl: Crawl, pages: int) -> None:
    """The pages collected by then are not lost, though some new threads do not start."""
    books = crawl(
        "thread dies waiting for its timer; threads do not start",
        timer=pages // 6,
        no_thread=4,
        settings={"DRIPPER_BATCH_SIZE": 400, "DRIPPER_BATCH_WAIT": 0.5},
    )

    books.balance()
    books.balance_items()
    assert len(books.by) == pages + 50
    assert len(books.injected("timer")) >= 3
    assert len(books.injected("no_thread")) >= 1


def test_a_model_that_vanishes(crawl: Crawl, pages: int, tmp_path: Path) -> None:
    """The tagger's thread dies after its folder is gone: the engine cannot be loaded again and is given up."""
    model = tmp_path / "tagger"
    shutil.copytree(Path(scrapy_dripper.models.__path__[0]) / "tagger", model)

    books = crawl(
        "model vanishes, then the thread dies (tagger)",
        engine="tagger",
        vanish=str(model),
        at=pages // 2,
        settings={"DRIPPER_MODEL": str(model)},
    )

    books.balance()
    books.balance_items()
    assert len(books.by) == pages + 50
    assert not model.exists()
    assert books.injected("vanish") == [0]
    assert "Giving the engine up" in books.log
    sources: dict[str, Any] = books.group("pages")
    assert sources["tagger"] > 0
    assert sources["tagger"] + sources["fallback:html"] == pages + 50


def test_three_crawls_in_one_process_of_which_one_fails(crawls: Any, pages: int) -> None:
    """The engine of one dies for good; the others are not affected. The crawl without items has no stats of ours."""
    books = crawls(
        "three crawls in a process",
        process="CrawlerProcess",
        crawls=[
            {"name": "fails", "faults": {"die": [1, 0]}},
            {"name": "good"},
            {"name": "no_items", "spider": {"none": [1, 0]}},
        ],
    )

    for one in books.values():
        one.balance()
        one.balance_items()
    assert books["fails"].group("fallback") == {"engine_error": pages + 50}
    assert books["good"].group("pages") == {"rules": pages + 50}
    assert not [name for name in books["no_items"].stats if name.startswith("dripper/")]
