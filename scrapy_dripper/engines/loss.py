"""Detect that a model no longer runs at all, by a test after some failures in a row, and recover it after a pause."""

from __future__ import annotations

import logging
import time
from typing import Protocol

from scrapy_dripper.engines.base import EngineError, EngineLostError

logger = logging.getLogger(__name__)

LOST_AFTER = 3
"""Number of failures in a row after which the model is tested on a page that it must be able to process."""
RETRY_SECONDS = 30.0
"""Seconds after which a lost model is loaded again."""


class Model(Protocol):
    """A model that may be lost."""

    def smoke(self) -> None:
        """Run a small pass. Raise any exception if it fails."""

    def release(self) -> None:
        """Release memory that only passes need."""

    def reload(self) -> None:
        """Release the model and load it again. Raise any exception if that fails."""


class Loss:
    """Counts the failures of a model. Only the thread that runs the model may use it."""

    def __init__(self) -> None:
        self._failures, self.again = 0, 0.0
        self.why = ""
        """Why the model is lost; empty while it is not."""

    def worked(self) -> None:
        """Record a successful pass."""
        self._failures = 0

    def failed(self, problem: str, model: Model) -> EngineError:
        """Return the error for a page that failed. After several in a row, test whether the model is lost."""
        self._failures += 1
        if self._failures < LOST_AFTER:
            return EngineError(problem)
        try:
            model.smoke()
        except Exception as error:
            self.why = f"the model no longer runs ({type(error).__name__}: {error})"
            self.again = time.monotonic() + RETRY_SECONDS
            model.release()
            return EngineLostError(self.why)
        self._failures = 0
        return EngineError(problem)

    def is_over(self, model: Model) -> bool:
        """Return True if the model is not lost. If it was lost long enough ago, try to load it again first."""
        if not self.why:
            return True
        if time.monotonic() < self.again:
            return False
        try:
            model.reload()
            model.smoke()
        except Exception as error:
            logger.debug("the model is still lost: %(error)s", {"error": error})
            self.again = time.monotonic() + RETRY_SECONDS
            return False
        self._failures, self.why = 0, ""
        return True
