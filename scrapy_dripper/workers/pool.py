"""The workers of a crawl: started on demand, killed at a deadline, replaced when they end, and ended when idle."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace

from scrapy_dripper.checks import OUT_OF_PROCESS
from scrapy_dripper.config import Config, ConfigError, ModelError
from scrapy_dripper.data import Extraction, FallbackReason, nothing
from scrapy_dripper.machine import cores
from scrapy_dripper.workers.process import OnSlow, Process, Relay, StartError, WorkerError
from scrapy_dripper.workers.wire import Message, Task

logger = logging.getLogger(__name__)

START_SECONDS = 60.0
"""Time limit for starting a worker."""
FIRST_STARTS, RESTARTS, RESTART_SECONDS = 3, 5, 1.0
"""Attempts to start the first worker of a pool, and to find one for pages of a crawl; the seconds between two."""
IDLE_SECONDS = 30.0
"""Idle time after which a worker ends; the last one of a pool stays."""
STAND_INS = 4
"""Processes that may run in addition to the configured ones; as many as the configured ones if those are more."""
PAUSE_SECONDS = 5.0
"""Delay after a failed start before another worker is started. Existing workers go on."""
TICK = 0.1
"""Seconds between two checks of the workers."""
_STANDSTILL = 1.0
"""Delay of a check, in seconds, that means that this process was suspended or starved."""


class ClosedError(Exception):
    """The pool has been closed, so the answer is no longer needed."""


class Pool:
    """At most ``most`` worker processes for one configuration, plus stand-ins while pages are slow.

    A worker with a slow page, or with a page that is tried *alone*, is set aside: it does not count as one of the
    ``most``, so that other pages need not wait for it. All methods are thread-safe. A process that was forked from this
    one starts its own workers.
    """

    def __init__(self, config: Config, most: int, role: str = "pages", relay: Relay | None = None) -> None:
        """``relay`` answers the requests of ``"pages"`` workers to a model in another process."""
        self.most = most
        """Maximum number of processes, not counting stand-ins."""
        self._config, self._role, self._relay = config, role, relay
        self.peak = 0
        """The peak memory of a single worker so far, in bytes."""
        self._worked = False
        self._closed = False
        self._begin()
        _pools.add(self)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._all: list[Process] = []
        self._idle: list[Process] = []
        self._starting = False
        self._again = 0.0  # when another worker may be started after one that could not
        self._keeper: threading.Thread | None = None

    @property
    def pids(self) -> list[int]:
        """The process IDs of the workers."""
        return [process.pid for process in self._all]

    @property
    def stand_ins(self) -> int:
        """Maximum number of stand-ins. One of them is reserved for pages that turn out to be slow."""
        return max(STAND_INS, self.most)

    @property
    def aside_count(self) -> int:
        """Number of workers that are set aside and have a stand-in."""
        return min(self.stand_ins, sum(process.aside for process in self._all))

    def start(self) -> None:
        """Start the first worker and wait until it is ready. Do nothing if a worker has been ready before.

        Raise :exc:`~scrapy_dripper.config.ModelError` or :exc:`~scrapy_dripper.config.ConfigError` if the worker
        rejects its configuration, and :exc:`~scrapy_dripper.workers.StartError` if it cannot be started.
        """
        if not self._worked:
            # The first worker may have been killed by accident, and without it the crawl would have no workers.
            self.give_back(self._leased(FIRST_STARTS))

    def extract(
        self, tasks: Sequence[Task], *, alone: bool = False, on_slow: OnSlow | None = None, starts: int = 1
    ) -> list[Extraction]:
        """Return one extraction per task, in order. Wait for a worker if all are busy.

        With ``alone``, the worker is set aside from the start. ``on_slow`` is called from another thread when a step
        takes long. ``starts`` is the number of attempts to start a worker if there is none.

        Raise :exc:`~scrapy_dripper.workers.WorkerError` if the worker ended or had to be killed,
        :exc:`~scrapy_dripper.workers.StartError` if there is no worker and none can be started, and
        :exc:`~scrapy_dripper.workers.pool.ClosedError` if the pool is closed in the meantime.
        """
        try:
            process = self._leased(starts, alone)
        except (ModelError, ConfigError) as error:  # start() was not called before
            raise StartError(str(error)) from None
        try:
            answers = process.extract(tasks, self._relay, on_slow)
        except BaseException as error:
            self.forget(process)
            if self._closed and isinstance(error, Exception):
                raise ClosedError from None
            raise
        self.give_back(process)
        return answers

    def extract_alone(
        self,
        task: Task,
        error: WorkerError | None = None,
        *,
        killed: Callable[[FallbackReason], None] = lambda _: None,
        starts: int = 1,
    ) -> Extraction:
        """Return the extraction of a page that may stop workers. ``error`` says how it stopped one before, if it did.

        If a worker dies, the page is tried once more, because the system may have killed the worker. If that worker
        dies too, or if one misses the deadline, the form of the output that it was making is left out. If it was making
        none, the fallback runs, under the same rule. If it also fails, the extraction is empty. ``killed`` is called
        for each worker that was lost. Raise StartError and ClosedError as :meth:`extract` does.
        """
        died = False
        while True:
            if error is not None:
                if error.reason is not FallbackReason.TIMEOUT and not died:
                    died = True
                elif error.form is not None and error.form not in task.without:
                    task, died = replace(task, without=(*task.without, error.form)), False
                elif task.reason is None:
                    task, died = replace(task, reason=error.reason, error=str(error)), False
                else:
                    return nothing(task.document.url, task.reason, f"{task.error}; fallback: {error}")
            try:
                return self.extract([task], alone=True, starts=starts)[0]
            except WorkerError as lost:
                killed(lost.reason)
                error = lost

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

    def _leased(self, starts: int, alone: bool = False) -> Process:
        """Return a worker, after a number of attempts to start one at most."""
        for _ in range(starts - 1):
            with contextlib.suppress(StartError):
                return self.lease(alone)
            time.sleep(RESTART_SECONDS)
        return self.lease(alone)

    def lease(self, alone: bool = False) -> Process:
        """Return a worker for exclusive use by the caller."""
        while True:
            process = self._take(alone)
            if process is not None:
                return process
            try:
                return self._start(alone)
            except StartError as error:
                if not self._all:
                    raise
                logger.debug("no further worker process can be started: %(error)s", {"error": error})
                self._again = time.monotonic() + PAUSE_SECONDS
            finally:
                with self._changed:
                    self._starting = False
                    self._changed.notify_all()

    def _take(self, alone: bool) -> Process | None:
        """Wait for an idle worker and return it, or None if the caller is to start another one."""
        with self._changed:
            while not self._closed:
                if not alone or self.aside_count < self.stand_ins - 1:
                    process = self._pop()
                    if process is not None:
                        process.aside = alone
                        return process
                    if not self._starting and self._may_grow(alone):
                        self._starting = True
                        return None
                self._changed.wait(TICK)
            raise ClosedError

    def _pop(self) -> Process | None:
        while self._idle:
            process = self._idle.pop()
            if not process.has_ended():
                return process
            self._all.remove(process)  # ended between two pages, so no page is the cause
            process.kill()
        return None

    def _may_grow(self, alone: bool) -> bool:
        """Return True if a batch that waits is to start another worker."""
        if not self._all:
            return True
        if time.monotonic() < self._again:
            return False
        quick = len(self._all) - self.aside_count
        return quick < self.most or ((not quick or alone) and len(self._all) < self.most + self.stand_ins)

    def _start(self, alone: bool = False) -> Process:
        process = Process(self._config, self._role, self._worked)
        process.aside = alone
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
            self.peak = max(self.peak, process.peak)
            if process.tired or self._closed:
                with contextlib.suppress(ValueError):
                    self._all.remove(process)
                _end([process])
            else:
                process.idle_since, process.aside = time.monotonic(), False
                self._idle.append(process)
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
            old = [process for process in self._idle if now - process.idle_since > IDLE_SECONDS]
            old = old[: max(0, len(self._all) - 1)]
            for process in old:
                self._idle.remove(process)
                self._all.remove(process)
            self._changed.notify_all()
        _end(old)
        return not self._closed

    def _after_fork(self) -> None:
        """Leave the workers to the process that started them."""
        for process in self._all:
            process.abandon()
        self._begin()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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


LOST_AFTER = 3
"""Number of consecutive failures (the process dies or hangs) after which the model counts as lost."""
RETRY_SECONDS = 30.0
"""Delay after which a lost model is tried again, because a driver may have been reset, or memory may be free."""


class SharedModel:
    """The worker with a large model, which answers the requests of all other workers, one after the other."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.pool = Pool(config, 1, "model")
        self._failures, self._again, self._lost = 0, 0.0, ""
        self._lock = threading.Lock()

    def label(self, header: dict[str, object], parts: list[bytes]) -> Message:
        """Return the answer of the model to a worker's request. An error is returned as an answer, too.

        The answer has the key ``lost`` while the model counts as lost. Some CUDA errors persist until the process ends,
        so a process that cannot go on is ended, and the model is loaded again after a pause.
        """
        with self._lock:  # workers that wait for their turn while the model is lost must not each load it again
            if time.monotonic() < self._again:
                return {"lost": self._lost}, []
            try:
                process = self.pool.lease()
            except Exception as error:
                return self._lose(f"the model's process cannot be started: {error}")
            try:
                answer = process.label(header, parts, self._config.timeout)
            except BaseException as error:
                self.pool.forget(process)
                if not isinstance(error, Exception):
                    raise
                self._failures += 1
                return self._lose(str(error)) if self._failures >= LOST_AFTER else ({"error": str(error)}, [])
            self._failures = 0
            if answer[0].get("is_lost"):
                self.pool.forget(process)
                self._lose("the model no longer runs")
            else:
                self.pool.give_back(process)
            return answer

    def _lose(self, why: str) -> Message:
        self._again, self._lost = time.monotonic() + RETRY_SECONDS, why
        return {"lost": why}, []


class Workers:
    """The pool of a crawl, with the process of its model if that is a large one."""

    def __init__(self, config: Config) -> None:
        """Start the first worker of each kind.

        Raise :exc:`ConfigError` if the fallback is a callable that a worker cannot import, and the same errors as
        :meth:`Pool.start`.
        """
        self._model = SharedModel(config) if config.engine in OUT_OF_PROCESS else None
        relay = None if self._model is None else self._model.label
        self.pool = Pool(config, processes(config), relay=relay)
        try:
            if self._model is not None:
                self._model.pool.start()
            self.pool.start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the processes, without waiting for them."""
        self.pool.close()
        if self._model is not None:
            self._model.pool.close()
