"""Batching without threads, processes or waiting: jobs, idle workers, and an event loop with simulated time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.job import Job
from scrapy_dripper.crawl.threads import Worker
from scrapy_dripper.extraction import Document, Extraction, FallbackReason

T = TypeVar("T")


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock stops while there is work, and then jumps to the next timer.

    Where there is none, it raises RuntimeError: whoever waits would wait for ever.
    """

    def __init__(self) -> None:
        self.now = 1_000.0
        super().__init__()

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready:  # type: ignore[attr-defined]
            timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
            if not timers:
                raise RuntimeError("expected a timer or something to do: nothing will ever happen again")
            self.now = max(self.now, min(timers))
        super()._run_once()  # type: ignore[misc]


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in such a loop, which also provides ``time.monotonic``."""
    loop = Loop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", loop.time)
        try:
            return loop.run_until_complete(main)
        finally:
            loop.close()


def job(loop: asyncio.AbstractEventLoop, number: int = 0, config: Config | None = None) -> Job:
    """Return the job of a page."""
    config = config or Config(fallback="html")
    document = Document(f"<p>Page number {number}.</p>", f"https://site.example/{number}")
    return Job(document, config, loop.create_future(), loop.time())


def extraction(one: Job) -> Extraction:
    """Return an extraction that an engine could return for a page."""
    return Extraction(one.source.url, None, "<p>", "text", "text", "fake")


class IdleWorker(Worker):
    """A worker whose thread never runs. The test sets its state."""

    refuse: BaseException | None = None

    def start(self) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.thread = SimpleNamespace(is_alive=lambda: self.alive)  # type: ignore[assignment]
        self.alive = True

    def answer(self, batch: list[Job]) -> list[Extraction]:
        raise NotImplementedError

    def take(self) -> list[Job] | None:
        raise NotImplementedError

    def begin(self, batch: list[Job], at: Job | None = None) -> None:
        """Make the worker process a batch, and one of its pages if it is given."""
        self._batch = batch
        self.at(at)


@dataclass
class Observer:
    """The events of a batcher."""

    waited: list[int] = field(default_factory=list)
    pages: list[Extraction] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    held: int = 0
    stops: bool = False

    def waiting(self, pages: int) -> None:
        self.waited.append(pages)

    def held_back(self) -> None:
        self.held += 1

    def page(self, extraction: Extraction) -> None:
        self.pages.append(extraction)

    def batch(self, pages: int) -> None:
        self.batches.append(pages)

    def workers(self, processes: int, memory: int) -> None:
        raise NotImplementedError

    def killed(self, reason: FallbackReason) -> None:
        raise NotImplementedError

    def cancelled(self, pages: int) -> None:
        self.dropped.append(pages)

    def stopping(self) -> bool:
        return self.stops
