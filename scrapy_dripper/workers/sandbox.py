"""The sandbox of an :class:`Extractor`: a worker process for documents that might block or exhaust this one."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Protocol

from scrapy_dripper.config import FALLBACKS, Config, ConfigError
from scrapy_dripper.extraction import Document, Extraction, FallbackReason
from scrapy_dripper.fallback import PARSING, SUSPECT, fall_back, nothing
from scrapy_dripper.retrieval import with_front_matter
from scrapy_dripper.workers.danger import is_dangerous
from scrapy_dripper.workers.errors import StartError, WorkerError
from scrapy_dripper.workers.pool import Pool
from scrapy_dripper.workers.wire import Task

logger = logging.getLogger(__name__)


class Isolation(Protocol):
    """Decides which documents and fallbacks run in a worker process, and runs them there."""

    def extract(self, document: Document, config: Config) -> Extraction | None:
        """Return the extraction of a document, or None if it is to be extracted in this process."""

    def fall_back(self, document: Document, config: Config, reason: FallbackReason, error: str | None) -> Extraction:
        """Run the configured fallback on a document and return its extraction."""

    def close(self) -> None:
        """Release all resources."""


def isolation(config: Config, *, local_engine: bool = False) -> Isolation:
    """Return the isolation that ``DRIPPER_SANDBOX`` selects.

    With ``local_engine``, the engine is an object of this process, so pages stay here and only fallbacks may run in the
    worker. Raise :exc:`ConfigError` if ``DRIPPER_SANDBOX`` is ``always`` but pages cannot run in a worker.
    """
    return NoSandbox() if config.sandbox == "never" else Sandbox(config, local_engine=local_engine)


class NoSandbox:
    """Runs everything in this process."""

    def extract(self, document: Document, config: Config) -> Extraction | None:  # noqa: ARG002 (interface)
        """Return None."""
        return None

    def fall_back(self, document: Document, config: Config, reason: FallbackReason, error: str | None) -> Extraction:
        """Run the fallback."""
        return fall_back(document, config, reason, error)

    def close(self) -> None:
        """Do nothing."""


class Sandbox:
    """One worker process, which is started when it is needed and replaced when it ends."""

    def __init__(self, config: Config, *, local_engine: bool = False) -> None:
        """Same parameters and errors as :func:`isolation`."""
        self._mode, self._local_engine, self._warned = config.sandbox, local_engine, False
        self._config = config if config.fallback in FALLBACKS else replace(config, fallback="none")
        self._pool = Pool(self._config, 1)
        if self._mode == "always":
            if local_engine:
                raise ConfigError(
                    "DRIPPER_SANDBOX is 'always', but a worker process cannot use an engine object of this process: "
                    "name the engine in DRIPPER_ENGINE"
                )
            try:
                self._pool.start()
            except StartError as error:
                raise ConfigError(
                    f"DRIPPER_SANDBOX is 'always', but no worker process can be started ({error}); "
                    "use 'auto' to extract without it"
                ) from None

    @property
    def pid(self) -> int | None:
        """The process ID of the worker, or None while there is none."""
        return next(iter(self._pool.pids), None)

    @property
    def peak(self) -> int:
        """Peak memory of the worker as of its last answer, in bytes; 0 if the system does not report it."""
        return self._pool.peak

    def extract(self, document: Document, config: Config) -> Extraction | None:
        """Extract a document in the worker if it is dangerous or ``DRIPPER_SANDBOX`` is ``always``."""
        if not self._takes(document):
            return None
        built_in = config.fallback in FALLBACKS
        asked = config if built_in else replace(config, fallback="none")
        found = self._ask(Task(document, asked))
        if found is None or built_in or found.fallback_reason is None or found.source != "fallback:none":
            return found
        answer = fall_back(document, config, found.fallback_reason, found.error)
        if found.fallback_reason is FallbackReason.LOW_QUALITY and answer.is_empty:
            return self._ask(Task(document, replace(asked, min_quality=None)))
        answer = replace(answer, metadata=found.metadata)
        return with_front_matter(answer, found.metadata) if config.front_matter and found.metadata else answer

    def fall_back(self, document: Document, config: Config, reason: FallbackReason, error: str | None) -> Extraction:
        """Run a fallback in the worker if it might be slow. A custom fallback runs in this process."""
        found = None
        if self._takes_fallback(document, config, reason):
            found = self._ask(Task(document, config, reason, error))
        return found or fall_back(document, config, reason, error)

    def close(self) -> None:
        """End the worker."""
        self._pool.close()

    def _takes(self, document: Document) -> bool:
        if self._mode == "always":
            return True
        return not self._local_engine and is_dangerous(document.html)

    def _takes_fallback(self, document: Document, config: Config, reason: FallbackReason) -> bool:
        if config.fallback not in PARSING:
            return False
        return self._mode == "always" or reason in SUSPECT or is_dangerous(document.html, searched=True)

    def _ask(self, task: Task) -> Extraction | None:
        try:
            try:
                return self._pool.extract([task])[0]
            except WorkerError as error:
                if task.reason is None:
                    task = replace(task, reason=error.reason, error=str(error))
                    return self._pool.extract([task])[0]
                raise
        except WorkerError as error:
            problem = "; ".join(filter(None, [task.error, f"fallback: {error}"]))
            return nothing(task.document.url, task.reason or error.reason, problem, "empty")
        except StartError as error:
            return self._go_without(task, error)

    def _go_without(self, task: Task, error: StartError) -> Extraction | None:
        """Handle a missing worker: warn once, or return an empty extraction if every page must run in a worker."""
        if self._mode == "always":
            problem = f"no worker process can be started: {error}"
            return nothing(task.document.url, FallbackReason.WORKER_ERROR, problem, "empty")
        logger.log(
            logging.DEBUG if self._warned else logging.WARNING,
            "The worker process for dangerous pages cannot be started (%(error)s); they are extracted without it. "
            "Set DRIPPER_SANDBOX = 'never' to silence this warning.",
            {"error": error},
        )
        self._warned = True
        return None
