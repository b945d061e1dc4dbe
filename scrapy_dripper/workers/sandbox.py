"""Where pages are extracted in this process: those that a parser could be stuck in still go through a worker."""

from __future__ import annotations

import logging
from dataclasses import replace

from scrapy_dripper.config import FALLBACKS, Config, ConfigError
from scrapy_dripper.extraction import Document, Extraction, FallbackReason
from scrapy_dripper.fallback import OWN, SUSPECT, fall_back
from scrapy_dripper.retrieval import with_front_matter
from scrapy_dripper.workers.danger import is_dangerous
from scrapy_dripper.workers.errors import StartError, WorkerError
from scrapy_dripper.workers.pool import Pool
from scrapy_dripper.workers.process import Relay
from scrapy_dripper.workers.wire import Task

logger = logging.getLogger(__name__)


class Sandbox:
    """One worker process, started when it is needed and replaced when it ends."""

    def __init__(self, config: Config, relay: Relay | None = None, *, own_engine: bool = False) -> None:
        """With ``own_engine``, the engine is an object that no worker has: pages stay here, fallbacks do not.

        Raise :exc:`ConfigError` if every page is to go through a worker and that is not possible.
        """
        self._mode, self._own_engine, self._warned = config.sandbox, own_engine, False
        self._config = config if config.fallback in FALLBACKS else replace(config, fallback="none")
        self._pool = Pool(self._config, 1, relay=relay)
        if self._mode == "always":
            if own_engine:
                raise ConfigError(
                    "DRIPPER_SANDBOX is 'always', but a worker process cannot have an engine that is an object of this "
                    "one: name the engine in DRIPPER_ENGINE"
                )
            try:
                self._pool.start()
            except StartError as error:
                raise ConfigError(
                    f"DRIPPER_SANDBOX is 'always', but no worker process can be started ({error}); "
                    "'auto' goes on without it"
                ) from None

    @property
    def pid(self) -> int | None:
        """The process number of the worker, None while there is none."""
        return next(iter(self._pool.pids), None)

    @property
    def peak(self) -> int:
        """Most memory that the worker has held by its last answer, in bytes; 0 if the system does not say."""
        return self._pool.peak

    def takes(self, document: Document) -> bool:
        """Return True if a document should go through the worker."""
        if self._mode != "auto" or self._own_engine:
            return self._mode == "always"
        return is_dangerous(document.html)

    def takes_fallback(self, document: Document, config: Config, reason: FallbackReason) -> bool:
        """Return True if a fallback should run in the worker; a callable of the user's never does."""
        if config.fallback not in OWN or self._mode != "auto":
            return config.fallback in OWN and self._mode == "always"
        return reason in SUSPECT or is_dangerous(document.html, searched=True)

    def extract(self, document: Document, config: Config) -> Extraction | None:
        """Return the extraction of a document; None if it has to be made here."""
        own = config.fallback in FALLBACKS
        asked = config if own else replace(config, fallback="none")
        found = self._ask(Task(document, asked))
        if found is None or own or found.fallback_reason is None or found.source != "fallback:none":
            return found
        answer = fall_back(document, config, found.fallback_reason, found.error)
        if found.fallback_reason is FallbackReason.LOW_QUALITY and answer.is_empty:
            return self._ask(Task(document, replace(asked, min_quality=None)))
        answer = replace(answer, metadata=found.metadata)
        return with_front_matter(answer, found.metadata) if config.front_matter and found.metadata else answer

    def fall_back(
        self, document: Document, config: Config, reason: FallbackReason, error: str | None
    ) -> Extraction | None:
        """Return what a fallback makes of a document; None if it has to be made here."""
        return self._ask(Task(document, config, reason, error))

    def close(self) -> None:
        """End the worker."""
        self._pool.close()

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
            return fall_back(
                task.document, replace(task.config, fallback="empty"), task.reason or error.reason, problem
            )
        except StartError as error:
            return self._go_without(task, error)

    def _go_without(self, task: Task, error: StartError) -> Extraction | None:
        """Warn, once, that there is no worker; where every page must go through it, the page falls back to nothing."""
        if self._mode == "always":
            return _empty(task, FallbackReason.WORKER_ERROR, f"no worker process can be started: {error}")
        logger.log(
            logging.DEBUG if self._warned else logging.WARNING,
            "The worker process for dangerous pages cannot be started (%(error)s); they are extracted without it. "
            "DRIPPER_SANDBOX = 'never' does so without trying.",
            {"error": error},
        )
        self._warned = True
        return None


def _empty(task: Task, reason: FallbackReason, error: str) -> Extraction:
    return fall_back(task.document, replace(task.config, fallback="empty"), reason, error)
