"""The workers of a crawl, and the process of a large model that they share."""

from __future__ import annotations

import threading
import time

from scrapy_dripper.config import OUT_OF_PROCESS, Config
from scrapy_dripper.workers.pool import Pool, processes
from scrapy_dripper.workers.wire import Message

LOST_AFTER = 3
"""Number of consecutive failures (the process dies or hangs) after which the model counts as lost."""
RETRY_SECONDS = 30.0
"""Delay after which a lost model is tried again, because a driver may have been reset, or memory may be free."""


class Model:
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
        self._model = Model(config) if config.engine in OUT_OF_PROCESS else None
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
