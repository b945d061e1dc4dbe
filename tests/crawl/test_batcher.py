"""The batcher on its event loop, with workers that answer when the test lets them: futures, capacity, and the end."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.crawl import batcher as module
from scrapy_dripper.crawl.batcher import Batcher, most_waiting
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.testing import FakeEngine
from scrapy_dripper.workers import StartError, Task

PATIENCE = 60


class HeldPool:
    """Stands for workers. Each batch is answered when the test says so."""

    stand_ins, peak, pids = 4, 1, (1,)

    def __init__(self, most: int = 1) -> None:
        self.most, self.closed = most, 0
        self.batches: list[Sequence[Task]] = []
        self.slow: list[Any] = []
        self.free = threading.Semaphore(0)

    @property
    def pool(self) -> HeldPool:
        return self

    def extract(self, tasks: Sequence[Task], *, on_slow: Any, **_: Any) -> list[Extraction]:
        self.batches.append(tasks)
        self.slow.append(on_slow)
        assert self.free.acquire(timeout=PATIENCE)
        return [Extraction(task.document.url, None, "<p>", "text", "text", "fake") for task in tasks]

    def close(self) -> None:
        self.closed += 1


@dataclass
class Observer:
    """The events of a batcher."""

    waited: list[int] = field(default_factory=list)
    pages: list[Extraction] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    held: int = 0
    stops: bool = False

    def waiting(self, pages: int) -> None:
        self.waited.append(pages)

    def held_back(self) -> None:
        self.held += 1

    def page(self, extraction: Extraction) -> None:
        self.pages.append(extraction)

    def batch(self, pages: int) -> None:
        self.batches.append(pages)

    def workers(self, processes: int, memory: int) -> None:
        assert (processes, memory) == (1, 1)

    def killed(self, reason: FallbackReason) -> None:
        raise NotImplementedError

    def cancelled(self, pages: int) -> None:
        self.dropped.append(pages)

    def stopping(self) -> bool:
        return self.stops


class Crawl:
    """A batcher with its surroundings."""

    def __init__(self, pool: HeldPool, **options: Any) -> None:
        self.pool, self.observer = pool, Observer()
        self.batcher = Batcher(
            Config(**{"batch_size": 4, "batch_wait": 0.01, "processes": 1, **options}), self.observer
        )

    def submit(self, number: int = 0, config: Config | None = None) -> asyncio.Future[Extraction]:
        return self.batcher.submit(Document("<p>", f"https://site.example/{number}", config=config))


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldPool]:
    workers = HeldPool()
    monkeypatch.setattr(module, "Workers", lambda config: workers)
    yield workers
    workers.free.release(100)


def test_each_page_gets_its_extraction(pool: HeldPool) -> None:
    """Batches are full, or are sent after a while. The observer is told of each page and batch."""

    async def crawl() -> None:
        one = Crawl(pool)
        futures = [one.submit(number) for number in range(6)]
        pool.free.release(2)
        found = await asyncio.gather(*futures)

        assert [extraction.url[-1] for extraction in found] == list("012345")
        assert one.observer.pages == found
        assert one.observer.waited == [1, 2, 3, 4, 5, 6]
        assert one.observer.batches == [4, 2]
        one.batcher.stop()

    asyncio.run(crawl())


def test_a_page_has_its_own_options_or_those_of_the_crawl(pool: HeldPool) -> None:
    own = Config(batch_size=1, markdown_field="text")

    async def crawl() -> None:
        one = Crawl(pool)
        futures = [one.submit(), one.submit(config=own)]
        pool.free.release()
        await asyncio.gather(*futures)
        assert [task.config for task in pool.batches[0]] == [one.batcher._config, own]
        one.batcher.stop()

    asyncio.run(crawl())


def test_an_answer_that_nobody_waits_for_is_counted(pool: HeldPool) -> None:
    async def crawl() -> None:
        one = Crawl(pool)
        futures = [one.submit(number) for number in range(2)]
        futures[0].cancel()
        pool.free.release()
        await futures[1]
        assert len(one.observer.pages) == 2
        one.batcher.stop()

    asyncio.run(crawl())


async def waits(waiting: Awaitable[None]) -> bool:
    """Return True if a future is still pending after all tasks have had a turn."""
    task = asyncio.ensure_future(waiting)
    for _ in range(3):
        await asyncio.sleep(0)
    still = not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return still


@pytest.mark.parametrize(("processes", "most"), [(0, 8), (1, 8), (2, 12), (5, 24)])
def test_two_batches_wait_and_one_more_for_each_further_process(processes: int, most: int) -> None:
    assert most_waiting(Config(batch_size=4, processes=processes)) == most


def test_backpressure(pool: HeldPool) -> None:
    """Two waiting batches use up the capacity, which is free again after the first batch."""

    async def crawl() -> None:
        one = Crawl(pool)
        futures = [one.submit(number) for number in range(7)]
        assert not await waits(one.batcher.wait_for_capacity())
        one.submit(7)
        assert one.observer.held == 0

        assert await waits(one.batcher.wait_for_capacity())
        waiting = asyncio.ensure_future(one.batcher.wait_for_capacity())
        await asyncio.sleep(0)
        pool.free.release()
        await futures[0]
        await asyncio.wait_for(waiting, PATIENCE)
        assert one.observer.held == 2
        one.batcher.stop()

    asyncio.run(crawl())


def test_slow_pages_take_no_room(pool: HeldPool) -> None:
    """They are set aside, and the other pages of their batch are sent again."""

    async def crawl() -> None:
        one = Crawl(pool)
        futures = [one.submit(number) for number in range(8)]
        while not pool.slow:
            await asyncio.sleep(0.01)
        pool.slow[0](1)
        while len(pool.batches) < 2:
            await asyncio.sleep(0.01)
        assert [task.document.url[-1] for task in pool.batches[1]] == list("0234")
        assert not await waits(one.batcher.wait_for_capacity())
        one.submit(8)
        assert await waits(one.batcher.wait_for_capacity())
        pool.free.release(100)
        assert len({found.url for found in await asyncio.gather(*futures)}) == 8
        one.batcher.stop()

    asyncio.run(crawl())


def test_a_crawl_that_stops_says_once_what_still_waits(
    pool: HeldPool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message counts pages, and responses that are held back."""
    caplog.set_level(logging.INFO, "scrapy_dripper")
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.02)

    async def crawl() -> None:
        one = Crawl(pool)
        for number in range(8):
            one.submit(number)
        held = [asyncio.ensure_future(one.batcher.wait_for_capacity()) for _ in range(2)]
        gone = asyncio.ensure_future(one.batcher.wait_for_capacity())
        await asyncio.sleep(0.1)
        gone.cancel()
        assert caplog.messages == []
        one.observer.stops = True
        await asyncio.sleep(0.2)
        one.batcher.stop()
        await asyncio.gather(*held)

    asyncio.run(crawl())

    assert caplog.messages == [
        "The crawl is stopping; 10 pages are still waiting to be extracted. Press Ctrl-C again to drop them."
    ]


def test_the_end_of_a_crawl(pool: HeldPool) -> None:
    """Pending pages, and later ones, are cancelled and counted. The workers are given back, once."""

    async def crawl() -> None:
        one = Crawl(pool)
        futures = [one.submit(number) for number in range(8)]
        pool.free.release()
        await futures[0]
        futures += [one.submit(number) for number in range(8, 12)]
        assert await waits(one.batcher.wait_for_capacity())
        one.batcher.stop()

        assert [future.cancelled() for future in futures] == [False] * 4 + [True] * 8
        assert one.observer.dropped == [8]
        assert not await waits(one.batcher.wait_for_capacity())
        assert one.submit(12).cancelled()
        assert one.observer.dropped == [8, 1]
        assert pool.closed == 1

    asyncio.run(crawl())
    gc.collect()
    assert pool.closed == 1


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
        futures = [batcher.submit(Document(f"<p>text {n}</p>", f"https://site.example/{n}")) for n in range(pages)]
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
