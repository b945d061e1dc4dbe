"""Exceptions of worker processes."""

from __future__ import annotations

from scrapy_dripper.data import FallbackReason


class StartError(OSError):
    """A worker process cannot be started; the message says why."""


class WorkerError(Exception):
    """A worker process ended, or had to be killed, before it answered; the message says how."""

    def __init__(self, reason: FallbackReason, message: str, task: int | None = None) -> None:
        """``reason`` is ``timeout`` or ``worker_error``; ``task`` is the index of the task in progress, if known."""
        super().__init__(message)
        self.reason, self.task = reason, task


class ClosedError(Exception):
    """The pool has been closed, so the answer is no longer needed."""
