"""Batching: collect pages on the event loop, extract them in workers, and settle a future for each page."""

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
from scrapy_dripper.crawl.job import Job, Lane, Settle
from scrapy_dripper.crawl.process_lane import ProcessLane, ProcessObserver
from scrapy_dripper.crawl.threads import Clock, FallbackWorker, Left, ModelWorker, Worker, WorkerContext
from scrapy_dripper.extraction import Document, Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.fallback import fall_back, nothing
from scrapy_dripper.workers import Shared, StartError, processes, shared_pool

logger = logging.getLogger(__name__)

T = TypeVar("T")

REPLACEMENTS = 3
"""How often a lane replaces its thread, in a row or while earlier threads are still stuck, before it gives up."""
BACKLOG = 2
"""Batches in flight before backpressure sets in: the one being processed and the next one.

Each further worker process adds one."""
RESTART_SECONDS = 1.0
"""Delay before a thread that could not be started is replaced."""


class Observer(ProcessObserver, Protocol):
    """Receives the events of a batcher, on the event loop."""

    def waiting(self, pages: int) -> None:
        """A page has been submitted. ``pages`` is the number of pages that are now queued or being processed."""

    def held_back(self) -> None:
        """A response is waiting because of backpressure."""

    def page(self, extraction: Extraction) -> None:
        """A page has been extracted."""

    def cancelled(self, pages: int) -> None:
        """The crawl ended before these pages were extracted."""

    def stopping(self) -> bool:
        """Return True if the crawl no longer accepts requests."""


class ThreadLane(ABC):
    """A queue of jobs with one worker thread at a time. All methods run on the event loop.

    A worker that is stuck or dead is replaced. If the page that stopped it is known, that page is diverted. Otherwise,
    each page of the batch is retried alone.
    """

    work: str
    """What the lane runs, as it is called in log messages."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout: float, clock: Clock, settle: Settle) -> None:
        self.loop, self.timeout, self.clock, self.settle = loop, timeout, clock, settle
        self.queue: SimpleQueue[Job | None] = SimpleQueue()
        self.retries: SimpleQueue[list[Job]] = SimpleQueue()
        self._given_up: tuple[FallbackReason, str] | None = None
        self._warned = False
        self._worker: Worker | None = None
        self._failures = 0
        self._stuck: list[Worker] = []

    @abstractmethod
    def new_worker(self) -> Worker:
        """Return a new worker that has not been started."""

    @abstractmethod
    def divert(self, job: Job, reason: FallbackReason, error: str) -> None:
        """Handle a page that this lane cannot process, for the given reason."""

    def context(self) -> WorkerContext:
        """Return the context that the workers of this lane share."""
        return WorkerContext(self.loop, self.queue, self.retries, self.timeout, self.clock, self.done, self.died)

    def submit(self, job: Job) -> None:
        """Queue a page. It is settled or diverted, now or later."""
        if self._given_up is not None:
            self.divert(job, *self._given_up)
            return
        self.queue.put(job)
        if self._worker is None:
            self._start()

    def done(self, worker: Worker, batch: list[Job], answers: list[Extraction]) -> None:
        """Settle the pages of a batch. Ignore the answers of a worker that has been replaced."""
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
        left = self._worker.abandon_if_late(now) if self._worker is not None else None
        if left is not None and self._worker is not None:
            error = f"no answer within DRIPPER_TIMEOUT = {self.timeout:g} seconds"
            self._replace(self._worker, left, FallbackReason.TIMEOUT, error)

    def stop(self) -> None:
        """Let the worker end after its current batch, and ignore its answers."""
        if self._worker is not None:
            self._worker.abandon()
            self.queue.put(None)

    def _start(self) -> None:
        self._worker = worker = self.new_worker()
        try:
            worker.start()
        except (RuntimeError, MemoryError) as error:  # Out of threads; there may be one later.
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
                self.retries.put([job])
        else:
            if others:
                self.retries.put(others)
            self.divert(cause, reason, error)
        self._start()

    def _give_up(self, batch: list[Job], reason: FallbackReason, error: str) -> None:
        self._given_up, self._worker = (reason, f"{self.work} has been given up ({error})"), None
        logger.error(
            "Giving %(work)s up for the rest of this crawl after %(count)d replacements of its thread: %(error)s",
            {"work": self.work, "count": REPLACEMENTS, "error": error},
        )
        for job in [*batch, *(job for jobs in _emptied(self.retries) for job in jobs), *_emptied(self.queue)]:
            if job is not None:
                self.divert(job, reason, error)


def _emptied(queue: SimpleQueue[T]) -> Iterator[T]:
    with contextlib.suppress(Empty):
        while True:
            yield queue.get_nowait()


class FallbackLane(ThreadLane):
    """Runs the fallback for pages whose thread is stuck, and for all pages after the engine has been given up."""

    work = "the fallback"

    def __init__(self, loop: asyncio.AbstractEventLoop, config: Config, clock: Clock, settle: Settle) -> None:
        super().__init__(loop, config.timeout, clock, settle)

    def new_worker(self) -> Worker:
        """Return a worker that runs the fallback."""
        return FallbackWorker(self.context(), fall_back=_fall_back)

    def divert(self, job: Job, reason: FallbackReason, error: str) -> None:  # noqa: ARG002 (the job has its own)
        """Settle the page with an empty extraction, which takes no time."""
        self.settle(job, nothing(job.source.url, job.reason, f"{job.error}; fallback: {error}"))


def _fall_back(job: Job) -> Extraction:
    return fall_back(job.source, job.config, job.reason or FallbackReason.TIMEOUT, job.error)


class ModelLane(ThreadLane):
    """Runs pages through the engine."""

    work = "the engine"
    exempt_pages = 0
    """Pages exempt from backpressure: none, because a thread has no stand-ins."""

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
        """Return a worker. The first one uses the extractor loaded at startup; later ones load their own."""
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
        if self._extractor is not None:  # No page was ever submitted.
            self._extractor.close()


def most_waiting(config: Config) -> int:
    """Return how many pages may be in flight: one batch for each worker, and the next batch."""
    return (max(1, processes(config)) + BACKLOG - 1) * config.batch_size


class Batcher:
    """Extract the pages of a crawl, ``DRIPPER_BATCH_SIZE`` at a time, in worker processes or in a thread.

    The constructor starts the first worker, or loads the engine. It raises :exc:`~scrapy_dripper.config.ConfigError`
    or :exc:`~scrapy_dripper.engines.base.ModelError` if that fails. Call all methods on the event loop.
    """

    def __init__(self, config: Config, load: Callable[[], Extractor], observer: Observer) -> None:
        """``load`` makes the extractor for a thread. It is used if ``DRIPPER_PROCESSES`` is 0."""
        self._config, self._load, self._observer = config, load, observer
        self._shared = _shared_workers(config)
        if self._shared is not None:  # A crawl that fails to start never calls stop().
            self._give_back = weakref.finalize(self, self._shared.close)
        self._extractor: Extractor | None = None
        # A thread that replaces another one has to load the engine again, which can take longer than a page may.
        self._load_limit = config.timeout
        if self._shared is None:
            start = time.monotonic()
            self._extractor = load()
            self._load_limit = max(config.timeout, 3 * (time.monotonic() - start))
        self._most = most_waiting(config)
        self._lane: Lane | None = None
        self._pending: set[Job] = set()
        self._has_capacity = asyncio.Event()
        self._has_capacity.set()
        self._held_back = 0
        self._clock = Clock()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._stopping = self._stopped = False

    def submit(self, source: Document) -> asyncio.Future[Extraction]:
        """Return a future for the extraction of a page. It never fails; it is cancelled if the crawl ends first."""
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

    def _new_lane(self, loop: asyncio.AbstractEventLoop) -> Lane:
        if self._shared is not None:
            return ProcessLane(loop, self._config, self._shared.pool, self._settle, self._observer)
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
        """Apply backpressure: wait until fewer than :func:`most_waiting` pages are in flight."""
        if not self._has_capacity.is_set():
            self._observer.held_back()
            self._held_back += 1
            try:
                await self._has_capacity.wait()
            finally:
                self._held_back -= 1

    def stop(self) -> None:
        """Stop the workers without waiting for them, and cancel the pages that are still pending."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._lane is not None:
            self._lane.stop()
        elif self._extractor is not None:
            self._extractor.close()
        if self._shared is not None:
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
        exempt = self._lane.exempt_pages if self._lane is not None else 0
        if len(self._pending) < self._most + exempt:
            self._has_capacity.set()
        else:
            self._has_capacity.clear()

    def _watch(self) -> None:
        """Check the lanes periodically while pages are pending."""
        self._timer = None
        interval = min(0.5, self._config.timeout / 4)
        late = time.monotonic() - self._due
        if late > interval:  # The whole process was suspended, so its threads are not stuck.
            self._clock.missed += late
        if self._lane is None or not self._pending:
            return
        self._lane.check(self._clock())
        self._update_capacity()
        if self._observer.stopping() and not self._stopping:
            self._stopping = True
            logger.info(
                "The crawl is stopping; %(pages)d pages are still waiting to be extracted. Press Ctrl-C again to drop "
                "them.",
                {"pages": len(self._pending) + self._held_back},
            )
        if self._pending:
            self._due = time.monotonic() + interval
            self._timer = asyncio.get_running_loop().call_later(interval, self._watch)


def _shared_workers(config: Config) -> Shared | None:
    """Return the worker processes of a crawl, or None to use a thread. Raise ConfigError or ModelError."""
    if config.processes == 0:
        return None
    try:
        return shared_pool(config)
    except StartError as error:
        if config.processes is not None:
            raise ConfigError(
                f"DRIPPER_PROCESSES is {config.processes}, but no worker process can be started ({error}); set it to "
                "0 to extract pages in a thread of the crawl"
            ) from None
        logger.warning(
            "No worker process can be started (%(error)s); pages are extracted in a thread of the crawl, which a bad "
            "page can block. Set DRIPPER_PROCESSES = 0 to silence this warning.",
            {"error": error},
        )
        return None
