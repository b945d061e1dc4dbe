"""A lane and its workers, step by step: replaced workers, pages that stop them, and lanes that give up."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.batcher import RESTART_SECONDS, FallbackLane, ModelLane, ThreadLane
from scrapy_dripper.crawl.job import Job
from scrapy_dripper.crawl.threads import Clock, FallbackWorker, ModelWorker, Worker
from scrapy_dripper.extraction import Extraction, FallbackReason
from tests.crawl.batching import IdleWorker, Loop, Observer, extraction, job, run

TIMEOUT, ENGINE_ERROR = FallbackReason.TIMEOUT, FallbackReason.ENGINE_ERROR
LATE = "no answer within DRIPPER_TIMEOUT = 5 seconds"


class FakeLane(ThreadLane):
    """A lane whose workers do nothing. It records how pages are handled."""

    work = "the work"

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.settled: list[tuple[Job, Extraction]] = []
        self.diverted: list[tuple[Job, FallbackReason, str]] = []
        self.workers: list[IdleWorker] = []
        self.refusals: list[BaseException] = []
        super().__init__(loop, 5.0, Clock(), lambda one, found: self.settled.append((one, found)))

    def new_worker(self) -> Worker:
        worker = IdleWorker(self.context())
        worker.refuse = self.refusals.pop() if self.refusals else None
        self.workers.append(worker)
        return worker

    def divert(self, job: Job, reason: FallbackReason, error: str) -> None:
        self.diverted.append((job, reason, error))

    @property
    def again(self) -> list[list[Job]]:
        """The batches that wait for the next worker."""
        found = []
        while not self.retries.empty():
            found.append(self.retries.get())
        return found


@pytest.fixture
def lane() -> Any:
    loop = Loop()
    yield FakeLane(loop)
    loop.close()


def jobs(lane: FakeLane, count: int) -> list[Job]:
    return [job(lane.loop, number) for number in range(count)]


def test_the_first_page_starts_a_worker_and_the_second_none(lane: FakeLane) -> None:
    pages = jobs(lane, 2)
    for page in pages:
        lane.submit(page)

    assert len(lane.workers) == 1
    assert [lane.queue.get() for _ in pages] == pages
    assert lane.diverted == []


def test_answers_go_to_their_pages(lane: FakeLane) -> None:
    pages = jobs(lane, 3)
    lane.submit(pages[0])
    answers = [extraction(page) for page in pages]

    lane.done(lane.workers[0], pages, answers)

    assert lane.settled == list(zip(pages, answers, strict=True))


def test_answers_of_a_worker_that_was_replaced_are_ignored(lane: FakeLane) -> None:
    page, *_ = jobs(lane, 1)
    lane.submit(page)
    lane.workers[0].abandon()

    lane.done(lane.workers[0], [page], [extraction(page)])

    assert lane.settled == []


def test_answers_that_are_too_few_are_a_mistake(lane: FakeLane) -> None:
    pages = jobs(lane, 2)
    lane.submit(pages[0])
    with pytest.raises(ValueError, match="shorter"):
        lane.done(lane.workers[0], pages, [extraction(pages[0])])


def test_a_worker_in_time_is_left_alone(lane: FakeLane) -> None:
    lane.check(0.0)  # before there is one
    page, *_ = jobs(lane, 1)
    lane.submit(page)
    lane.check(1e9)  # idle
    lane.workers[0].begin([page], page)
    lane.check(lane.clock() + 4)

    assert len(lane.workers) == 1
    assert not lane.workers[0].abandoned
    assert lane.diverted == []


def test_a_page_that_a_worker_is_stuck_on_is_diverted(lane: FakeLane) -> None:
    """The other pages of its batch are retried in one batch."""
    pages = jobs(lane, 3)
    lane.submit(pages[0])
    lane.workers[0].begin(pages, pages[1])

    lane.check(lane.clock() + 6)

    assert lane.diverted == [(pages[1], TIMEOUT, LATE)]
    assert lane.again == [[pages[0], pages[2]]]
    assert len(lane.workers) == 2
    assert lane.workers[0].abandoned


def test_a_batch_of_one_is_its_own_cause(lane: FakeLane) -> None:
    page, *_ = jobs(lane, 1)
    lane.submit(page)
    lane.workers[0].begin([page])

    lane.check(lane.clock() + 6)

    assert lane.diverted == [(page, TIMEOUT, LATE)]
    assert lane.again == []


def test_where_the_cause_is_unknown_each_page_is_tried_alone(lane: FakeLane) -> None:
    pages = jobs(lane, 3)
    lane.submit(pages[0])
    lane.workers[0].begin(pages)

    lane.died(lane.workers[0], MemoryError("no more"))

    assert lane.diverted == []
    assert lane.again == [[page] for page in pages]
    assert len(lane.workers) == 2


def test_the_exception_of_a_worker_is_named(lane: FakeLane) -> None:
    page, *_ = jobs(lane, 1)
    lane.submit(page)
    lane.workers[0].begin([page])

    lane.died(lane.workers[0], MemoryError("no more"))
    lane.died(lane.workers[0], MemoryError("said twice"))

    assert lane.diverted == [(page, ENGINE_ERROR, "MemoryError: no more")]
    assert len(lane.workers) == 2


def lose(lane: FakeLane, page: Job, alive: bool = False) -> None:
    """Make the worker of a lane die on a page. Its thread remains or ends."""
    worker = lane.workers[-1]
    worker.begin([page])
    worker.alive = alive
    lane.died(worker, MemoryError("no more"))


def test_a_lane_is_given_up_after_three_replacements(lane: FakeLane, caplog: pytest.LogCaptureFixture) -> None:
    """All waiting and later pages are diverted, with one error in the log."""
    caplog.set_level(logging.DEBUG, "scrapy_dripper")
    pages = jobs(lane, 9)
    lane.submit(pages[0])
    for page in pages[1:4]:
        lose(lane, page)
    assert len(lane.workers) == 4
    lane.submit(pages[5])
    lane.queue.put(None)
    lane.retries.put([pages[6], pages[7]])
    lose(lane, pages[4])
    lane.submit(pages[8])

    error = "MemoryError: no more"
    given_up = f"the work has been given up ({error})"
    assert len(lane.workers) == 4
    assert lane.diverted == [
        *((page, ENGINE_ERROR, error) for page in pages[1:5]),
        *((page, ENGINE_ERROR, error) for page in (pages[6], pages[7], pages[0], pages[5])),
        (pages[8], ENGINE_ERROR, given_up),
    ]
    lane.check(1e9)
    assert len(lane.workers) == 4
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, f"Replacing the thread of the work: {error}"),
        *[(logging.DEBUG, f"Replacing the thread of the work: {error}")] * 2,
        (
            logging.ERROR,
            f"Giving the work up for the rest of this crawl after 3 replacements of its thread: {error}",
        ),
    ]


def test_only_replacements_in_a_row_count(lane: FakeLane) -> None:
    pages = jobs(lane, 8)
    lane.submit(pages[0])
    for page in pages:
        lose(lane, page)
        lane.done(lane.workers[-1], [page], [extraction(page)])

    assert len(lane.workers) == 9


def test_threads_that_stay_stuck_count_for_ever(lane: FakeLane) -> None:
    """They take memory, so other answers do not reset their count. A thread that ends after all is no longer
    counted."""
    pages = jobs(lane, 5)
    lane.submit(pages[0])
    for page in pages[:3]:
        lose(lane, page, alive=True)
        lane.done(lane.workers[-1], [page], [extraction(page)])
    lane.workers[0].alive = False
    lose(lane, pages[3], alive=True)
    lane.done(lane.workers[-1], [pages[3]], [extraction(pages[3])])
    assert len(lane.workers) == 5

    lose(lane, pages[4], alive=True)

    assert len(lane.workers) == 5


def test_stopped(lane: FakeLane) -> None:
    """The worker ends after its batch. Without a worker, there is nothing to end."""
    lane.stop()
    assert lane.queue.empty()
    page, *_ = jobs(lane, 1)
    lane.submit(page)
    lane.queue.get()

    lane.stop()

    assert lane.workers[0].abandoned
    assert lane.queue.get() is None


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()])
def test_a_thread_that_does_not_start_is_tried_again(error: BaseException) -> None:
    """The page waits, and the start is retried after a second."""

    async def wait() -> tuple[FakeLane, int]:
        lane = FakeLane(asyncio.get_running_loop())
        lane.refusals.append(error)
        lane.submit(job(lane.loop))
        await asyncio.sleep(0.9 * RESTART_SECONDS)
        before = len(lane.workers)
        await asyncio.sleep(0.2 * RESTART_SECONDS)
        return lane, before

    lane, before = run(wait())

    assert (before, len(lane.workers)) == (1, 2)
    assert lane.queue.qsize() == 1
    assert lane.diverted == []


class FakeExtractor:
    """An extractor that is only created and closed."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The lane of an engine whose threads never run."""
    monkeypatch.setattr(ModelWorker, "start", lambda worker: None)
    monkeypatch.setattr(FallbackWorker, "start", lambda worker: None)
    loop = Loop()
    config = Config(batch_size=7, batch_wait=0.3, timeout=5, fallback="html")
    observer, settled = Observer(), []
    extractors = [FakeExtractor()]

    def load() -> Any:
        extractors.append(FakeExtractor())
        return extractors[-1]

    settle = lambda one, found: settled.append((one, found))  # noqa: E731
    lane: Any = ModelLane(loop, config, Clock(), settle, extractors[0], load, 9.0, observer)  # type: ignore[arg-type]
    lane.test = (observer, settled, extractors)
    yield lane
    loop.close()


def test_the_first_worker_has_the_extractor_that_is_there(model: Any) -> None:
    """Later workers load their own extractor, because the first may still use its own."""
    _, _, extractors = model.test
    first, second = model.new_worker(), model.new_worker()
    for worker in (first, second):
        worker.prepare()

    assert (first._extractor, second._extractor) == tuple(extractors)
    assert len(extractors) == 2


def test_a_worker_has_the_time_to_load_that_the_first_one_took(model: Any) -> None:
    model.new_worker()
    second = model.new_worker()
    second.prepare()

    now = model.clock()
    assert model.exempt_pages == 0  # a thread has no stand-in
    assert second.abandon_if_late(now + 8.5) is None
    assert second.abandon_if_late(now + 9.5) is not None


def test_a_worker_takes_as_many_pages_as_a_batch_has(model: Any) -> None:
    """It waits for them no longer than the configured time."""
    worker = model.new_worker()
    pages = [job(model.loop, number) for number in range(9)]
    for page in pages:
        page.submitted -= 1_000
        model.queue.put(page)

    assert worker.take() == pages[:7]
    assert worker.take() == pages[7:]


def test_a_batch_of_the_engine_is_counted(model: Any) -> None:
    observer, settled, _ = model.test
    pages = [job(model.loop, number) for number in range(3)]
    worker = model.new_worker()
    model.done(worker, pages, [extraction(page) for page in pages])
    worker.abandon()
    model.done(worker, pages[:2], [extraction(page) for page in pages[:2]])

    assert observer.batches == [3]
    assert [page for page, _ in settled] == pages


def test_a_page_of_the_engine_is_diverted_to_the_fallback(model: Any) -> None:
    """The fallback gets the reason, and has its own thread and time limit."""
    _, settled, _ = model.test
    page = job(model.loop)
    model.divert(page, TIMEOUT, "too slow")
    (rescue,) = [model._rescue]
    assert rescue.queue.get() is page

    (found,) = rescue.new_worker().answer([page])

    assert (found.source, found.fallback_reason, found.error) == ("fallback:html", TIMEOUT, "too slow")
    rescue._worker._batch = [page]
    rescue._worker.at(None)
    model.check(model.clock() + 6)
    assert [(one, found.source, found.fallback_reason, found.error) for one, found in settled] == [
        (page, "fallback:none", TIMEOUT, f"too slow; fallback: {LATE}")
    ]


def test_a_page_without_a_reason_falls_back_for_the_time(model: Any) -> None:
    lane = FallbackLane(model.loop, Config(fallback="html", timeout=5), Clock(), lambda *_: None)

    (found,) = lane.new_worker().answer([job(model.loop)])

    assert (found.source, found.fallback_reason) == ("fallback:html", TIMEOUT)
    assert lane.timeout == 5


def test_the_engines_worker_is_checked_too(model: Any) -> None:
    page = job(model.loop)
    model.submit(page)
    worker = model._worker
    worker._batch = [page]
    worker.at(page)

    model.check(model.clock() + 6)

    assert worker.abandoned
    assert (page.reason, page.error) == (TIMEOUT, LATE)


@pytest.mark.parametrize("used", [False, True])
def test_both_lanes_stop(model: Any, used: bool) -> None:
    """An extractor that no thread has used is closed here."""
    _, _, extractors = model.test
    if used:
        model.submit(job(model.loop))
        model.divert(job(model.loop, 1), TIMEOUT, "")
    model.stop()

    assert extractors[0].closed is not used
    if used:
        assert model._worker.abandoned
        assert model._rescue._worker.abandoned
