"""The batcher on its event loop: where it finds workers, and what it says at the end."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.crawl import batcher as module
from scrapy_dripper.crawl.batcher import Batcher, most_waiting
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.testing import FakeEngine
from scrapy_dripper.workers import StartError, Task

PATIENCE = 60


class HeldPool:
    """Stands for workers that answer no page before the end of the test."""

    stand_ins, peak, pids = 4, 1, (1,)

    def __init__(self) -> None:
        self.most, self.closed = 1, 0
        self.free = threading.Semaphore(0)

    @property
    def pool(self) -> HeldPool:
        return self

    def extract(self, tasks: Sequence[Task], **_: Any) -> list[Extraction]:
        assert self.free.acquire(timeout=PATIENCE)
        return [Extraction(task.document.url, None, "<p>", "text", "text", "fake") for task in tasks]

    def close(self) -> None:
        self.closed += 1


class Observer:
    """Keeps the pages of a batcher, and ignores its other events."""

    stops = False

    def __init__(self) -> None:
        self.pages: list[Extraction] = []

    def page(self, extraction: Extraction, *, retries_shells: bool) -> None:
        self.pages.append(extraction)

    def stopping(self) -> bool:
        return self.stops

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def submit(batcher: Batcher, number: int) -> asyncio.Future[Extraction]:
    return batcher.submit(Document(f"<p>text {number}</p>", f"https://site.example/{number}"))


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldPool]:
    workers = HeldPool()
    monkeypatch.setattr(module, "Workers", lambda config: workers)
    yield workers
    workers.free.release(100)


def test_an_answer_that_nobody_waits_for_is_counted(pool: HeldPool) -> None:
    async def crawl() -> None:
        observer = Observer()
        batcher = Batcher(Config(batch_size=4, batch_wait=0.01, processes=1), observer)
        futures = [submit(batcher, number) for number in range(2)]
        futures[0].cancel()
        pool.free.release()
        await futures[1]
        assert len(observer.pages) == 2
        batcher.stop()

    asyncio.run(crawl())


@pytest.mark.parametrize(("processes", "most"), [(0, 8), (1, 8), (2, 12), (5, 24)])
def test_two_batches_wait_and_one_more_for_each_further_process(processes: int, most: int) -> None:
    assert most_waiting(Config(batch_size=4, processes=processes)) == most


def test_a_crawl_that_stops_says_once_what_still_waits(
    pool: HeldPool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message counts pages, and responses that are held back."""
    caplog.set_level(logging.INFO, "scrapy_dripper")
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.02)

    async def crawl() -> None:
        observer = Observer()
        batcher = Batcher(Config(batch_size=4, batch_wait=0.01, processes=1), observer)
        for number in range(8):
            submit(batcher, number)
        held = [asyncio.ensure_future(batcher.wait_for_capacity()) for _ in range(2)]
        gone = asyncio.ensure_future(batcher.wait_for_capacity())
        await asyncio.sleep(0.1)
        gone.cancel()
        assert caplog.messages == []
        observer.stops = True
        await asyncio.sleep(0.2)
        batcher.stop()
        await asyncio.gather(*held)

    asyncio.run(crawl())

    assert caplog.messages == [
        "The crawl is stopping; 10 pages are still waiting to be extracted. Press Ctrl-C again to drop them."
    ]


def test_workers_of_a_crawl_that_never_begins_are_given_back(pool: HeldPool) -> None:
    batcher = Batcher(Config(processes=2), Observer())
    assert pool.closed == 0
    del batcher
    gc.collect()

    assert pool.closed == 1


def no_workers(config: Config) -> Any:
    raise StartError("no memory")


def test_required_workers_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Workers", no_workers)
    with pytest.raises(ConfigError) as raised:
        Batcher(Config(processes=2), Observer())

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
    monkeypatch.setattr(module, "Workers", no_workers)
    monkeypatch.setattr("scrapy_dripper.extractor.load_engine", lambda config: Closed())
    monkeypatch.setattr(Closed, "times", 0)

    async def crawl() -> None:
        batcher = Batcher(Config(batch_size=4, batch_wait=0.01, processes=processes), Observer())
        futures = [submit(batcher, n) for n in range(pages)]
        found = await asyncio.gather(*futures)
        assert [(one.url[-1], one.text, one.source) for one in found] == [
            (str(n), f"text {n}", "fake") for n in range(pages)
        ]
        batcher.stop()

    asyncio.run(crawl())

    assert Closed.times == 1
    assert caplog.messages == warnings * [
        "No worker process can be started (no memory); pages are extracted in a thread of the crawl, which a bad page "
        "can block. Set DRIPPER_PROCESSES = 0 to silence this warning."
    ]
