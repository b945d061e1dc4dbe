"""Extraction in a thread of the crawl's process (``DRIPPER_PROCESSES = 0``), for debugging and where no worker starts.

Nothing ends a page that gets stuck here.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from scrapy_dripper.config import Config
from scrapy_dripper.data import Extraction, FallbackReason
from scrapy_dripper.workers import Task


class InProcess:
    """Takes the place of a :class:`~scrapy_dripper.workers.Pool`: one batch at a time, in the thread that calls."""

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
