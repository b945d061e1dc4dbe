"""The batcher on its event loop, with fake lanes: futures, capacity, periodic checks and the end of a crawl."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.crawl import batcher as module
from scrapy_dripper.crawl.batcher import Batcher, most_waiting
from scrapy_dripper.crawl.job import Job
from scrapy_dripper.extraction import Document, Extraction
from scrapy_dripper.workers import StartError
from tests.crawl.batching import Observer, extraction, run

THREAD = Config(batch_size=4, timeout=8, processes=0)
OWN = Config(batch_size=1, markdown_field="text")


class FakeLane:
    """Keeps its pages until the test settles them."""

    exempt_pages = 0

    def __init__(self, loop: asyncio.AbstractEventLoop, *args: Any) -> None:
        self.loop, self.args = loop, args
        self.jobs: list[Job] = []
        self.checks: list[tuple[float, float]] = []
        self.stops = 0

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    def check(self, now: float) -> None:
        self.checks.append((self.loop.time(), now))

    def stop(self) -> None:
        self.stops += 1


class FakeExtractor:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Crawl:
    """A batcher with its surroundings."""

    def __init__(self, config: Config = THREAD, seconds_to_load: float = 0.0) -> None:
        self.observer, self.extractor = Observer(), FakeExtractor()
        self.loaded = 0

        def load() -> Any:
            self.loaded += 1
            asyncio.get_running_loop().now += seconds_to_load  # type: ignore[attr-defined]
            return self.extractor

        self.load = load
        self.batcher = Batcher(config, load, self.observer)

    @property
    def lane(self) -> Any:
        return self.batcher._lane

    def submit(self, number: int = 0, config: Config | None = None) -> asyncio.Future[Extraction]:
        return self.batcher.submit(Document("<p>", f"https://site.example/{number}", config=config))

    def settle(self, job: Job) -> Extraction:
        found = extraction(job)
        self.batcher._settle(job, found)
        return found


@pytest.fixture(autouse=True)
def _lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ModelLane", type("ModelLane", (FakeLane,), {}))
    monkeypatch.setattr(module, "ProcessLane", type("ProcessLane", (FakeLane,), {}))


def test_each_page_gets_its_extraction() -> None:
    """The caller gets a future. The observer is told of each page, and of the number of waiting pages."""

    async def crawl() -> None:
        one = Crawl()
        futures = [one.submit(number) for number in range(3)]
        found = [one.settle(job) for job in reversed(one.lane.jobs)]

        assert [future.result() for future in futures] == found[::-1]
        assert one.observer.pages == found
        assert one.observer.waited == [1, 2, 3]

    run(crawl())


def test_a_page_has_its_own_options_or_those_of_the_crawl() -> None:
    async def crawl() -> None:
        one = Crawl()
        one.submit()
        one.submit(config=OWN)

        assert [job.config for job in one.lane.jobs] == [THREAD, OWN]
        assert {job.submitted for job in one.lane.jobs} == {one.lane.loop.time()}

    run(crawl())


def test_there_is_one_lane() -> None:
    """It is created with the first page, and uses the engine that was loaded at the start."""

    async def crawl() -> None:
        one = Crawl(seconds_to_load=5)
        assert (one.loaded, one.lane) == (1, None)
        one.submit()
        lane = one.lane
        one.submit()

        assert one.lane is lane
        assert type(lane).__name__ == "ModelLane"
        config, clock, settle, extractor, load, limit, observer = lane.args
        assert (config, extractor, load, observer) == (THREAD, one.extractor, one.load, one.observer)
        assert (clock, settle) == (one.batcher._clock, one.batcher._settle)
        assert limit == 15

    run(crawl())


def test_loading_has_the_time_of_a_page_at_least() -> None:
    async def crawl() -> None:
        one = Crawl(seconds_to_load=1)
        one.submit()

        assert one.lane.args[5] == 8

    run(crawl())


def test_unused_answers() -> None:
    """A second answer is ignored. An answer for a cancelled future is counted."""

    async def crawl() -> None:
        one = Crawl()
        futures = [one.submit(number) for number in range(2)]
        futures[0].cancel()
        first, second = one.lane.jobs
        one.settle(first)
        found = one.settle(second)
        one.settle(second)

        assert futures[1].result() is found
        assert len(one.observer.pages) == 2

    run(crawl())


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


def test_backpressure() -> None:
    """Two waiting batches use up the capacity, which is free again after the first page."""

    async def crawl() -> None:
        one = Crawl()
        assert not await waits(one.batcher.wait_for_capacity())
        for number in range(7):
            one.submit(number)
        assert not await waits(one.batcher.wait_for_capacity())
        one.submit(7)
        assert one.observer.held == 0

        assert await waits(one.batcher.wait_for_capacity())
        waiting = asyncio.ensure_future(one.batcher.wait_for_capacity())
        await asyncio.sleep(0)
        one.settle(one.lane.jobs[0])
        assert not await waits(one.batcher.wait_for_capacity())

        assert waiting.done()
        assert one.observer.held == 2

    run(crawl())


def test_pages_that_are_set_aside_take_no_room() -> None:
    """The next check frees their capacity."""

    async def crawl() -> None:
        one = Crawl()
        for number in range(8):
            one.submit(number)
        one.lane.exempt_pages = 1
        await asyncio.sleep(0.6)
        assert not await waits(one.batcher.wait_for_capacity())
        one.submit(8)
        assert await waits(one.batcher.wait_for_capacity())
        one.batcher.stop()

    run(crawl())


@pytest.mark.parametrize(("timeout", "every"), [(8, 0.5), (2, 0.5), (1, 0.25)])
def test_the_lane_is_looked_after(timeout: float, every: float) -> None:
    """It is checked at the first page and every half second, or four times per time limit, but only while pages are
    pending."""

    async def crawl() -> None:
        one = Crawl(Config(timeout=timeout, processes=0))
        start = asyncio.get_running_loop().time()
        one.submit()
        one.submit(1)
        await asyncio.sleep(3.5 * every)
        times = [when - start for when, _ in one.lane.checks]
        assert times == pytest.approx([0, every, 2 * every, 3 * every])
        assert [when for when, _ in one.lane.checks] == pytest.approx([now for _, now in one.lane.checks])

        for job in one.lane.jobs[:2]:
            one.settle(job)
        await asyncio.sleep(10)
        assert len(one.lane.checks) == 4
        one.submit(2)
        await asyncio.sleep(0)
        assert len(one.lane.checks) == 5
        one.batcher.stop()
        await asyncio.sleep(10)
        assert len(one.lane.checks) == 5

    run(crawl())


@pytest.mark.parametrize(("late", "missed"), [(0.3, 0), (0.5, 0), (20, 20)])
def test_time_in_which_the_process_stood_still_does_not_count(late: float, missed: float) -> None:
    """A check is late if it is delayed by more than the interval. A pause without pages does not count."""

    async def crawl() -> None:
        one = Crawl()
        loop: Any = asyncio.get_running_loop()
        start = loop.now
        one.submit()
        await asyncio.sleep(0.1)
        loop.now = start + 0.5 + late
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(one.lane.checks) == 2
        when, now = one.lane.checks[-1]
        assert when - now == pytest.approx(missed)

        one.settle(one.lane.jobs[0])
        await asyncio.sleep(100)
        one.submit(1)
        when, now = one.lane.checks[-1]
        assert when - now == pytest.approx(missed)
        one.batcher.stop()

    run(crawl())


def test_a_crawl_that_stops_says_once_what_still_waits(caplog: pytest.LogCaptureFixture) -> None:
    """The message counts pages, and responses that are held back."""
    caplog.set_level(logging.INFO, "scrapy_dripper")

    async def crawl() -> None:
        one = Crawl()
        for number in range(8):
            one.submit(number)
        held = [asyncio.ensure_future(one.batcher.wait_for_capacity()) for _ in range(2)]
        gone = asyncio.ensure_future(one.batcher.wait_for_capacity())
        await asyncio.sleep(1)
        gone.cancel()
        assert caplog.messages == []
        one.observer.stops = True
        await asyncio.sleep(3)
        one.batcher.stop()
        await asyncio.gather(*held)

    run(crawl())

    assert caplog.messages == [
        "The crawl is stopping; 10 pages are still waiting to be extracted. Press Ctrl-C again to drop them."
    ]


def test_the_end_of_a_crawl() -> None:
    """Pending pages, and later ones, are cancelled and counted. Nothing waits for capacity any longer."""

    async def crawl() -> None:
        one = Crawl()
        futures = [one.submit(number) for number in range(8)]
        done = one.settle(one.lane.jobs[0])
        one.submit(8)
        assert await waits(one.batcher.wait_for_capacity())
        one.batcher.stop()

        assert futures[0].result() is done
        assert all(future.cancelled() for future in futures[1:])
        assert one.observer.dropped == [8]
        assert not await waits(one.batcher.wait_for_capacity())
        late = one.submit(9)
        assert late.cancelled()
        assert one.observer.dropped == [8, 1]
        assert len(one.lane.jobs) == 9
        assert one.lane.stops == 1
        assert one.extractor.closed == 0  # the lane's

    run(crawl())


def test_the_end_of_a_crawl_without_pages() -> None:
    """The engine is closed, and no page is counted."""

    async def crawl() -> None:
        one = Crawl()
        one.batcher.stop()

        assert one.extractor.closed == 1
        assert one.observer.dropped == []

    run(crawl())


class FakeShared:
    """The shared workers of a process."""

    pool = object()

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> FakeShared:
    workers = FakeShared()
    monkeypatch.setattr(module, "shared_pool", lambda config: workers)
    return workers


def test_a_crawl_with_worker_processes(shared: FakeShared) -> None:
    """The workers have the engine, so none is loaded here. They are released once, at the end."""

    async def crawl() -> None:
        one = Crawl(Config(processes=2, batch_size=4))
        one.submit()
        assert type(one.lane).__name__ == "ProcessLane"
        config, pool, settle, observer = one.lane.args
        assert (config.processes, pool, observer) == (2, shared.pool, one.observer)
        assert settle == one.batcher._settle
        assert one.loaded == 0
        assert shared.closed == 0
        one.batcher.stop()
        assert shared.closed == 1
        assert one.lane.stops == 1

    run(crawl())
    gc.collect()
    assert shared.closed == 1


def test_workers_of_a_crawl_that_never_begins_are_given_back(shared: FakeShared) -> None:
    batcher = Batcher(Config(processes=2), FakeExtractor, Observer())  # type: ignore[arg-type]
    assert shared.closed == 0
    del batcher
    gc.collect()

    assert shared.closed == 1


def no_workers(config: Config) -> Any:
    raise StartError("no memory")


def test_required_workers_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "shared_pool", no_workers)
    with pytest.raises(ConfigError) as raised:
        Batcher(Config(processes=2), FakeExtractor, Observer())  # type: ignore[arg-type]

    assert str(raised.value) == (
        "DRIPPER_PROCESSES is 2, but no worker process can be started (no memory); set it to 0 to extract pages in a "
        "thread of the crawl"
    )


def test_a_thread_replaces_optional_workers(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A thread replaces them, with a warning."""
    monkeypatch.setattr(module, "shared_pool", no_workers)

    async def crawl() -> None:
        one = Crawl(Config(batch_size=4))
        one.submit()
        assert type(one.lane).__name__ == "ModelLane"
        one.batcher.stop()

    run(crawl())

    assert caplog.messages == [
        "No worker process can be started (no memory); pages are extracted in a thread of the crawl, which a bad page "
        "can block. Set DRIPPER_PROCESSES = 0 to silence this warning."
    ]


def test_a_configured_thread_starts_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "shared_pool", no_workers)
    Batcher(THREAD, FakeExtractor, Observer())  # type: ignore[arg-type]
