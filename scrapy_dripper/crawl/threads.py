"""The daemon threads of a crawl without worker processes (``DRIPPER_PROCESSES = 0``).

One thread extracts pages in batches. Another one runs the fallback for pages on which the first got stuck.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from scrapy_dripper.crawl.job import Job
from scrapy_dripper.extraction import Document, Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor

logger = logging.getLogger(__name__)


SHIFT = 100_000_000
"""Bytes of pages after which a new thread takes over. lxml keeps every tag and attribute name that a thread has parsed
until the thread ends, so memory would grow with the crawl, and without bound on hostile pages."""

Left = tuple[list[Job], Job | None]
"""The jobs of a worker that was given up: its batch, and the page that stopped it if that is known."""


@dataclass(frozen=True, slots=True)
class Step:
    """The current step of a thread: its start, its time limit in seconds, and its page unless it is for a batch."""

    since: float
    limit: float
    job: Job | None = None


class Clock:
    """A monotonic clock that leaves out the time for which the whole process was suspended or starved."""

    def __init__(self) -> None:
        self.missed = 0.0

    def __call__(self) -> float:
        """Return the time in seconds. Only differences between two calls are meaningful."""
        return time.monotonic() - self.missed


@dataclass(frozen=True, slots=True, eq=False)
class WorkerContext:
    """The queues, time limit and callbacks that a lane gives its workers."""

    loop: asyncio.AbstractEventLoop
    queue: SimpleQueue[Job | None]
    """Single pages. None stops the worker."""
    retries: SimpleQueue[list[Job]]
    """Batches of a worker that was replaced. They take precedence over the queue."""
    timeout: float
    """Time limit of a step, in seconds."""
    clock: Clock
    done: Callable[[Worker, list[Job], list[Extraction]], None]
    died: Callable[[Worker, BaseException], None]


class Worker(ABC):
    """A daemon thread that takes batches of jobs from queues and posts the answers to the event loop.

    It is never joined, because a second Ctrl-C must not wait for a batch. Once it is :attr:`abandoned`, it takes no
    more jobs and its answers are ignored.
    """

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._step: Step | None = None
        self._batch: list[Job] = []
        self.abandoned = False
        self.thread = self._new_thread()

    @abstractmethod
    def answer(self, batch: list[Job]) -> list[Extraction]:
        """Return one extraction per job, in order."""

    @abstractmethod
    def take(self) -> list[Job] | None:
        """Wait for the next batch and return it, or None to stop."""

    def prepare(self) -> None:  # noqa: B027 (not abstract: most workers need nothing)
        """Set up the worker. Called in its thread."""

    def close(self) -> None:  # noqa: B027
        """Release the worker's resources. Called in its thread."""

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def abandon(self) -> Left | None:
        """Give the thread up and return what is left of its work. Return None if it was given up before."""
        with self._lock:
            return self._abandon()

    def abandon_if_late(self, now: float) -> Left | None:
        """Give the thread up if its current step is over its time limit. Return None if it is not given up now."""
        with self._lock:
            step = self._step
            return None if step is None or now - step.since < step.limit else self._abandon()

    def _abandon(self) -> Left | None:
        if self.abandoned:
            return None
        self.abandoned = True
        return self._batch, self._step.job if self._step is not None else None

    def at(self, job: Job | None, limit: float | None = None) -> None:
        """Record the start of a step, for one page or for the whole batch."""
        self._step = Step(self._context.clock(), limit or self._context.timeout, job)

    def _new_thread(self) -> threading.Thread:
        return threading.Thread(target=self._run, name="scrapy-dripper", daemon=True)

    def _run(self) -> None:
        relieved = False
        try:
            self.prepare()
            relieved = self._work()
        except BaseException as error:
            logger.debug("a scrapy-dripper thread ended with an exception", exc_info=True)
            self._post(self._context.died, self, error)
        finally:
            if not relieved:
                with contextlib.suppress(Exception):
                    self.close()

    def _work(self) -> bool:
        """Process batches until told to stop. Return True if another thread has taken over."""
        read = 0
        while self._rest() and (batch := self.take()) is not None and not self.abandoned:
            self._batch = batch
            self.at(None)
            self._post(self._context.done, self, batch, self.answer(batch))
            read += sum(len(job.source.html) for job in batch)
            del batch  # An idle thread must not keep the last responses alive.
            if read > SHIFT and self._rest() and self._relieve():
                return True
        return False

    def _relieve(self) -> bool:
        """Start a thread that takes over from this one. Return False if none can be started."""
        successor = self._new_thread()
        try:
            successor.start()
        except (RuntimeError, MemoryError):
            return False
        self.thread = successor
        return True

    def _rest(self) -> bool:
        """Become idle. Return False if the thread has been abandoned in the meantime."""
        with self._lock:
            if not self.abandoned:
                self._step, self._batch = None, []
            return not self.abandoned

    def _post(self, callback: Callable[..., None], *args: Any) -> None:
        """Run a callback on the event loop. Futures and Scrapy are not thread-safe."""
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            self._context.loop.call_soon_threadsafe(callback, *args)


class ModelWorker(Worker):
    """Extracts batches of pages with its own extractor."""

    def __init__(
        self,
        context: WorkerContext,
        *,
        extractor: Extractor | None,
        load: Callable[[], Extractor],
        load_limit: float,
        size: int,
        wait: float,
    ) -> None:
        super().__init__(context)
        self._extractor, self._load, self._load_limit = extractor, load, load_limit
        self._size, self._wait = size, wait
        self._jobs: dict[int, Job] = {}

    def prepare(self) -> None:
        """Load an extractor if this thread replaces a stuck one, which still holds the previous extractor."""
        if self._extractor is None:
            self.at(None, self._load_limit)
            self._extractor = self._load()
        self._extractor.watch = self._watch

    def close(self) -> None:
        """Close the extractor."""
        if self._extractor is not None:
            self._extractor.close()

    def take(self) -> list[Job] | None:
        """Return a batch once it is full or its first page has waited for ``DRIPPER_BATCH_WAIT`` seconds."""
        with contextlib.suppress(Empty):
            return self._context.retries.get_nowait()
        job = self._context.queue.get()
        if job is None:
            return None
        # Set at once, so that no page is lost if the thread dies while it waits for more.
        self._batch = batch = [job]
        deadline = job.submitted + self._wait
        while len(batch) < self._size:
            try:
                job = self._context.queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                break
            if job is None:
                self._context.queue.put(None)
                break
            batch.append(job)
        return batch

    def answer(self, batch: list[Job]) -> list[Extraction]:
        """Return the extractions of a batch. If the extractor itself fails, all pages fall back."""
        assert self._extractor is not None
        self._jobs = {id(job.source): job for job in batch}
        self.at(None)
        try:
            answers = self._extractor.extract([job.source for job in batch])
            if len(answers) != len(batch):
                raise RuntimeError(f"{len(answers)} answers for {len(batch)} pages")
        except Exception as error:  # This would be a bug, but no page may be lost.
            logger.debug("the extractor raised", exc_info=True)
            answers = [self._fall_back(job, error) for job in batch]
        self._jobs = {}
        return answers

    def _fall_back(self, job: Job, error: Exception) -> Extraction:
        assert self._extractor is not None
        self.at(job)
        return self._extractor.fall_back(job.source, FallbackReason.ENGINE_ERROR, f"{type(error).__name__}: {error}")

    def _watch(self, document: Document | None) -> None:
        self.at(None if document is None else self._jobs.get(id(document)))


class FallbackWorker(Worker):
    """Runs the fallback for pages on which another thread got stuck."""

    def __init__(self, context: WorkerContext, *, fall_back: Callable[[Job], Extraction]) -> None:
        super().__init__(context)
        self._fall_back = fall_back

    def take(self) -> list[Job] | None:
        """Return one page."""
        job = self._context.queue.get()
        return None if job is None else [job]

    def answer(self, batch: list[Job]) -> list[Extraction]:
        """Return the fallback's extraction of the page."""
        return [self._fall_back(job) for job in batch]
