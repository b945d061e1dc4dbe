"""The daemon threads of a crawl without worker processes (``DRIPPER_PROCESSES = 0``).

One reads, labels and writes pages in batches, one does the fallback of stuck ones.
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

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document, Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor

logger = logging.getLogger(__name__)


SHIFT = 100_000_000
"""Bytes of pages after which a new thread takes over. lxml keeps every tag and attribute name that a thread has met
until the thread ends; ten million pages have some, hostile pages any number."""


@dataclass(eq=False, slots=True)
class Job:
    """One page on its way: what it is, who waits for it, and what has become of it so far."""

    source: Document
    config: Config
    """The options of this page: its own, or those of the crawl."""
    future: asyncio.Future[Extraction]
    submitted: float
    reason: FallbackReason | None = None
    """Why the engine does not get the page any more, if it does not."""
    error: str = ""
    deaths: int = 0
    """Worker processes that have died at this step of the page."""
    starts: int = 0
    """Times that there was no worker process for it."""
    suspect: bool = False
    """True if it may have stopped a worker process: it is tried alone, and other pages do not wait for it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing a thread does: since when, for which page if for a single one, and how long that may take."""

    since: float
    limit: float
    job: Job | None = None


class Clock:
    """Tells seconds, without those in which the process as a whole stood still: starved, suspended, in a debugger."""

    def __init__(self) -> None:
        self.missed = 0.0

    def __call__(self) -> float:
        """Return the time; only differences mean something."""
        return time.monotonic() - self.missed


@dataclass(frozen=True, slots=True, eq=False)
class WorkerContext:
    """What a worker works with: where its jobs come from, how long they may take, and whom it tells."""

    loop: asyncio.AbstractEventLoop
    queue: SimpleQueue[Job | None]
    """Single pages; None to stop."""
    ready: SimpleQueue[list[Job]]
    """Batches that are to be worked on as they are, before the queue."""
    timeout: float
    """Seconds of a step."""
    clock: Clock
    done: Callable[[Worker, list[Job], list[Extraction]], None]
    died: Callable[[Worker, BaseException], None]


class Worker(ABC):
    """A daemon thread that takes batches of jobs from queues and posts the answers to the event loop.

    It is never joined: a second Ctrl-C must not wait for a batch. Once :attr:`abandoned` it takes nothing more and
    what it still answers is dropped.
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
        """Wait for the next batch and return it, None to stop."""

    def prepare(self) -> None:  # noqa: B027 (not abstract: most workers need nothing)
        """Get ready, in the thread."""

    def close(self) -> None:  # noqa: B027
        """Give everything back, in the thread."""

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def abandon(self, now: float | None = None) -> tuple[list[Job], Job | None] | None:
        """Give the thread up and return its batch, and the page that stopped it if that is known.

        With a time, only if the step it is at has taken too long by then; return None otherwise, or if it has been
        abandoned before.
        """
        with self._lock:
            step = self._step
            if self.abandoned or (now is not None and (step is None or now - step.since < step.limit)):
                return None
            self.abandoned = True
            return self._batch, step.job if step is not None else None

    def at(self, job: Job | None, limit: float | None = None) -> None:
        """Note that a new step begins, for one page or for the whole batch."""
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
        """Work until there is nothing to do any more; return True if another thread goes on."""
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
        """Start another thread in the place of this one; return False if the system has none to give."""
        successor = self._new_thread()
        try:
            successor.start()
        except (RuntimeError, MemoryError):
            return False
        self.thread = successor
        return True

    def _rest(self) -> bool:
        """Become idle; return False if the thread has been abandoned meanwhile."""
        with self._lock:
            if not self.abandoned:
                self._step, self._batch = None, []
            return not self.abandoned

    def _post(self, callback: Callable[..., None], *args: Any) -> None:
        """Call back on the event loop: neither futures nor Scrapy may be touched from here."""
        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._context.loop.call_soon_threadsafe(callback, *args)


class ModelWorker(Worker):
    """Reads, labels and writes batches of pages with an extractor of its own."""

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
        """Load an extractor if the thread replaces another one, whose extractor is stuck with it."""
        if self._extractor is None:
            self.at(None, self._load_limit)
            self._extractor = self._load()
        self._extractor.watch = self._watch

    def close(self) -> None:
        """Close the extractor."""
        if self._extractor is not None:
            self._extractor.close()

    def take(self) -> list[Job] | None:
        """Return a batch that is full or whose first page has waited long enough."""
        with contextlib.suppress(Empty):
            return self._context.ready.get_nowait()
        job = self._context.queue.get()
        if job is None:
            return None
        # The batch is the worker's from its first page on: a thread that dies while it waits for more loses none.
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
        """Return the extractions of a batch; a broken engine is a fallback."""
        assert self._extractor is not None
        self._jobs = {id(job.source): job for job in batch}
        self.at(None)
        try:
            answers = self._extractor.extract([job.source for job in batch])
            if len(answers) != len(batch):
                raise RuntimeError(f"{len(answers)} answers for {len(batch)} pages")
        except Exception as error:  # An extractor never raises for a page, but no page may be lost if one does.
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
    """Runs the fallback for pages whose own thread is stuck."""

    def __init__(self, context: WorkerContext, *, fall_back: Callable[[Job], Extraction]) -> None:
        super().__init__(context)
        self._fall_back = fall_back

    def take(self) -> list[Job] | None:
        """Return one page."""
        job = self._context.queue.get()
        return None if job is None else [job]

    def answer(self, batch: list[Job]) -> list[Extraction]:
        """Return what the fallback makes of the page."""
        return [self._fall_back(job) for job in batch]
