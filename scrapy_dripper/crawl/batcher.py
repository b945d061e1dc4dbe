"""Batching: collect pages on the event loop, extract them in workers, and settle a future for each page."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.crawl.stats import CrawlStats
from scrapy_dripper.data import Document, Extraction, FallbackReason, nothing
from scrapy_dripper.workers.pool import RESTART_SECONDS, RESTARTS, ClosedError, Workers, processes
from scrapy_dripper.workers.process import StartError, WorkerError
from scrapy_dripper.workers.wire import Task

logger = logging.getLogger(__name__)

BACKLOG = 2
"""Batches in flight before backpressure sets in: the one being processed and the next one.

Each further worker process adds one."""
CHECK_SECONDS = 0.5
"""Seconds between two looks at whether the crawl stops."""

Count: TypeAlias = "Callable[[Extraction, Document], None]"
"""Counts the extraction of a document in the stats of the crawl."""


@dataclass(eq=False, slots=True)
class Job:
    """A page that is being extracted, its options, and the future that waits for it."""

    source: Document
    config: Config
    future: asyncio.Future[Extraction]
    submitted: float
    count: Count


@dataclass(eq=False, slots=True)
class Batch:
    """Pages that were sent to a worker together."""

    sent: list[Job]
    alone: bool = False
    """True for a page that may have stopped a worker. It is tried alone."""
    aside: bool = False
    """True if the batch does not count against the number of workers, so that other pages do not wait for it."""
    jobs: list[Job] = field(default_factory=list)
    """The jobs whose answers are still awaited. In a slow batch, only the slow page."""

    def __post_init__(self) -> None:
        self.jobs = list(self.sent)
        self.aside = self.alone


def most_waiting(config: Config) -> int:
    """Return how many pages may be in flight: one batch for each worker, and the next batch."""
    return (max(1, processes(config)) + BACKLOG - 1) * config.batch_size


class Batcher:
    """Extract the pages of a crawl, ``DRIPPER_BATCH_SIZE`` at a time, in worker processes or in this one.

    The constructor starts the first worker, or loads the engine. It raises :exc:`~scrapy_dripper.config.ConfigError`
    or :exc:`~scrapy_dripper.config.ModelError` if that fails. Call all methods on the event loop.

    As soon as a page is slow, the rest of its batch moves to another worker. If a worker is stopped by a page that is
    not known, each page of the batch is tried alone.
    """

    def __init__(self, config: Config, stats: CrawlStats) -> None:
        self._config, self._stats = config, stats
        self._workers = _workers(config)
        self._give_back = weakref.finalize(self, self._workers.close)  # a crawl that fails to start never calls stop()
        self._pool = self._workers.pool
        self._most = most_waiting(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending: set[Job] = set()
        self._waiting: deque[Job] = deque()
        self._batches: set[Batch] = set()
        self._dispatching: asyncio.TimerHandle | None = None
        self._checking: asyncio.TimerHandle | None = None
        self._has_capacity = asyncio.Event()
        self._has_capacity.set()
        self._held_back = 0
        self._stopping = self._stopped = False

    def submit(self, source: Document, count: Count) -> asyncio.Future[Extraction]:
        """Return a future for the extraction of a page. It never fails; it is cancelled if the crawl ends first.

        ``count`` is called with the extraction and the document, also if nobody waits for it any more.
        """
        self._loop = loop = asyncio.get_running_loop()
        job = Job(source, source.config or self._config, loop.create_future(), time.monotonic(), count)
        if self._stopped:
            self._cancel([job])
            return job.future
        self._pending.add(job)
        self._stats.peak("queue/max", len(self._pending))
        self._waiting.append(job)
        self._dispatch()
        if self._checking is None:
            self._check()
        return job.future

    async def wait_for_capacity(self) -> None:
        """Apply backpressure: wait until fewer than :func:`most_waiting` pages are in flight."""
        if not self._has_capacity.is_set():
            self._stats.count("held_back")
            self._held_back += 1
            try:
                await self._has_capacity.wait()
            finally:
                self._held_back -= 1

    def stop(self) -> None:
        """Send no more batches, give the workers back without waiting for them, and cancel the pending pages."""
        self._stopped = True
        for timer in (self._dispatching, self._checking):
            if timer is not None:
                timer.cancel()
        self._waiting.clear()
        self._give_back()
        self._cancel(self._pending)
        self._pending.clear()
        self._update_capacity()

    def _cancel(self, jobs: Collection[Job]) -> None:
        for job in jobs:
            job.future.cancel()
        if jobs:
            self._stats.count("cancelled", len(jobs))

    def _update_capacity(self) -> None:
        # Slow pages do not count. At most one batch for each stand-in, because they take memory.
        aside = sum(len(batch.jobs) for batch in self._batches if batch.aside)
        exempt = min(aside, self._pool.stand_ins * self._config.batch_size)
        if len(self._pending) < self._most + exempt:
            self._has_capacity.set()
        else:
            self._has_capacity.clear()

    def _check(self) -> None:
        """Say once that the crawl is stopping, if pages are pending then."""
        self._checking = None
        if not self._pending:
            return
        if self._stats.stopping() and not self._stopping:
            self._stopping = True
            logger.info(
                "The crawl is stopping; %(pages)d pages are still waiting to be extracted. Press Ctrl-C again to drop "
                "them.",
                {"pages": len(self._pending) + self._held_back},
            )
        self._checking = asyncio.get_running_loop().call_later(CHECK_SECONDS, self._check)

    def _dispatch(self) -> None:
        """Send the batches that are ready, up to the number of workers."""
        assert self._loop is not None
        if self._dispatching is not None:
            self._dispatching.cancel()
            self._dispatching = None
        while self._waiting and sum(not batch.aside for batch in self._batches) < self._pool.most:
            left = self._waiting[0].submitted + self._config.batch_wait - time.monotonic()
            if len(self._waiting) < self._config.batch_size and left > 0:
                self._dispatching = self._loop.call_later(left, self._dispatch)
                break
            count = min(len(self._waiting), self._config.batch_size)
            self._send(Batch([self._waiting.popleft() for _ in range(count)]))
        self._update_capacity()

    def _send(self, batch: Batch, error: WorkerError | None = None) -> None:
        """Extract a batch in a thread of its own, because that blocks. It is a daemon, so that a second Ctrl-C does not
        wait for it."""
        assert self._loop is not None
        self._batches.add(batch)
        tasks = [Task(job.source, job.config) for job in batch.sent]
        thread = threading.Thread(target=self._run, args=(batch, tasks, error), name="scrapy-dripper", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError):  # Out of threads; there will be one when a batch has been answered.
            self._loop.call_later(RESTART_SECONDS, self._send, batch, error)

    def _run(self, batch: Batch, tasks: Sequence[Task], error: WorkerError | None) -> None:
        try:
            if batch.alone:
                killed = partial(self._post, self._killed)
                answers = [self._pool.extract_alone(tasks[0], error, killed=killed, starts=RESTARTS)]
            else:
                answers = self._pool.extract(tasks, on_slow=partial(self._post, self._slow, batch), starts=RESTARTS)
        except BaseException as problem:
            self._post(self._failed, batch, problem)
        else:
            self._post(self._done, batch, answers)

    def _post(self, callback: Callable[..., None], *args: object) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # The loop is closed.
            logger.debug("an answer came after the end of the crawl")

    def _slow(self, batch: Batch, at: int | None) -> None:
        """Set a batch aside. If the page that takes long is known, requeue the others of the batch."""
        if batch not in self._batches or self._stopped:
            return
        batch.aside = True
        if at is not None:
            others = [job for job in batch.jobs if job is not batch.sent[at]]
            batch.jobs = [batch.sent[at]]
            self._waiting.extendleft(reversed(others))
        self._dispatch()

    def _done(self, batch: Batch, answers: list[Extraction]) -> None:
        self._batches.remove(batch)
        if self._stopped:
            return
        self._stats.batch(len(batch.jobs))
        if self._pool.pids:
            self._stats.peak("workers/max", len(self._pool.pids))
            self._stats.peak("workers/memory", self._pool.peak)
        for job, extraction in zip(batch.sent, answers, strict=True):
            if job in batch.jobs:
                self._settle(job, extraction)
        self._dispatch()

    def _failed(self, batch: Batch, error: BaseException) -> None:
        """Try the page that stopped a worker alone, or each page of the batch if it is not known which one did."""
        self._batches.remove(batch)
        if self._stopped or isinstance(error, ClosedError):
            return
        if isinstance(error, WorkerError):
            self._killed(error.reason)
            at = 0 if len(batch.sent) == 1 else error.task
            page = None if at is None else batch.sent[at]
            if page in batch.jobs:
                self._waiting.extendleft(job for job in reversed(batch.jobs) if job is not page)
                self._send(Batch([page], alone=True), error)
            else:  # unknown, or already requeued to another worker
                self._each_alone(batch)
        elif not batch.alone and not isinstance(error, StartError):  # one of the pages cannot be sent
            self._each_alone(batch)
        else:
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, StartError):
                reason = f"no worker process can be started: {error}"
            else:
                logger.error("scrapy-dripper failed to ask a worker process", exc_info=error)
            for job in batch.jobs:
                self._settle(job, nothing(job.source.url, FallbackReason.WORKER_ERROR, reason))
        self._dispatch()

    def _killed(self, reason: FallbackReason) -> None:
        self._stats.count(f"workers/{reason}")

    def _each_alone(self, batch: Batch) -> None:
        for job in batch.jobs:
            self._send(Batch([job], alone=True))

    def _settle(self, job: Job, extraction: Extraction) -> None:
        if job not in self._pending:
            return
        self._pending.remove(job)
        self._update_capacity()
        if not job.future.done():
            job.future.set_result(extraction)
        job.count(extraction, job.source)


class InProcess:
    """Takes the place of a :class:`~scrapy_dripper.workers.Pool`: one batch at a time, in the thread that calls.

    It is for debugging (``DRIPPER_PROCESSES = 0``), and for systems on which no worker starts. Nothing ends a page that
    gets stuck here.
    """

    most, stand_ins, peak = 1, 0, 0
    pids: tuple[int, ...] = ()

    def __init__(self, config: Config) -> None:
        """Load the engine. Raise ModelError or ConfigError if that fails."""
        from scrapy_dripper.extractor import Extractor  # a crawl with workers does not need it

        self._extractor = Extractor(replace(config, processes=0))
        self._config, self._one_at_a_time, self._closed = config, threading.Lock(), False

    @property
    def pool(self) -> InProcess:
        """This object, as :attr:`Workers.pool <scrapy_dripper.workers.Workers.pool>`."""
        return self

    def extract(self, tasks: Sequence[Task], **_: object) -> list[Extraction]:
        """Return one extraction per task, in order. Other arguments of a pool have no meaning here."""
        with self._one_at_a_time:
            try:
                return self._extractor.extract([task.document for task in tasks])
            finally:
                if self._closed:
                    self._extractor.close()

    def extract_alone(self, task: Task, *_: object, **__: object) -> Extraction:
        """Return the extraction of a task. Other arguments of a pool have no meaning here."""
        try:
            return self.extract([task])[0]
        except BaseException as error:  # a user's engine may raise SystemExit
            problem = f"{type(error).__name__}: {error}"
            return self._extractor.fall_back(task.document, FallbackReason.ENGINE_ERROR, problem)

    def close(self) -> None:
        """Release the engine, after the batch that is in progress."""
        self._closed = True
        if self._one_at_a_time.acquire(blocking=False):
            self._extractor.close()
            self._one_at_a_time.release()


def _workers(config: Config) -> Workers | InProcess:
    """Return the workers of a crawl, or what takes their place in this process. Raise ConfigError or ModelError."""
    if config.processes == 0:
        return InProcess(config)
    try:
        return Workers(config)
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
        return InProcess(config)
