"""Worker processes that die, hang and use too much memory, in live crawls: only the pages at fault are affected."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import scrapy_dripper.models

from scrapy_dripper.workers.pool import STAND_INS
from tests.faults.books import Books
from tests.faults.fault_site import Faults, kind_of, pages_of
from tests.faults.harness import Crawl

SOFT = {
    "raise": [101, 1],
    "memory": [101, 2],
    "onnx": [101, 3],
    "nan": [101, 4],
    "short": [101, 5],
    "long": [101, 6],
    "fewer": [101, 7],
}
HARD = {"exit": [800, 30], "die": [800, 60], "os_exit": [800, 90], "segfault": [800, 120], "eat": [800, 140]}
STUCK = {"sleep": [2000, 75], "spin": [2000, 135]}
REASONS = {
    **dict.fromkeys([*SOFT, "eat"], "engine_error"),
    **dict.fromkeys(["exit", "die", "os_exit", "segfault"], "worker_error"),
    **dict.fromkeys(STUCK, "timeout"),
}


def check(books: Books, faults: Faults, pages: int, fallback: str = "html") -> None:
    """Check the books and the reason of every page: bad pages fall back with their content, others do not."""
    books.balance()
    books.balance_items()
    assert set(books.by) == set(map(str, range(pages + 50)))
    for kind in faults:
        assert books.injected(kind) == pages_of(kind, faults, range(pages + 50)), kind
    found = {id_: by for id_, by in books.by.items() if by != ("rules", None)}
    bad = {id_: kind_of(int(id_), faults) for id_ in books.by}
    assert found == {id_: (f"fallback:{fallback}", REASONS[kind]) for id_, kind in bad.items() if kind is not None}


@pytest.mark.parametrize(
    ("door", "process", "processes", "faults"),
    [
        ("middleware", "AsyncCrawlerProcess", 1, {**SOFT, **HARD}),
        ("pipeline", "CrawlerProcess", 2, {**SOFT, **STUCK}),
        ("callback", "reactorless", 2, {**HARD, **STUCK}),
    ],
)
def test_an_engine_that_fails_now_and_then(
    crawl: Crawl, pages: int, door: str, process: str, processes: int, faults: Faults
) -> None:
    """It raises, answers nonsense, takes all memory, hangs, holds the interpreter, ends its process, follows a wild
    pointer: only for the pages that do it.
    """
    books = crawl(
        f"engine fails now and then, {door}, {process}, workers: {processes}",
        door=door,
        process=process,
        processes=processes,
        faults=faults,
        seconds=3600,
        settings={"DRIPPER_TIMEOUT": 3, "DRIPPER_WORKER_MEMORY": 512},
    )

    check(books, faults, pages)
    deaths = sum(REASONS[kind_of(int(id_), faults) or "raise"] == "worker_error" for id_ in books.by)
    assert books.stat("workers/worker_error") >= 2 * deaths  # each such page is tried twice
    assert books.stat("workers/max") <= processes + max(STAND_INS, processes)


@pytest.mark.parametrize(
    ("kind", "fallback", "reason", "every"),
    [
        ("os_exit", "html", "worker_error", 33),
        ("spin", "none", "timeout", 50),
    ],
)
def test_an_engine_that_always_fails(
    crawl: Crawl, pages: int, kind: str, fallback: str, reason: str, every: int
) -> None:
    """Every page falls back, though each costs two workers or the whole timeout."""
    books = crawl(
        f"engine always fails: {kind}, workers: 2",
        processes=2,
        pages=pages // every,
        faults={kind: [1, 0]},
        settings={"DRIPPER_TIMEOUT": 1 if kind == "spin" else 2, "DRIPPER_FALLBACK": fallback},
    )

    books.balance()
    books.balance_items()
    assert len(books.by) == pages // every
    assert set(books.by.values()) == {(f"fallback:{fallback}", reason)}


def test_workers_that_are_killed(crawl: Crawl, pages: int) -> None:
    """The system kills one now and then: its pages are tried again, and fall back only if they are hit twice."""
    books = crawl(
        "a worker is killed -9 again and again, workers: 2",
        processes=2,
        kill_worker=max(1, pages // 20),
    )

    books.balance()
    books.balance_items()
    kills = len(books.injected("kill -9"))
    assert len(books.by) == pages + 50
    assert kills >= 10
    assert books.stat("workers/worker_error") <= kills
    assert 2 * books.stat("fallback/worker_error") <= kills
    assert set(books.by.values()) <= {("rules", None), ("fallback:html", "worker_error")}


def test_a_model_that_vanishes_and_comes_back(crawl: Crawl, pages: int, tmp_path: Path) -> None:
    """When its worker dies, no other one has a model: pages fall back until the folder is there again. The log says so
    once."""
    model = tmp_path / "tagger"
    shutil.copytree(Path(scrapy_dripper.models.__path__[0]) / "tagger", model)

    books = crawl(
        "model vanishes, its worker dies, the model comes back (tagger), workers: 1",
        engine="tagger",
        processes=1,
        vanish=str(model),
        at=pages // 4,
        back=20,
        settings={"DRIPPER_MODEL": str(model)},
    )

    books.balance()
    books.balance_items()
    assert len(books.by) == pages + 50
    assert books.injected("vanish") == books.injected("back") == [0]
    assert set(books.by.values()) == {("tagger", None), ("fallback:html", "engine_lost")}
    assert books.by[str(pages + 49)] == ("tagger", None)
    assert books.stat("fallback/engine_lost") >= 20
    assert books.log.count(f"The engine is lost: No tagger model in {model}") == 1


def test_a_fallback_that_fails(crawl: Crawl, pages: int) -> None:
    """If it raises, the result is empty; if it hangs or dies, the item stays as it is. Other pages are not affected."""
    failing = {"raise": [20, 5]}
    fallback = {"raise": [400, 25], "os_exit": [400, 65], "sleep": [2000, 105], "spin": [2000, 145]}
    books = crawl(
        "fallback fails now and then, workers: 2",
        processes=2,
        faults=failing,
        fallback_faults=fallback,
        settings={"DRIPPER_TIMEOUT": 2, "DRIPPER_FALLBACK": "tests.faults.fault_worker.fallback"},
    )

    books.balance()
    books.balance_items()
    assert len(books.by) == pages + 50
    expected = {
        None: ("fallback:tests.faults.fault_worker.fallback", "engine_error"),
        "raise": ("fallback:empty", "engine_error"),
        "os_exit": ("fallback:none", "worker_error"),
        **dict.fromkeys(("sleep", "spin"), ("fallback:none", "timeout")),
    }
    for id_, by in books.by.items():
        bad = kind_of(int(id_), failing)
        assert by == (expected[kind_of(int(id_), fallback)] if bad else ("rules", None)), id_
    for kind in fallback:
        assert books.injected(f"fallback_{kind}") == pages_of(kind, fallback, range(pages + 50))


def test_no_process_for_a_while(crawl: Crawl, pages: int) -> None:
    """The pages wait for a process; none is lost or falls back."""
    books = crawl(
        "worker killed -9, no process can be started for a while, workers: 1",
        processes=1,
        kill_worker=pages // 2,
        no_process=[1, 5],
    )

    books.balance()
    books.balance_items()
    assert len(books.injected("no_process")) >= 3
    assert books.by == {str(number): ("rules", None) for number in range(pages + 50)}


def test_no_process_ever_again(crawl: Crawl, pages: int) -> None:
    """Items that cannot be extracted any more come out as they are, with the reason."""
    books = crawl(
        "worker killed -9, no process can be started ever again, workers: 2",
        processes=2,
        kill_worker=pages // 2,
        no_process=[1, 10**9],
        restart_seconds=0.01,
    )

    books.balance()
    books.balance_items()
    assert len(books.by) == pages + 50
    assert set(books.by.values()) == {("rules", None), ("fallback:none", "worker_error")}
    assert books.by[str(pages + 49)] == ("fallback:none", "worker_error")


def test_an_engine_that_keeps_memory(crawl: Crawl, pages: int) -> None:
    """A worker that has used half of its memory limit is replaced between two batches; no page is affected."""
    books = crawl(
        "engine keeps memory, workers: 2",
        processes=2,
        faults={"leak": [5, 2]},
        # Something is kept once a batch at most, so large batches would keep too little on a fast machine.
        settings={"DRIPPER_WORKER_MEMORY": 400, "DRIPPER_BATCH_SIZE": 2},
    )

    books.balance()
    books.balance_items()
    assert books.by == {str(number): ("rules", None) for number in range(pages + 50)}
    assert len(books.ledger["workers"]) >= 3
    assert books.stat("workers/worker_error") == 0


def test_three_crawls_in_one_process(crawls: Any, pages: int) -> None:
    """Each has its own workers, and those of one die: the other two are not affected."""
    failing = {"os_exit": [400, 50], "raise": [20, 3]}
    books = crawls(
        "three crawls in a process, workers: 2 each",
        process="CrawlerProcess",
        processes=2,
        settings={"DRIPPER_TIMEOUT": 30},
        crawls=[
            {"name": "fails", "faults": failing, "own": {"DRIPPER_MODEL": "fails"}},
            {"name": "good", "own": {"DRIPPER_MODEL": "good"}},
            {"name": "no_items", "spider": {"none": [1, 0]}, "own": {"DRIPPER_MODEL": "good"}},
        ],
    )

    for name in ("good", "no_items"):
        books[name].balance()
        books[name].balance_items()
    check(books["fails"], failing, pages)
    assert books["good"].group("pages") == {"rules": pages + 50}
    assert not [name for name in books["no_items"].stats if name.startswith("dripper/")]
