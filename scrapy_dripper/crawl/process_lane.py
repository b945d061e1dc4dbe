"""Dispatch batches of pages from the event loop to worker processes, and retry or isolate pages that stop one."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.job import Job, Settle
from scrapy_dripper.crawl.patience import Patience
from scrapy_dripper.extraction import Extraction, FallbackReason
from scrapy_dripper.fallback import nothing
from scrapy_dripper.workers import Pool, StartError, Task, WorkerError
from scrapy_dripper.workers.errors import ClosedError

logger = logging.getLogger(__name__)

RESTART_SECONDS = 1.0
"""Delay before a batch is retried for which no worker could be started."""
STARTS = 5
"""Attempts to find a worker for a page."""
HOSTS_NAMED = 10
"""Hosts whose first page that stops a worker is logged as a warning. Pages of further hosts are logged at DEBUG."""


class ProcessObserver(Protocol):
    """Receives the events of a lane, on the event loop."""

    def batch(self, pages: int) -> None:
        """A batch of pages has been extracted."""

    def workers(self, processes: int, memory: int) -> None:
        """Report the number of worker processes, and the peak memory of the largest one in bytes."""

    def killed(self, reason: FallbackReason) -> None:
        """A worker process died, or was killed because it was stuck."""


@dataclass(eq=False, slots=True)
class Batch:
    """Pages that were sent to a worker together."""

    sent: list[Job]
    aside: bool
    """True if the batch does not count against the number of workers, so that other pages do not wait for it."""
    jobs: list[Job] = field(default_factory=list)
    """The jobs whose answers are still awaited. In a slow batch, only the slow page."""

    def __post_init__(self) -> None:
        self.jobs = list(self.sent)


class ProcessLane:
    """The batches of one crawl. Call all methods on the event loop.

    If a worker gets stuck on a page, or dies on it twice, the page falls back in another worker. If that fails in the
    same way, the page is settled without content. As soon as a page is slow, the rest of its batch moves to another
    worker. A page that may have stopped a worker is a *suspect*: it is retried alone, in a worker that other pages do
    not wait for.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: Config,
        pool: Pool,
        settle: Settle,
        observer: ProcessObserver,
    ) -> None:
        self._loop, self._config, self._pool, self._settle, self._observer = loop, config, pool, settle, observer
        self._waiting: deque[Job] = deque()
        self._suspects: deque[Job] = deque()
        self._batches: set[Batch] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._patience = Patience(config.timeout)
        self._hosts: set[str] = set()

    def submit(self, job: Job) -> None:
        """Queue a page. It is always settled later, even if its worker fails."""
        self._waiting.append(job)
        self._dispatch()

    @property
    def exempt_pages(self) -> int:
        """Pages exempt from backpressure: at most one batch for each stand-in, because they take memory."""
        pages = len(self._suspects) + sum(len(batch.jobs) for batch in self._batches if batch.aside)
        return min(pages, self._pool.most_stand_ins * self._config.batch_size)

    def check(self, now: float) -> None:
        """Do nothing: the pool enforces the time limits."""

    def stop(self) -> None:
        """Send no more batches, and ignore the answers to those in flight."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()
        self._suspects.clear()

    def _dispatch(self) -> None:
        """Send the batches that are ready, up to the number of workers."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        aside = sum(batch.aside for batch in self._batches)
        for _ in range(min(len(self._suspects), self._pool.most_suspects - aside)):
            self._send(Batch([self._suspects.popleft()], aside=True))
        while self._waiting and sum(not batch.aside for batch in self._batches) < self._pool.most:
            left = self._waiting[0].submitted + self._config.batch_wait - time.monotonic()
            if len(self._waiting) < self._config.batch_size and left > 0:
                self._timer = self._loop.call_later(left, self._dispatch)
                return
            count = min(len(self._waiting), self._config.batch_size)
            self._send(Batch([self._waiting.popleft() for _ in range(count)], aside=False))

    def _send(self, batch: Batch) -> None:
        try:
            tasks = [self._task(job) for job in batch.sent]
        except Exception as error:  # the jobs are no longer in a queue, so nothing else would settle them
            self._batches.add(batch)
            self._loop.call_soon(self._failed, batch, error)
            return
        thread = threading.Thread(target=self._run, args=(batch, tasks), name="scrapy-dripper", daemon=True)
        self._batches.add(batch)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:  # Out of threads; there may be one later.
            self._loop.call_soon(self._failed, batch, StartError(str(error)))

    def _task(self, job: Job) -> Task:
        return Task(job.source, job.config, job.reason, job.error or None, self._patience.seconds(_host(job)))

    def _run(self, batch: Batch, tasks: Sequence[Task]) -> None:
        """Extract a batch. This blocks, so each batch has its own thread."""
        try:
            answers = self._pool.extract(tasks, aside=batch.aside, on_aside=partial(self._post, self._set_aside, batch))
        except BaseException as error:
            self._post(self._failed, batch, error)
        else:
            self._post(self._done, batch, answers)

    def _post(self, callback: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # The loop is closed.
            logger.debug("an answer came after the end of the crawl")

    def _set_aside(self, batch: Batch, at: int | None) -> None:
        """Set a batch aside. If the page that takes long is known, requeue the others of the batch."""
        if batch not in self._batches or self._stopped:
            return
        batch.aside = True
        if at is not None:
            others = [job for job in batch.jobs if job is not batch.sent[at]]
            batch.jobs = [batch.sent[at]]
            self._again(others)
        self._dispatch()

    def _again(self, jobs: Sequence[Job]) -> None:
        """Requeue pages in front of those that have not been sent yet."""
        self._suspects.extend(job for job in jobs if job.suspect)
        self._waiting.extendleft(job for job in reversed(jobs) if not job.suspect)

    def _again_alone(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            job.suspect = True
        self._again(jobs)

    def _done(self, batch: Batch, answers: list[Extraction]) -> None:
        self._batches.remove(batch)
        if self._stopped:
            return
        self._observer.batch(len(batch.jobs))
        self._observer.workers(len(self._pool.pids), self._pool.peak)
        for job, extraction in zip(batch.sent, answers, strict=True):
            if job in batch.jobs:
                self._patience.answered(_host(job))
                self._settle(job, extraction)
        self._dispatch()

    def _failed(self, batch: Batch, error: BaseException) -> None:
        """Find the page that failed, if possible, and retry or settle the pages of the batch."""
        self._batches.remove(batch)
        if self._stopped or isinstance(error, ClosedError):
            return
        if isinstance(error, WorkerError):
            self._observer.killed(error.reason)
            at = 0 if len(batch.sent) == 1 else error.task
            page = None if at is None else batch.sent[at]
            if page in batch.jobs:
                self._again([job for job in batch.jobs if job is not page])
                self._page_stopped(page, error)
            else:  # unknown, or already requeued to another worker
                self._again_alone(batch.jobs)
        elif isinstance(error, StartError):
            self._without_worker(batch, error)
        elif len(batch.sent) > 1:  # one of the pages cannot be sent
            self._again_alone(batch.jobs)
        else:
            logger.error("scrapy-dripper failed to ask a worker process", exc_info=error)
            for job in batch.jobs:
                self._leave(job, FallbackReason.WORKER_ERROR, f"{type(error).__name__}: {error}")
        self._dispatch()

    def _page_stopped(self, job: Job, error: WorkerError) -> None:
        """Send a page that stopped its worker to the fallback. If the worker died, retry the page once before."""
        job.deaths += 1
        late = error.reason is FallbackReason.TIMEOUT
        if not late and job.deaths == 1:  # the page may not be the cause: the system may be out of memory
            self._again_alone([job])
            return
        self._warn(job, error)
        if job.reason is None:
            self._patience.stopped(_host(job))
            job.reason, job.error, job.deaths = error.reason, str(error), 0
            self._again_alone([job])
        else:
            self._leave(job, job.reason, f"{job.error}; fallback: {error}")

    def _leave(self, job: Job, reason: FallbackReason, error: str) -> None:
        self._settle(job, nothing(job.source.url, reason, error))

    def _without_worker(self, batch: Batch, error: StartError) -> None:
        for job in batch.jobs:
            job.starts += 1
            if job.starts >= STARTS:
                self._leave(job, FallbackReason.WORKER_ERROR, f"no worker process can be started: {error}")
        batch.jobs = [job for job in batch.jobs if job.starts < STARTS]
        if batch.jobs:
            self._batches.add(batch)  # until it is retried
            self._loop.call_later(RESTART_SECONDS, self._retry, batch)

    def _retry(self, batch: Batch) -> None:
        self._batches.remove(batch)
        if not self._stopped:
            self._again(batch.jobs)
            self._dispatch()

    def _warn(self, job: Job, error: WorkerError) -> None:
        host = _host(job)
        is_news = host not in self._hosts and len(self._hosts) < HOSTS_NAMED
        if is_news:
            self._hosts.add(host)
        logger.log(
            logging.WARNING if is_news else logging.DEBUG,
            "A page stopped a worker process and falls back: %(url)s (%(error)s). Further such pages of this host get "
            "less and less time, and are logged at DEBUG.",
            {"url": job.source.url or "a page without URL", "error": error},
        )


def _host(job: Job) -> str:
    try:
        return urlsplit(job.source.url).hostname or ""
    except Exception:  # ValueError; and a subclass of str may raise anything
        return ""
