"""Tell a model that no longer runs at all from pages that fail, by a small test after some failures in a row."""

from __future__ import annotations

import time
from collections.abc import Callable

from scrapy_dripper.engines.base import EngineError, EngineLostError

LOST_AFTER = 3
"""Number of failures in a row after which the model is tested on a page that it must be able to process."""
RETRY_SECONDS = 30.0
"""Seconds after which a lost model is tested again."""


class Health:
    """Counts the failures of a model. Only the thread that runs the model may use it.

    The process that has the model is ended if the model is lost, where that is a worker. Elsewhere, the model is
    tested again from time to time, because another program may have used the memory of the device.
    """

    def __init__(self, test: Callable[[], object]) -> None:
        """``test`` runs a small pass. It raises any exception if that fails."""
        self._test, self._failures, self.again = test, 0, 0.0
        self.lost = ""
        """Why the model is lost; empty while it is not."""

    def worked(self) -> None:
        """Record a successful pass."""
        self._failures = 0

    def failed(self, problem: str) -> EngineError:
        """Return the error for a page that failed. After several in a row, test whether the model is lost."""
        self._failures += 1
        if self._failures < LOST_AFTER:
            return EngineError(problem)
        return self._tested() or EngineError(problem)

    def error(self) -> EngineLostError | None:
        """Return the error for all pages while the model is lost, and None while it is not."""
        if not self.lost:
            return None
        return EngineLostError(self.lost) if time.monotonic() < self.again else self._tested()

    def _tested(self) -> EngineLostError | None:
        try:
            self._test()
        except Exception as error:
            self.lost = f"the model no longer runs ({type(error).__name__}: {error})"
            self.again = time.monotonic() + RETRY_SECONDS
            return EngineLostError(self.lost)
        self._failures, self.lost = 0, ""
        return None
