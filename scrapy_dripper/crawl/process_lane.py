"""Pages from the event loop to worker processes and back, in batches."""

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
from scrapy_dripper.crawl.patience import Patience
from scrapy_dripper.crawl.threads import Job
from scrapy_dripper.extraction import Extraction, FallbackReason
from scrapy_dripper.fallback import nothing
from scrapy_dripper.workers import Pool, StartError, Task, WorkerError
from scrapy_dripper.workers.errors import ClosedError

logger = logging.getLogger(__name__)

RESTART_SECONDS = 1.0
"""Pause before a batch for which there was no worker is tried again."""
STARTS = 5
"""Times that a page is tried for which there is no worker."""
HOSTS_NAMED = 10
"""Hosts with pages that stop workers that are named as warnings; further ones are for debugging."""


class ProcessObserver(Protocol):
    """Whom a lane tells what happens; called on the event loop."""

    def batch(self, pages: int) -> None:
        """A batch of so many pages has been answered."""

    def workers(self, processes: int, memory: int) -> None:
        """There are so many worker processes, and one of them has held so many bytes at most."""

    def killed(self, reason: FallbackReason) -> None:
        """A worker process died, or was killed because it was stuck."""


@dataclass(eq=False, slots=True)
class Batch:
    """Pages that are with a worker together."""

    sent: list[Job]
    aside: bool
    """True if other pages do not wait for its worker."""
    jobs: list[Job] = field(default_factory=list)
    """Those whose answers are waited for; of a slow batch, the page that is slow."""

    def __post_init__(self) -> None:
        self.jobs = list(self.sent)


class ProcessLane:
    """The batches of one crawl on their way through the workers. All methods belong to the event loop.

    A page in which a worker is stuck, or dies twice, goes to its fallback, in another worker, and if that ends in the
    same way its items stay as they are. The pages that were in a batch with it go to another worker as soon as it is
    slow. Pages that may have stopped a worker are tried alone, in workers that the others do not wait for.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: Config,
        pool: Pool,
        settle: Callable[[Job, Extraction], None],
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
        """Queue a page. It is settled later, whatever happens."""
        self._waiting.append(job)
        self._dispatch()

    @property
    def slow(self) -> int:
        """Pages that others need not wait for, up to a batch for each stand-in: they take memory."""
        pages = len(self._suspects) + sum(len(batch.jobs) for batch in self._batches if batch.aside)
        return min(pages, self._pool.stand_ins * self._config.batch_size)

    def check(self, now: float) -> None:
        """The pool looks after the time."""

    def stop(self) -> None:
        """Send no more batches, and drop the answers of those that are under way."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()
        self._suspects.clear()

    def _dispatch(self) -> None:
        """Send batches that are ready, as long as there may be workers for them."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        aside = sum(batch.aside for batch in self._batches)
        for _ in range(min(len(self._suspects), self._pool.suspects - aside)):
            self._send(Batch([self._suspects.popleft()], aside=True))
        while self._waiting and sum(not batch.aside for batch in self._batches) < self._pool.most:
            left = self._waiting[0].submitted + self._config.batch_wait - time.monotonic()
            if len(self._waiting) < self._config.batch_size and left > 0:
                self._timer = self._loop.call_later(left, self._dispatch)
                return
            count = min(len(self._waiting), self._config.batch_size)
            self._send(Batch([self._waiting.popleft() for _ in range(count)], aside=False))

    def _send(self, batch: Batch) -> None:
        tasks = [self._task(job) for job in batch.sent]
        thread = threading.Thread(target=self._run, args=(batch, tasks), name="scrapy-dripper", daemon=True)
        self._batches.add(batch)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:  # The system has no thread to give; it may have one later.
            self._loop.call_soon(self._failed, batch, StartError(str(error)))

    def _task(self, job: Job) -> Task:
        return Task(job.source, job.config, job.reason, job.error or None, self._patience.seconds(_host(job)))

    def _run(self, batch: Batch, tasks: Sequence[Task]) -> None:
        """Get the answers, in a thread of the batch's own: waiting for a worker blocks it."""
        try:
            answers = self._pool.extract(tasks, aside=batch.aside, on_slow=partial(self._post, self._slow, batch))
        except BaseException as error:
            self._post(self._failed, batch, error)
        else:
            self._post(self._done, batch, answers)

    def _post(self, callback: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # The loop is closed: nobody waits any more.
            logger.debug("an answer came after the end of the crawl")

    def _slow(self, batch: Batch, at: int | None) -> None:
        """Go on without a batch whose worker is slow; if it is known at which page, with the others of the batch."""
        if batch not in self._batches or self._stopped:
            return
        batch.aside = True
        if at is not None:
            others = [job for job in batch.jobs if job is not batch.sent[at]]
            batch.jobs = [batch.sent[at]]
            self._again(others)
        self._dispatch()

    def _again(self, jobs: Sequence[Job]) -> None:
        """Queue pages that have waited before, in front of those that have not."""
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
        """Decide which page it was, and what becomes of it and of the others."""
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
            else:  # not known, or one that is with another worker by now
                self._again_alone(batch.jobs)
        elif isinstance(error, StartError):
            self._without_worker(batch, error)
        else:
            logger.error("scrapy-dripper failed to ask a worker process", exc_info=error)
            for job in batch.jobs:
                self._leave(job, FallbackReason.WORKER_ERROR, f"{type(error).__name__}: {error}")
        self._dispatch()

    def _page_stopped(self, job: Job, error: WorkerError) -> None:
        """Let the fallback have a page that a worker did not get through; one that died may be tried once more."""
        job.deaths += 1
        late = error.reason is FallbackReason.TIMEOUT
        if not late and job.deaths == 1:  # somebody else may have killed it: the system, for want of memory
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
            self._batches.add(batch)  # until it is tried again
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
            "A page stopped a worker process and falls back: %(url)s (%(error)s). Further ones of this host get less "
            "and less time, and are logged at DEBUG.",
            {"url": job.source.url or "a page without URL", "error": error},
        )


def _host(job: Job) -> str:
    try:
        return urlsplit(job.source.url).hostname or ""
    except ValueError:
        return ""
