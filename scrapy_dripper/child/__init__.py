"""The code that runs in a worker process: its request loop. Before each step, it reports which page the step is for.

:mod:`scrapy_dripper.workers` is the parent's side.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from scrapy_dripper import data, workers
from scrapy_dripper.checks import OUT_OF_PROCESS, is_method
from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.data import SUSPECT, Document, Extraction, FallbackReason, LeftOutError, nothing
from scrapy_dripper.derived import without_forms
from scrapy_dripper.engines.base import Engine, ModelError
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.workers.wire import Message, Task, pack_extraction, receive, send, unpack_tasks

logger = logging.getLogger(__name__)

MAX_REQUEST = 1 << 40
"""Size limit of a request in bytes. It is large because the crawl is trusted."""
RETRY_SECONDS = 30.0
"""Delay before loading an engine again that could not be loaded."""
TIRED = 0.5
"""Share of its memory, and of the addresses that were left when it was ready, above which a worker is replaced, because
libraries do not release all memory."""
SCRIPT = (
    "DRIPPER_FALLBACK or DRIPPER_ENGINE names something in the script that crawls, which worker processes must not run "
    "again: move it to a module of its own"
)
_MOST_WORDS = 10_000


class Port:
    """The worker's end of the two pipes."""

    def __init__(self, requests: BinaryIO, answers: BinaryIO) -> None:
        self._requests, self._answers = requests, answers
        self._lock = threading.RLock()

    def say(self, header: Mapping[str, Any], parts: Sequence[bytes] = ()) -> None:
        """Send a message. End this process if the crawl has ended."""
        try:
            with self._lock:  # user code may log from other threads
                send(self._answers, header, parts)
        except OSError:
            raise SystemExit(0) from None

    def hear(self) -> Message | None:
        """Return the next message, or None at the end of the stream."""
        try:
            return receive(self._requests, MAX_REQUEST)
        except EOFError:
            return None

    def ask(self, header: Mapping[str, Any], parts: Sequence[bytes]) -> Message:
        """Send a question and return the answer. End this process if the crawl has ended."""
        self.say(header, parts)
        answer = self.hear()
        if answer is None:
            raise SystemExit(0)
        return answer


class PageServer:
    """Extracts pages. If the engine cannot be loaded at startup, loading is retried later."""

    def __init__(self, config: Config, port: Port) -> None:
        self._config, self._port = config, port
        self._extractor: Extractor | None = None
        self.missing: str | None = None
        """The reason why the engine is not loaded, or None if it is."""
        self._again = 0.0
        self._tasks: dict[int, int] = {}
        """The number of each task by the identity of its document."""
        self._without: list[tuple[str, ...]] = []
        """The forms that each task leaves out."""
        self._number: int | None = None
        """That of the task in progress."""
        self._ready = 0
        """The size of the address space, in bytes, when the engine was loaded."""

    def load(self) -> None:
        """Load the engine. Raise ModelError or ConfigError if that fails."""
        try:
            config, engine = replace(self._config, processes=0), _engine(self._config, self._port)
            extractor = Extractor(config, engine, watch=self._watch)
        finally:
            self._again = time.monotonic() + RETRY_SECONDS
        self._extractor, self.missing = extractor, None
        self._ready = _memory("VmSize")

    def answer(self, header: dict[str, Any], bodies: list[bytes]) -> None:
        """Extract the documents of a request and send the extractions."""
        tasks = unpack_tasks(header, bodies)
        self._without, before = [task.without for task in tasks], data.at_form
        data.at_form = self._at_form
        try:
            found = self._extracted(tasks)
        finally:
            data.at_form = before
        self._step(None)
        rows, parts = [], []
        for task, extraction in zip(tasks, found, strict=True):
            row, own = _packed(extraction, task)
            rows.append(row)
            parts += own
        self._port.say({"say": "done", "extractions": rows, "tired": self._is_tired(), "peak": _memory("VmHWM")}, parts)

    def _is_tired(self) -> bool:
        limit = self._config.worker_memory << 20  # of addresses, which a process uses up before its memory
        grown = _memory("VmSize") - self._ready
        return _memory("VmRSS") > TIRED * limit or grown > TIRED * max(0, limit - self._ready)

    def _extracted(self, tasks: Sequence[Task]) -> list[Extraction]:
        """Return the extractions of pages, or of pages whose fallback is to run. They do not come together."""
        rescued = [self._rescue(i, task, task.reason) for i, task in enumerate(tasks) if task.reason is not None]
        if rescued:
            return rescued
        if self._extractor is None and time.monotonic() >= self._again:
            self._step(None)
            try:
                self.load()
            except (ModelError, ConfigError) as error:
                self.missing = str(error)
        if self._extractor is None:
            return [self._rescue(i, task, FallbackReason.ENGINE_LOST, self.missing) for i, task in enumerate(tasks)]
        self._tasks = {id(task.document): number for number, task in enumerate(tasks)}
        return self._extractor.extract([task.document for task in tasks])

    def _rescue(self, number: int, task: Task, reason: FallbackReason, error: str | None = None) -> Extraction:
        """Return the fallback's extraction of a document, or of its first part if the page stopped a worker before."""
        from scrapy_dripper.fallback import fall_back, first_part  # for few pages

        self._step(number)
        part = first_part(task.document) if reason in SUSPECT and is_method(task.config.fallback) else None
        found = fall_back(part or task.document, task.config, reason, error or task.error)
        return found if part is None else replace(found, truncated=True)

    def _watch(self, document: Document | None) -> None:
        self._step(None if document is None else self._tasks[id(document)])

    def _step(self, number: int | None, form: str | None = None) -> None:
        self._number = number
        self._port.say({"say": "step", "task": number, "form": form})

    def _at_form(self, form: str | None) -> None:
        if self._number is not None and form in self._without[self._number]:
            raise LeftOutError
        self._step(self._number, form)


def serve(requests: BinaryIO, answers: BinaryIO, startup: dict[str, Any], ready: Callable[[], object]) -> None:
    """Answer requests until the stream ends."""
    port = Port(requests, answers)
    _forward_logs(port, startup["logging"])
    workers.in_worker = lambda: _refuse(port)
    try:
        config = Config(**startup["config"])
        serves = (
            _remote(config).ModelServer(config, port.say) if startup["role"] == "model" else PageServer(config, port)
        )
        serves.load()
    except (ModelError, ConfigError) as error:
        if not startup["again"] or startup["role"] == "model":
            port.say({"failed": type(error).__name__, "message": str(error)})
            return
        serves.missing = str(error)
    port.say({"ready": True})
    ready()
    while True:
        message = port.hear()
        if message is None:
            return
        serves.answer(*message)


def _refuse(port: Port) -> None:
    """Report an error and end this process. It has imported the script of the crawl, and would start a crawl itself."""
    port.say({"failed": "ConfigError", "message": SCRIPT})
    os._exit(1)


def _engine(config: Config, port: Port) -> Engine | None:
    """Return an engine that asks the model process, or None if the engine is to be loaded in this process."""
    if config.engine not in OUT_OF_PROCESS:
        return None
    engine: Engine = _remote(config).load_remote(config, port.ask)
    return engine


def _remote(config: Config) -> ModuleType:
    """Return the module of an engine whose model has its own process. It holds the code of both sides: ``load_remote``
    for pages, and ``ModelServer``, which loads and answers as :class:`PageServer` does.
    """
    return import_module(f"scrapy_dripper.engines.{config.engine}.engine")


def _packed(extraction: Extraction, task: Task) -> tuple[dict[str, Any], list[bytes]]:
    try:
        return pack_extraction(extraction)
    except Exception:
        logger.debug("%(url)s loses what was asked for in addition", {"url": extraction.url}, exc_info=True)
    try:
        return pack_extraction(without_forms(extraction))
    except (TypeError, ValueError, AttributeError, RecursionError) as error:  # a custom fallback returned it
        problem = f"the extraction cannot be sent to the crawl ({type(error).__name__}: {error})"
        return pack_extraction(nothing(task.document.url, FallbackReason.OUTPUT_ERROR, problem, "empty"))


def _forward_logs(port: Port, level: int) -> None:
    class Forward(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                words = self.format(record)[:_MOST_WORDS]
            except Exception:  # a logging handler must never raise
                words = f"a log record cannot be formatted: {record.msg!r}"[:_MOST_WORDS]
            port.say({"say": "log", "name": record.name, "level": record.levelno, "message": words})

    root = logging.getLogger()
    root.handlers = [Forward()]
    root.setLevel(max(level, logging.DEBUG))
    for name in ("trafilatura", "htmldate", "charset_normalizer"):
        logging.getLogger(name).setLevel(max(level, logging.ERROR))


def _memory(name: str) -> int:
    """Return a field of ``/proc/self/status``, in bytes; 0 if the system has none."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1_024
    return 0
