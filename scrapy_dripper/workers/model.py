"""The process of a large model, which serves all workers. It is restarted when it ends, with a pause if it keeps
failing."""

from __future__ import annotations

import threading
import time

from scrapy_dripper.config import Config
from scrapy_dripper.workers.messages import Message
from scrapy_dripper.workers.pool import Pool

LOST_AFTER = 3
"""Number of consecutive failures (the process dies or hangs) after which the model counts as lost."""
RETRY_SECONDS = 30.0
"""Delay after which a lost model is tried again, because a driver may have been reset, or memory may be free."""


class Model:
    """One process, which answers the requests of workers one after the other."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._pool = Pool(config, 1, "model")
        self._failures, self._again, self._lost = 0, 0.0, ""
        self._lock = threading.Lock()

    @property
    def pids(self) -> list[int]:
        """The process ID, if there is a process."""
        return self._pool.pids

    def start(self) -> None:
        """Start the process, unless it has been started before. Raise the same errors as :meth:`Pool.start`."""
        self._pool.start()

    def label(self, header: dict[str, object], parts: list[bytes]) -> Message:
        """Return the answer of the process to a worker's request. An error is returned as an answer, too.

        The answer has the key ``lost`` while the model counts as lost. Some CUDA errors persist until the process ends,
        so a process that cannot go on is ended, and the model is loaded again after a pause.
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
            self._again, self._lost = time.monotonic() + RETRY_SECONDS, "the model no longer runs"
        else:
            self._pool.give_back(process)
        return answer

    def _lose(self, why: str) -> Message:
        self._again, self._lost = time.monotonic() + RETRY_SECONDS, why
        return {"lost": why}, []
