"""Whether a model still runs at all: asked after some failures in a row, and again after a pause."""

from __future__ import annotations

import logging
import time
from typing import Protocol

from scrapy_dripper.engines.base import EngineError, EngineLostError

logger = logging.getLogger(__name__)

LOST_AFTER = 3
"""Failures in a row before a model is tried with what it must be able to do."""
RETRY_SECONDS = 30.0
"""Pause after which a model that was lost is loaded again."""


class Model(Protocol):
    """What may be lost."""

    def smoke(self) -> None:
        """Run a small pass. Raise what goes wrong."""

    def release(self) -> None:
        """Give back memory that only passes need."""

    def reload(self) -> None:
        """Load the model again, after letting go of it. Raise what goes wrong."""


class Loss:
    """Counts the failures of a model. Belongs to the thread that runs it."""

    def __init__(self) -> None:
        self._failures, self.again = 0, 0.0
        self.why = ""
        """Why the model is lost; empty while it is not."""

    def worked(self) -> None:
        """Take note of a pass that worked."""
        self._failures = 0

    def failed(self, problem: str, model: Model) -> EngineError:
        """Return the error of a page; after some in a row, find out whether it is the page's or the model's."""
        self._failures += 1
        if self._failures < LOST_AFTER:
            return EngineError(problem)
        try:
            model.smoke()
        except Exception as error:
            self.why = f"the model does not run any more ({type(error).__name__}: {error})"
            self.again = time.monotonic() + RETRY_SECONDS
            model.release()
            return EngineLostError(self.why)
        self._failures = 0
        return EngineError(problem)

    def is_over(self, model: Model) -> bool:
        """Return True if the model is not lost. One that was lost long enough ago is loaded again for that."""
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
