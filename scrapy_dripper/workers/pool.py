"""A pool of worker processes, which are started on demand, killed when stuck, and ended when idle."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import weakref
from collections.abc import Sequence

from scrapy_dripper.config import ENGINES, FALLBACKS, OUT_OF_PROCESS, Config, ConfigError
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.extraction import Extraction
from scrapy_dripper.machine import cores
from scrapy_dripper.workers.errors import ClosedError, StartError
from scrapy_dripper.workers.process import OnAside, Process, Relay
from scrapy_dripper.workers.wire import Task

logger = logging.getLogger(__name__)

START_SECONDS = 60.0
"""Time limit for starting a worker."""
FIRST_STARTS, FIRST_PAUSE = 3, 0.3
"""Attempts to start the first worker of a pool, and the delay between them in seconds."""
GROW_SECONDS = 0.5
"""How long batches wait for workers, one after the other, before another worker is started."""
IDLE_SECONDS = 30.0
"""Idle time after which a worker ends; the last one of a pool stays. A spare worker is kept for the same time after a
page was slow or stopped its worker."""
STAND_INS = 4
"""Processes that may run in addition to the configured ones; as many as the configured ones if those are more."""
PAUSE_SECONDS = 5.0
"""Delay after a failed start before another worker is started. Existing workers go on."""
TICK = 0.1
"""Seconds between two checks of the workers."""
_STANDSTILL = 1.0
"""Delay of a check, in seconds, that means that this process was suspended or starved."""


class Pool:
    """At most ``most`` worker processes for one configuration, plus stand-ins while pages are slow.

    A slow page does not block others: its worker is set *aside*, and a stand-in takes its place. A page that is likely
    to be slow goes to a worker that is aside from the start. All methods are thread-safe.
    """

    def __init__(
        self, config: Config, most: int, role: str = "pages", relay: Relay | None = None, *, spare: bool = False
    ) -> None:
        """``relay`` answers the requests of ``"pages"`` workers to a model in another process.

        With ``spare``, a stand-in is started ahead of time once a page has been slow.
        """
        self.most = most
        """Maximum number of processes, not counting stand-ins."""
        self._config, self._role, self._relay = config, role, relay
        self._keeps_spare, self._spare_from, self._spare_until = spare, 0.0, 0.0
        self._user_code = config.fallback not in FALLBACKS or config.engine not in ENGINES
        self._memory = config.worker_memory << 20 if role == "pages" else None
        self._changed = threading.Condition()
        self._all: list[Process] = []
        self._idle: list[Process] = []
        self._starting = self._closed = False
        self._waiting = 0  # batches without a worker
        self._short_since: float | None = None  # when the first of them came after a worker had been idle
        self._worked = False
        self._peak = 0
        self._keeper: threading.Thread | None = None

    @property
    def pids(self) -> list[int]:
        """The process IDs of the workers."""
        return [process.pid for process in self._all]

    @property
    def peak(self) -> int:
        """The peak memory of a single worker so far, in bytes."""
        return self._peak

    @property
    def most_stand_ins(self) -> int:
        """Maximum number of stand-ins."""
        return max(STAND_INS, self.most)

    @property
    def most_suspects(self) -> int:
        """Maximum number of suspect pages in progress. One stand-in is reserved for pages that turn out to be slow."""
        return self.most_stand_ins - 1

    @property
    def aside_count(self) -> int:
        """Number of workers that are set aside and have a stand-in."""
        return min(self.most_stand_ins, sum(process.aside for process in self._all))

    def start(self) -> None:
        """Start the first worker and wait until it is ready. Do nothing if a worker has been ready before.

        Raise :exc:`~scrapy_dripper.engines.base.ModelError` or :exc:`~scrapy_dripper.config.ConfigError` if the worker
        rejects its configuration, and :exc:`~scrapy_dripper.workers.errors.StartError` if it cannot be started.
        """
        began = time.monotonic()
        for attempt in range(1, FIRST_STARTS + 1):
            try:
                if not self._worked:
                    self.give_back(self.lease())
                return
            except StartError:  # noqa: PERF203 - each start takes a process
                # The first worker may have been killed by accident, and without it the crawl would have no workers.
                if attempt == FIRST_STARTS or time.monotonic() - began > START_SECONDS / 2:
                    raise
                time.sleep(FIRST_PAUSE)

    def extract(
        self, tasks: Sequence[Task], *, aside: bool = False, on_aside: OnAside | None = None
    ) -> list[Extraction]:
        """Return one extraction per task, in order. Wait for a worker if all are busy.

        With ``aside``, the worker is set aside from the start. ``on_aside`` is called from another thread when the
        worker is set aside.

        Raise :exc:`~scrapy_dripper.workers.errors.WorkerError` if the worker ended or had to be killed,
        :exc:`~scrapy_dripper.workers.errors.StartError` if there is no worker and none can be started, and
        :exc:`~scrapy_dripper.workers.errors.ClosedError` if the pool is closed in the meantime.
        """
        try:
            process = self.lease(aside)
        except (ModelError, ConfigError) as error:  # start() was not called before
            raise StartError(str(error)) from None
        try:
            answers = process.extract(tasks, self._relay, time.monotonic, on_aside)
        except BaseException as error:
            self.forget(process)
            self._expect_more()
            if self._closed and isinstance(error, Exception):
                raise ClosedError from None
            raise
        self.give_back(process)
        return answers

    def close(self) -> None:
        """End all workers, without waiting for them."""
        with self._changed:
            self._closed = True
            idle, busy = self._idle, [process for process in self._all if process not in self._idle]
            self._all, self._idle = [], []
            self._changed.notify_all()
        for process in busy:
            process.kill()
        _end(idle)

    def lease(self, aside: bool = False) -> Process:
        """Return a worker for exclusive use by the caller."""
        beyond = aside
        while True:
            process = self._take(aside, beyond)
            if process is not None:
                return process
            try:
                return self._start(aside)
            except StartError as error:
                if not self._all:
                    raise
                logger.debug("no further worker process can be started: %(error)s", {"error": error})
                self._short_since, beyond = time.monotonic() + PAUSE_SECONDS, False
            finally:
                with self._changed:
                    self._starting = False
                    self._changed.notify_all()

    def _take(self, aside: bool, beyond: bool) -> Process | None:
        """Wait for an idle worker and return it, or None if the caller is to start another one.

        With ``beyond``, leave the configured number of workers to other pages.
        """
        with self._changed:
            self._waiting += 1
            try:
                while not self._closed:
                    if not aside or self.aside_count < self.most_suspects:
                        process = self._pop(beyond)
                        if process is not None:
                            process.aside = aside
                            return process
                        if not self._starting and self._grows(beyond):
                            self._starting = True
                            return None
                    self._changed.wait(TICK)
                raise ClosedError
            finally:
                self._waiting -= 1

    def _pop(self, beyond: bool) -> Process | None:
        """Return an idle worker, if there is one that the caller may have."""
        while self._idle and not (beyond and self._quick <= self.most):
            process = self._idle.pop()
            if not process.has_ended():
                return process
            self._all.remove(process)  # ended between two pages, so no page is the cause
            process.kill()
        return None

    @property
    def _quick(self) -> int:
        return len(self._all) - self.aside_count

    @property
    def _has_room(self) -> bool:
        return len(self._all) < self.most + self.most_stand_ins

    def _grows(self, beyond: bool) -> bool:
        """Return True if a batch that waits is to start another worker.

        The wait of a single batch does not tell: fast workers keep each of many batches waiting for a moment only.
        """
        if not self._all:
            return True
        if beyond:
            return self._has_room
        now = time.monotonic()
        if self._short_since is None:
            self._short_since = now
        return self._quick < self.most and now - self._short_since >= (GROW_SECONDS if self._quick else 0.0)

    def _start(self, aside: bool = False) -> Process:
        process = Process(self._config, self._role, self._memory, self._user_code, self._worked)
        process.aside = aside
        with self._changed:
            if self._closed:
                process.kill()
                raise ClosedError
            self._all.append(process)
        try:
            self._keep()
            process.wait_until_ready(START_SECONDS)
        except BaseException:
            self.forget(process)
            raise
        self._worked = True
        return process

    def _keep(self) -> None:
        """Start the thread that checks the workers, unless it is running."""
        if self._keeper is not None:
            return
        keeper = threading.Thread(target=_keep, args=(weakref.ref(self),), name="scrapy-dripper-keeper", daemon=True)
        try:
            keeper.start()
        except (RuntimeError, MemoryError) as error:
            raise StartError(f"the thread that checks it cannot be started: {error}") from error
        self._keeper = keeper

    def give_back(self, process: Process) -> None:
        """Take a worker back, to be used again."""
        with self._changed:
            self._peak = max(self._peak, process.peak)
            if process.tired or self._closed:
                with contextlib.suppress(ValueError):
                    self._all.remove(process)
                _end([process])
            else:
                process.idle_since, process.aside = time.monotonic(), False
                self._idle.append(process)
                if not self._waiting:
                    self._short_since = None
            self._changed.notify_all()

    def forget(self, process: Process) -> None:
        """End a worker that is not to be used again."""
        process.kill()
        with self._changed:
            with contextlib.suppress(ValueError):
                self._all.remove(process)
            self._changed.notify_all()

    def _look(self, stood_still: float) -> bool:
        """Kill late workers and end idle ones. Return False if the pool has been closed."""
        now = time.monotonic()
        with self._changed:
            for process in self._all:
                process.check(now, stood_still)
            if any(process.aside for process in self._all):
                self._expect_more()
            self._changed.notify_all()
            needs_spare = self._needs_spare(now)
            self._starting = self._starting or needs_spare
            old = [process for process in self._idle if now - process.idle_since > IDLE_SECONDS]
            old = old[: max(0, len(self._all) - 1)]
            for process in old:
                self._idle.remove(process)
                self._all.remove(process)
        _end(old)
        if needs_spare:
            self._start_spare()
        return not self._closed

    def _expect_more(self) -> None:
        """Keep a spare worker for a while, because slow pages come in groups."""
        self._spare_until = time.monotonic() + IDLE_SECONDS if self._keeps_spare else 0.0

    def _needs_spare(self, now: float) -> bool:
        wanted = self._spare_from <= now < self._spare_until and not (self._closed or self._starting or self._idle)
        return wanted and self._has_room and self._quick <= self.most

    def _start_spare(self) -> None:
        """Start a spare worker in a thread of its own."""

        def start() -> None:
            try:
                self.give_back(self._start())
            except (StartError, ModelError, ConfigError, ClosedError) as error:
                logger.debug("the spare worker process cannot be started: %(error)s", {"error": error})
                self._spare_from = time.monotonic() + PAUSE_SECONDS
            finally:
                started()

        def started() -> None:
            with self._changed:
                self._starting = False
                self._changed.notify_all()

        try:
            threading.Thread(target=start, name="scrapy-dripper-spare", daemon=True).start()
        except (RuntimeError, MemoryError):  # out of threads
            self._spare_from = time.monotonic() + PAUSE_SECONDS
            started()


def _keep(pool: weakref.ref[Pool]) -> None:
    """Check the workers of a pool until it is closed or collected."""
    last = time.monotonic()
    while True:
        time.sleep(TICK)
        now = time.monotonic()
        late = now - last - TICK
        last = now
        here = pool()
        if here is None or not here._look(late if late > _STANDSTILL else 0.0):
            return
        del here


def _end(processes: Sequence[Process]) -> None:
    """Let workers exit by themselves. This can take a moment, so it happens in a thread."""
    if not processes:
        return

    def end() -> None:
        for process in processes:
            process.end()

    try:
        threading.Thread(target=end, name="scrapy-dripper-end", daemon=True).start()
    except RuntimeError:  # out of threads
        for process in processes:
            process.kill()


def processes(config: Config) -> int:
    """Return the maximum number of worker processes of a crawl: by default, one less than the cores that it may use.

    Two cores are both used, because the crawl's process needs only an eighth of the time of a worker. With a large
    model there are two workers more, to keep it busy: workers that wait for the model need no core.
    """
    if config.processes is not None:
        return config.processes
    most = cores()
    if config.engine in OUT_OF_PROCESS:
        return max(1, most - 1) + 2
    return max(min(2, most), most - 1)
