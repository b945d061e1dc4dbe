"""What goes wrong with worker processes."""

from __future__ import annotations

from scrapy_dripper.extraction import FallbackReason


class StartError(OSError):
    """A worker process does not start; the message says why."""


class WorkerError(Exception):
    """A worker process ended, or had to be killed, before it answered; the message says how."""

    def __init__(self, reason: FallbackReason, message: str, task: int | None = None) -> None:
        """``reason`` is ``timeout`` or ``worker_error``; ``task`` the number of the task that it was at, if known."""
        super().__init__(message)
        self.reason, self.task = reason, task


class ClosedError(Exception):
    """The pool has been closed: nobody waits for an answer."""
