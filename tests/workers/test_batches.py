"""Batches on their way through the workers: which page is blamed, which pages are retried, that each is settled once,
and where a crawl finds workers."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.crawl import batcher as batcher_module
from scrapy_dripper.crawl.batcher import Batcher, most_waiting
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.testing import FakeEngine
from scrapy_dripper.workers import pool as module
from scrapy_dripper.workers.pool import Pool
from scrapy_dripper.workers.process import StartError, WorkerError
from scrapy_dripper.workers.wire import Task
from tests.workers.children import OWN, SECONDS, Pools, own

TIMEOUT, DEAD = FallbackReason.TIMEOUT, FallbackReason.WORKER_ERROR


@dataclass
class Seen:
    """Stands for the stats of a crawl, and keeps what comes out of a batcher."""

    pages: list[Extraction] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def count(self, name: str, value: int = 1) -> None:
        self.counts[name] += value

    def peak(self, name: str, value: int) -> None:
        pass

    def batch(self, pages: int) -> None:
        self.batches.append(pages)

    def page(self, extraction: Extraction, _: Document) -> None:
        self.counted.append(extraction.url)

    def stopping(self) -> bool:
        return False


def submit(batcher: Batcher, texts: Sequence[str], seen: Seen) -> list[asyncio.Future[Extraction]]:
    documents = [Document(f"<p>{text}</p>", f"http://x/{number}") for number, text in enumerate(texts)]
    return [batcher.submit(document, seen.page) for document in documents]


def through(pool: Any, texts: Sequence[str], config: Config = OWN) -> Seen:
    """Send pages through a batcher at once, and return the results."""
    seen = Seen()

    async def run() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batcher_module, "_workers", lambda _: SimpleNamespace(pool=pool, close=lambda: None))
            batcher = Batcher(config, seen)
        try:
            seen.pages = await asyncio.wait_for(asyncio.gather(*submit(batcher, texts, seen)), SECONDS)
        finally:
            batcher.stop()

    asyncio.run(run())
    assert sorted(seen.counted) == sorted(f"http://x/{number}" for number in range(len(texts)))
    assert seen.counts["cancelled"] == 0
    return seen


def reasons(seen: Seen) -> list[FallbackReason | None]:
    return [page.fallback_reason for page in seen.pages]


BATCH = own(batch_size=3, batch_wait=5.0)


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize(
    ("owner", "name", "error"),
    [(Pool, "_start", StartError("no more processes")), (threading.Thread, "start", RuntimeError("no more threads"))],
    ids=["worker", "thread"],
)
def test_what_cannot_be_started_at_first(
    pools: Pools, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, error: Exception
) -> None:
    """Every page waits for a later worker, or for a later thread of the crawl's own process."""
    monkeypatch.setattr(module, "RESTART_SECONDS", 0.01)
    monkeypatch.setattr(batcher_module, "RESTART_SECONDS", 0.01)
    start, turns = getattr(owner, name), iter(range(3))

    def refuse(self: Any, *args: Any) -> Any:
        if getattr(self, "name", "scrapy-dripper") == "scrapy-dripper" and next(turns, None) is not None:
            raise error
        return start(self, *args)

    monkeypatch.setattr(owner, name, refuse)
    assert reasons(through(pools(), ["a", "b", "c"], BATCH)) == [None] * 3


def test_without_any_worker_items_stay_as_they_are(pools: Pools, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits forever."""
    monkeypatch.setattr(module, "RESTART_SECONDS", 0.01)

    def refuse(pool: Pool, alone: bool = False) -> Any:
        raise StartError("no more processes")

    monkeypatch.setattr(Pool, "_start", refuse)
    seen = through(pools(), ["a", "b", "c"], own(batch_size=2))
    assert reasons(seen) == [DEAD] * 3
    assert {page.error for page in seen.pages} == {"no worker process can be started: no more processes"}
    assert {page.source for page in seen.pages} == {"fallback:none"}


def test_a_bug_in_the_plugin_loses_no_page(
    pools: Pools, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pool = pools()

    def broken(*_: Any, **__: Any) -> list[Extraction]:
        raise ZeroDivisionError("not here")

    monkeypatch.setattr(pool, "extract", broken)
    seen = through(pool, ["a", "b"], own(batch_size=1))
    assert [page.error for page in seen.pages] == ["ZeroDivisionError: not here"] * 2
    assert "scrapy-dripper failed to ask a worker process" in caplog.text


def test_a_page_that_cannot_be_sent_costs_no_other_one_anything() -> None:
    pool = FakePool([Page(0, 0, True)] * 4)
    extract = pool.extract

    def refuse(tasks: Sequence[Task], **_: Any) -> list[Extraction]:
        if any(task.document.url.endswith("/2") for task in tasks):
            raise TypeError("cannot be packed")
        return extract(tasks)

    pool.extract = refuse  # type: ignore[method-assign]
    seen = through(pool, ["x"] * 4, own(batch_size=4, batch_wait=5.0))
    assert reasons(seen) == [None, None, DEAD, None]
    assert [page.source for page in seen.pages] == ["engine", "engine", "fallback:none", "engine"]


@dataclass
class Page:
    """The behaviour of a simulated page in the engine and in the fallback, and whether workers report their step."""

    engine: int
    """-2 for one that is stuck in two forms of its output, -1 for one that is stuck otherwise, or else the number of
    workers that die."""
    fallback: int
    told: bool

    @property
    def expected(self) -> tuple[FallbackReason | None, str]:
        """The expected reason and source."""
        if self.engine in (-2, 0, 1):
            return None, "engine"
        reason = TIMEOUT if self.engine == -1 else DEAD
        return reason, "fallback:x" if self.fallback in (-2, 0, 1) else "fallback:none"


class FakePool(Pool):
    """Answers at once, according to the behaviour of the pages."""

    def __init__(self, pages: Sequence[Page]) -> None:
        super().__init__(OWN, 1)
        self.pages, self.calls, self.lock = pages, 0, threading.Lock()
        self.engine, self.fallback = [page.engine for page in pages], [page.fallback for page in pages]

    def extract(self, tasks: Sequence[Task], **_: Any) -> list[Extraction]:
        with self.lock:
            self.calls += 1
            answers = []
            for at, task in enumerate(tasks):
                number = int(task.document.url.rpartition("/")[2])
                left = self.engine if task.reason is None else self.fallback
                told = at if self.pages[number].told or task.reason is not None else None
                if left[number] == -1:
                    raise WorkerError(TIMEOUT, "stuck", told)
                if left[number] == -2 and (form := next(iter({"chunks", "links"} - {*task.without}), None)):
                    raise WorkerError(TIMEOUT, "stuck", told, form)
                if left[number] > 0:
                    left[number] -= 1
                    raise WorkerError(DEAD, "dead", told)
                source = "engine" if task.reason is None else "fallback:x"
                answers.append(Extraction(task.document.url, None, "", "", "", source, task.reason, task.error))
            return answers


class SlowPool(FakePool):
    """Is slow on the first page of a batch, and later gets stuck on the last one, which another worker has by then."""

    def extract(self, tasks: Sequence[Task], **how: Any) -> list[Extraction]:
        if len(tasks) == 4:
            how["on_slow"](0)
            raise WorkerError(TIMEOUT, "stuck", 3)
        return super().extract(tasks)


def test_a_slow_page_does_not_pay_for_another_one_of_its_batch() -> None:
    pool = SlowPool([Page(0, 0, True)] * 4)
    seen = through(pool, ["x"] * 4, own(batch_size=4, batch_wait=5.0))
    assert reasons(seen) == [None] * 4
    assert sorted(seen.batches) == [1, 3]


PAGES = st.lists(st.builds(Page, st.integers(-2, 3), st.integers(-2, 3), st.booleans()), min_size=1, max_size=12)


@settings(max_examples=60)
@given(PAGES, st.integers(1, 5))
def test_property_each_page_only_affects_itself(pages: list[Page], size: int) -> None:
    """No page affects another one of its batch, each is settled once, and the number of retries is bounded.

    A page that kills one worker while it is labelled with others, where nobody knows which it was, is the one case in
    which its third death counts as its second.
    """
    pool = FakePool(pages)
    seen = through(pool, ["x"] * len(pages), own(batch_size=size, batch_wait=0.001))
    for page, found in zip(pages, seen.pages, strict=True):
        reason, source = page.expected
        if page.engine == 2 and found.fallback_reason is None:
            assert not page.told  # it killed its batch unseen, then one worker alone
            continue
        assert (found.fallback_reason, found.source) == (reason, source)
    assert pool.calls <= 8 * len(pages)


@pytest.mark.parametrize(("processes", "most"), [(0, 8), (1, 8), (2, 12), (5, 24)])
def test_two_batches_wait_and_one_more_for_each_further_process(processes: int, most: int) -> None:
    assert most_waiting(Config(batch_size=4, processes=processes)) == most


def test_workers_of_a_crawl_that_never_begins_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Mock()
    monkeypatch.setattr(batcher_module, "Workers", lambda config: workers)
    batcher = Batcher(own(processes=2), Seen())
    assert not workers.close.called
    del batcher
    gc.collect()

    workers.close.assert_called_once_with()


def no_workers(config: Config) -> Any:
    raise StartError("no memory")


def test_required_workers_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batcher_module, "Workers", no_workers)
    with pytest.raises(ConfigError) as raised:
        Batcher(own(processes=2), Seen())

    assert str(raised.value) == (
        "DRIPPER_PROCESSES is 2, but no worker process can be started (no memory); set it to 0 to extract pages in a "
        "thread of the crawl"
    )


class Closed(FakeEngine):
    """Counts how often it was closed."""

    times = 0

    def close(self) -> None:
        Closed.times += 1


@pytest.mark.parametrize(("processes", "warnings"), [(None, 1), (0, 0)])
@pytest.mark.parametrize("pages", [0, 9])
def test_a_thread_of_the_crawl_replaces_the_workers(
    processes: int | None, warnings: int, pages: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It does so if it is configured, or, with a warning, if no worker can be started. The event loop lives on."""
    monkeypatch.setattr(batcher_module, "Workers", no_workers)
    monkeypatch.setattr("scrapy_dripper.extractor.load_engine", lambda config: Closed())
    monkeypatch.setattr(Closed, "times", 0)

    async def crawl() -> None:
        batcher = Batcher(Config(batch_size=4, batch_wait=0.01, processes=processes), Seen())
        found = await asyncio.gather(*submit(batcher, [f"text {number}" for number in range(pages)], Seen()))
        assert [(one.text, one.source) for one in found] == [(f"text {number}", "fake") for number in range(pages)]
        batcher.stop()

    asyncio.run(crawl())

    assert Closed.times == 1
    assert caplog.messages == warnings * [
        "No worker process can be started (no memory); pages are extracted in a thread of the crawl, which a bad page "
        "can block. Set DRIPPER_PROCESSES = 0 to silence this warning."
    ]
