"""The process that has a large model, for all workers: started again when it ends, and given up for a while when it
fails and fails."""

from __future__ import annotations

import threading
import time

from scrapy_dripper.config import Config
from scrapy_dripper.workers.messages import Message
from scrapy_dripper.workers.pool import Pool

LOST_AFTER = 3
"""Times in a row that the process dies, or hangs, before it counts as lost."""
RETRY_SECONDS = 30.0
"""Pause after which a model that was lost is tried again: a driver may have been reset, or memory be free."""


class Model:
    """One process, which answers the questions of workers one after the other."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._pool = Pool(config, 1, "model")
        self._failures, self._again, self._lost = 0, 0.0, ""
        self._lock = threading.Lock()

    @property
    def pids(self) -> list[int]:
        """The number of the process, if there is one."""
        return self._pool.pids

    def start(self) -> None:
        """Start the process, unless there has been one. Raise what :meth:`Pool.start` raises."""
        self._pool.start()

    def label(self, header: dict[str, object], parts: list[bytes]) -> Message:
        """Return what the process answers to the pages of a worker; what went wrong, as an answer too.

        That has a word ``lost`` while the model is given up. CUDA keeps some errors until a process ends, so a process
        that cannot go on is ended, and the model loaded anew after a pause.
        """
        # Workers that wait for their turn while the model is lost must not each load it again.
        with self._lock:
            return self._labels(header, parts)

    def close(self) -> None:
        """End the process."""
        self._pool.close()

    def _labels(self, header: dict[str, object], parts: list[bytes]) -> Message:
        if time.monotonic() < self._again:
            return {"lost": self._lost}, []
        try:
            process = self._pool.lease()
        except Exception as error:
            return self._lose(f"the model's process cannot be started: {error}")
        try:
            answer = process.label(header, parts, self._config.timeout, time.monotonic)
        except Exception as error:
            self._pool.forget(process)
            self._failures += 1
            if self._failures >= LOST_AFTER:
                return self._lose(str(error))
            return {"error": str(error)}, []
        except BaseException:
            self._pool.forget(process)
            raise
        self._failures = 0
        if answer[0].get("is_lost"):
            self._pool.forget(process)
            self._again, self._lost = time.monotonic() + RETRY_SECONDS, "the model does not run any more"
        else:
            self._pool.give_back(process)
        return answer

    def _lose(self, why: str) -> Message:
        self._again, self._lost = time.monotonic() + RETRY_SECONDS, why
        return {"lost": why}, []
