"""A page that a batcher extracts, and the interface that sends it to workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document, Extraction, FallbackReason


@dataclass(eq=False, slots=True)
class Job:
    """A page that is being extracted, the future that waits for it, and its state.

    With a ``reason``, the worker runs the fallback.
    """

    source: Document
    config: Config
    """The options for this page."""
    future: asyncio.Future[Extraction]
    submitted: float
    reason: FallbackReason | None = None
    """Why the page falls back; None while the engine may process it."""
    error: str = ""
    deaths: int = 0
    """Worker processes that have died on this page, since the start or since it began to fall back."""
    starts: int = 0
    """Failed attempts to start a worker process for this page."""
    suspect: bool = False
    """True if the page may have stopped a worker process. It is retried alone, and other pages do not wait for it."""


Settle = Callable[[Job, Extraction], None]
"""Called with a job and its extraction, on the event loop."""


class Lane(Protocol):
    """Takes pages to workers: to processes, or to a thread. All methods run on the event loop."""

    @property
    def exempt_pages(self) -> int:
        """Pages exempt from backpressure."""

    def submit(self, job: Job) -> None:
        """Queue a page. It is always settled, now or later, even if its worker fails."""

    def check(self, now: float) -> None:
        """Replace stuck workers. Called periodically while pages are pending; ``now`` is the batcher's time."""

    def stop(self) -> None:
        """Send no more pages to workers, and ignore the answers to those in progress."""
