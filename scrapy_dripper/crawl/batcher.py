"""Pages from the event loop to whoever extracts them and back, in batches, with nobody waiting for ever."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.crawl.process_lane import ProcessLane, ProcessObserver
from scrapy_dripper.crawl.threads import Clock, FallbackWorker, Job, ModelWorker, Worker, WorkerContext
from scrapy_dripper.extraction import Document, Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.fallback import fall_back, nothing
from scrapy_dripper.workers import Shared, StartError, processes, shared_pool

logger = logging.getLogger(__name__)

T = TypeVar("T")
Settle = Callable[[Job, Extraction], None]
Left = tuple[list[Job], "Job | None"]
"""What a worker leaves behind: its batch, and the page that stopped it if that is known."""

REPLACEMENTS = 3
"""Threads that are replaced, in a row or while the earlier ones are still stuck, before there are no more."""
BACKLOG = 2
"""Batches that may wait before there is no room for more: the one that is worked on, and the next.

With worker processes, one more for each of them."""
RESTART_SECONDS = 1.0
"""Wait before a thread that could not be started counts as dead, and another is tried."""


class Observer(ProcessObserver, Protocol):
    """Whom a batcher tells what happens; called on the event loop."""

    def waiting(self, pages: int) -> None:
        """So many pages wait or are being worked on."""

    def held_back(self) -> None:
        """A response waits for room."""

    def page(self, extraction: Extraction) -> None:
        """A page is done."""

    def cancelled(self, pages: int) -> None:
        """So many pages were not done before the crawl ended."""

    def stopping(self) -> bool:
        """Return True if the crawl takes no new requests any more."""


class Lane(ABC):
    """A queue of jobs with one worker at a time. Everything here runs on the event loop.

    A worker that is stuck or dead is replaced. The page that did it, if that is known, is diverted; otherwise each page
    of the batch is tried again alone.
    """

    work: str

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout: float, clock: Clock, settle: Settle) -> None:
        self.loop, self.timeout, self.clock, self.settle = loop, timeout, clock, settle
        self.queue: SimpleQueue[Job | None] = SimpleQueue()
        self.ready: SimpleQueue[list[Job]] = SimpleQueue()
        self._given_up: tuple[FallbackReason, str] | None = None
        self._warned = False
        self._worker: Worker | None = None
        self._failures = 0
        self._stuck: list[Worker] = []

    @abstractmethod
    def new_worker(self) -> Worker:
        """Return a new worker, not started."""

    @abstractmethod
    def divert(self, job: Job, reason: FallbackReason, error: str) -> None:
        """Do something else with a page that does not go through this lane."""

    def context(self) -> WorkerContext:
        """Return what every worker of the lane works with."""
        return WorkerContext(self.loop, self.queue, self.ready, self.timeout, self.clock, self.done, self.died)

    def submit(self, job: Job) -> None:
        """Queue a page. It is settled or diverted later, if not at once."""
        if self._given_up is not None:
            self.divert(job, *self._given_up)
            return
        self.queue.put(job)
        if self._worker is None:
            self._start()

    def done(self, worker: Worker, batch: list[Job], answers: list[Extraction]) -> None:
        """Take a worker's answers. Those of a worker that has been replaced come too late."""
        if worker.abandoned:
            return
        self._failures = 0
        for job, extraction in zip(batch, answers, strict=True):
            self.settle(job, extraction)

    def died(self, worker: Worker, error: BaseException) -> None:
        """Replace a worker that ended with an exception."""
        left = worker.abandon()
        if left is not None:
            self._replace(worker, left, FallbackReason.ENGINE_ERROR, f"{type(error).__name__}: {error}")

    def check(self, now: float) -> None:
        """Replace the worker if it is stuck."""
        left = self._worker.abandon(now) if self._worker is not None else None
        if left is not None and self._worker is not None:
            error = f"no answer within DRIPPER_TIMEOUT = {self.timeout:g} seconds"
            self._replace(self._worker, left, FallbackReason.TIMEOUT, error)

    def stop(self) -> None:
        """Let the worker end after what it is doing now."""
        if self._worker is not None:
            self._worker.abandon()
            self.queue.put(None)

    def _start(self) -> None:
        self._worker = worker = self.new_worker()
        try:
            worker.start()
        except (RuntimeError, MemoryError) as error:  # The system has no thread to give; it may have one later.
            self.loop.call_later(RESTART_SECONDS, self.died, worker, error)

    def _replace(self, worker: Worker, left: Left, reason: FallbackReason, error: str) -> None:
        batch, cause = left
        self._failures += 1
        self._stuck = [*(stuck for stuck in self._stuck if stuck.thread.is_alive()), worker]
        if max(self._failures, len(self._stuck)) > REPLACEMENTS:
            self._give_up(batch, reason, error)
            return
        log = logger.debug if self._warned else logger.warning
        log("Replacing the thread of %(work)s: %(error)s", {"work": self.work, "error": error})
        self._warned = True
        if cause is None and len(batch) == 1:
            cause = batch[0]
        others = [job for job in batch if job is not cause]
        if cause is None:
            for job in others:
                self.ready.put([job])
        else:
            if others:
                self.ready.put(others)
            self.divert(cause, reason, error)
        self._start()

    def _give_up(self, batch: list[Job], reason: FallbackReason, error: str) -> None:
        self._given_up, self._worker = (reason, f"{self.work} has been given up ({error})"), None
        logger.error(
            "Giving %(work)s up for the rest of this crawl after %(count)d replacements of its thread: %(error)s",
            {"work": self.work, "count": REPLACEMENTS, "error": error},
        )
        for job in [*batch, *(job for jobs in _emptied(self.ready) for job in jobs), *_emptied(self.queue)]:
            if job is not None:
                self.divert(job, reason, error)


def _emptied(queue: SimpleQueue[T]) -> Iterator[T]:
    with contextlib.suppress(Empty):
        while True:
            yield queue.get_nowait()


class FallbackLane(Lane):
    """Pages whose own thread is stuck, or that come after the engine has been given up."""

    work = "the fallback"

    def __init__(self, loop: asyncio.AbstractEventLoop, config: Config, clock: Clock, settle: Settle) -> None:
        super().__init__(loop, config.timeout, clock, settle)

    def new_worker(self) -> Worker:
        """Return a worker that runs the fallback."""
        return FallbackWorker(self.context(), fall_back=_fall_back)

    def divert(self, job: Job, reason: FallbackReason, error: str) -> None:  # noqa: ARG002 (the page's own say more)
        """Settle the page with nothing, the one thing that cannot take long."""
        self.settle(job, nothing(job.source.url, job.reason, f"{job.error}; fallback: {error}"))


def _fall_back(job: Job) -> Extraction:
    return fall_back(job.source, job.config, job.reason or FallbackReason.TIMEOUT, job.error)


class ModelLane(Lane):
    """Pages for the engine."""

    work = "the engine"
    slow = 0
    """Pages that others need not wait for: a thread has no stand-in."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: Config,
        clock: Clock,
        settle: Settle,
        extractor: Extractor,
        load: Callable[[], Extractor],
        load_limit: float,
        observer: Observer,
    ) -> None:
        super().__init__(loop, config.timeout, clock, settle)
        self._config, self._load, self._load_limit, self._observer = config, load, load_limit, observer
        self._extractor: Extractor | None = extractor
        self._rescue = FallbackLane(loop, config, clock, settle)

    def new_worker(self) -> Worker:
        """Return a worker: the first has the extractor that was loaded at the start, later ones load their own."""
        extractor, self._extractor = self._extractor, None
        return ModelWorker(
            self.context(),
            extractor=extractor,
            load=self._load,
            load_limit=self._load_limit,
            size=self._config.batch_size,
            wait=self._config.batch_wait,
        )

    def divert(self, job: Job, reason: FallbackReason, error: str) -> None:
        """Let another thread run the fallback for the page."""
        job.reason, job.error = reason, error
        self._rescue.submit(job)

    def done(self, worker: Worker, batch: list[Job], answers: list[Extraction]) -> None:
        """Count the batch and settle its pages."""
        if not worker.abandoned:
            self._observer.batch(len(batch))
        super().done(worker, batch, answers)

    def check(self, now: float) -> None:
        """Check both workers."""
        super().check(now)
        self._rescue.check(now)

    def stop(self) -> None:
        """Let both workers end."""
        super().stop()
        self._rescue.stop()
        if self._extractor is not None:  # Nobody has ever asked for a page.
            self._extractor.close()


def most_waiting(config: Config) -> int:
    """Return the number of pages that may wait: a batch for whoever extracts them, and the next one."""
    return (max(1, processes(config)) + BACKLOG - 1) * config.batch_size


class Batcher:
    """Extract the pages of a crawl, ``DRIPPER_BATCH_SIZE`` at a time, in worker processes or in a thread.

    What does it is loaded at construction, which raises what that raises: :exc:`~scrapy_dripper.config.ConfigError`,
    :exc:`~scrapy_dripper.engines.base.ModelError`. All methods belong to the event loop.
    """

    def __init__(self, config: Config, load: Callable[[], Extractor], observer: Observer) -> None:
        """``load`` makes the extractor of a thread, where ``DRIPPER_PROCESSES`` is 0."""
        self._config, self._load, self._observer = config, load, observer
        self._workers = _workers(config)
        if self._workers is not None:  # a crawl that never begins, and so never ends, gives them back all the same
            self._give_back = weakref.finalize(self, self._workers.close)
        self._extractor: Extractor | None = None
        self._load_limit = config.timeout
        if self._workers is None:
            start = time.monotonic()
            self._extractor = load()
            self._load_limit = max(config.timeout, 3 * (time.monotonic() - start))
        self._most = most_waiting(config)
        self._lane: ModelLane | ProcessLane | None = None
        self._pending: set[Job] = set()
        self._has_capacity = asyncio.Event()
        self._has_capacity.set()
        self._held_back = 0
        self._clock = Clock()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._stopping = self._stopped = False

    def submit(self, source: Document) -> asyncio.Future[Extraction]:
        """Return the future extraction of a page: never with an exception, but cancelled if the crawl ends first."""
        loop = asyncio.get_running_loop()
        job = Job(source, source.config or self._config, loop.create_future(), time.monotonic())
        if self._stopped:
            self._cancel([job])
            return job.future
        if self._lane is None:
            self._lane = self._new_lane(loop)
        self._pending.add(job)
        self._observer.waiting(len(self._pending))
        self._update_capacity()
        self._lane.submit(job)
        if self._timer is None:
            self._due = time.monotonic()
            self._watch()
        return job.future

    def _new_lane(self, loop: asyncio.AbstractEventLoop) -> ModelLane | ProcessLane:
        if self._workers is not None:
            return ProcessLane(loop, self._config, self._workers.pool, self._settle, self._observer)
        assert self._extractor is not None
        return ModelLane(
            loop,
            self._config,
            self._clock,
            self._settle,
            self._extractor,
            self._load,
            self._load_limit,
            self._observer,
        )

    async def wait_for_capacity(self) -> None:
        """Return when there is room for a page, which is at once unless pages come faster than they go.

        There is room for a batch for each worker, and the next one.
        """
        if not self._has_capacity.is_set():
            self._observer.held_back()
            self._held_back += 1
            try:
                await self._has_capacity.wait()
            finally:
                self._held_back -= 1

    def stop(self) -> None:
        """End the threads, without waiting for them, and cancel what nobody has waited for."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._lane is not None:
            self._lane.stop()
        elif self._extractor is not None:
            self._extractor.close()
        if self._workers is not None:
            self._give_back()
        self._cancel(self._pending)
        self._pending.clear()
        self._update_capacity()

    def _cancel(self, jobs: Collection[Job]) -> None:
        for job in jobs:
            job.future.cancel()
        if jobs:
            self._observer.cancelled(len(jobs))

    def _settle(self, job: Job, extraction: Extraction) -> None:
        if job not in self._pending:
            return
        self._pending.remove(job)
        self._update_capacity()
        if not job.future.done():
            job.future.set_result(extraction)
        self._observer.page(extraction)

    def _update_capacity(self) -> None:
        slow = self._lane.slow if self._lane is not None else 0
        if len(self._pending) < self._most + slow:
            self._has_capacity.set()
        else:
            self._has_capacity.clear()

    def _watch(self) -> None:
        """Look after the threads as long as pages wait."""
        self._timer = None
        interval = min(0.5, self._config.timeout / 4)
        late = time.monotonic() - self._due
        if late > interval:  # Nothing else runs in a process that stands still: its threads are not stuck.
            self._clock.missed += late
        if self._lane is None or not self._pending:
            return
        self._lane.check(self._clock())
        self._update_capacity()
        if self._observer.stopping() and not self._stopping:
            self._stopping = True
            logger.info(
                "The crawl is stopping; %(pages)d pages still wait for their main content. Ctrl-C again drops them.",
                {"pages": len(self._pending) + self._held_back},
            )
        if self._pending:
            self._due = time.monotonic() + interval
            self._timer = asyncio.get_running_loop().call_later(interval, self._watch)


def _workers(config: Config) -> Shared | None:
    """Return the worker processes of a crawl, None for a thread. Raise ConfigError and ModelError."""
    if config.processes == 0:
        return None
    try:
        return shared_pool(config)
    except StartError as error:
        if config.processes is not None:
            raise ConfigError(
                f"DRIPPER_PROCESSES is {config.processes}, but no worker process can be started ({error}); 0 extracts "
                "pages in a thread of the crawl"
            ) from None
        logger.warning(
            "No worker process can be started (%(error)s); pages are extracted in a thread of the crawl, which a page "
            "can hold up. DRIPPER_PROCESSES = 0 does so without trying.",
            {"error": error},
        )
        return None
