"""The sandbox of one extractor: which pages go through the child process, and what they come back as."""

from __future__ import annotations

import contextlib
import json
import logging
import time
import weakref
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.extraction import Document, Extraction, FallbackReason, Metadata
from scrapy_dripper.page import PageError, plant
from scrapy_dripper.page.blocks import MAX_NODES
from scrapy_dripper.sandbox.danger import is_dangerous
from scrapy_dripper.sandbox.errors import SandboxError, StartError
from scrapy_dripper.sandbox.process import DeadError, LateError, Process
from scrapy_dripper.sandbox.trees import from_json

if TYPE_CHECKING:
    from lxml.html import HtmlElement

logger = logging.getLogger(__name__)

MEBIBYTE = 1 << 20
START_SECONDS = 60.0
"""Time that a child has to start before the crawl does."""
PATIENCE = 0.75
"""Share of ``DRIPPER_TIMEOUT`` that the child's part of a step may take; what comes back needs some time too."""
TIRED = 0.25
"""Share of the memory limit from which on a child that has needed so much makes room for a new one: it keeps some."""
_ROOM = 64 * MEBIBYTE
_GROWTH = 8
"""Bytes of an answer: so many, and so many times those of the document."""

_SUSPECT = (FallbackReason.TIMEOUT, FallbackReason.SANDBOX_ERROR)
"""Reasons for which a fallback may be in for the same trouble, whatever the document looks like."""


class Sandbox:
    """A child process, started when it is needed and replaced when it ends. Serves one thread at a time."""

    def __init__(self, config: Config) -> None:
        self._mode, self._timeout, self._mebibytes = config.sandbox, config.timeout, config.sandbox_memory
        self._process: Process | None = None
        self._finalizer: Any = None
        self._warned = False
        self._deadline: float | None = None
        self.peak = 0
        """Most memory that the child has held by its last answer, in bytes; 0 if it does not know."""

    def require(self) -> None:
        """Start the child if every page must go through it. Raise :exc:`~scrapy_dripper.config.ConfigError`."""
        if self._mode == "always":
            try:
                self._start(START_SECONDS)
            except StartError as error:
                raise ConfigError(
                    f"DRIPPER_SANDBOX is 'always', but the child process cannot be started ({error}); "
                    "'auto' goes on without it"
                ) from None

    @property
    def pid(self) -> int | None:
        """The process number of the child, None while there is none."""
        return None if self._process is None else self._process.pid

    def takes(self, document: Document, reason: FallbackReason | None = None) -> bool:
        """Return True if a document should go through the child; for a fallback, ``reason`` says why it is one."""
        if self._mode != "auto":
            return self._mode == "always"
        return reason in _SUSPECT or is_dangerous(document.html, searched=reason is not None)

    def begin(self) -> None:
        """A new step begins: its time runs from now."""
        self._deadline = time.monotonic() + PATIENCE * self._timeout

    def plant(
        self, document: Document, config: Config, profile: str = "native", flat: bool = False
    ) -> tuple[HtmlElement, bool]:
        """Do in the child what :func:`scrapy_dripper.page.plant` does. Raise :exc:`PageError` as that does."""
        try:
            answer, body = self._ask("plant", document, config, profile=profile, flat=flat)
        except StartError as error:
            self._go_without(error)
            return plant(document, config, profile, flat)
        with self._sense():
            return from_json(body, MAX_NODES + config.max_nodes), bool(answer["truncated"])

    def fall_back(self, document: Document, config: Config, reason: FallbackReason) -> Extraction | None:
        """Return what a fallback of ours makes of a document in the child; None if there can be no child.

        Raise :exc:`SandboxError`.
        """
        try:
            _, body = self._ask("fall_back", document, config, reason=str(reason))
        except StartError as error:
            self._go_without(error)
            return None
        from scrapy_dripper.output.content_json import from_json as content_from_json

        with self._sense():
            values = json.loads(body)
            content = values.pop("content")
            _strings(values, "title", "main_html", "markdown", "text", "source", "error")
            return Extraction(
                url=document.url,
                fallback_reason=reason,
                content=None if content is None else content_from_json(content),
                truncated=bool(values.pop("truncated")),
                **values,
            )

    def metadata(self, document: Document, config: Config) -> Metadata | None:
        """Return the metadata of a document; None if there can be no child. Raise :exc:`SandboxError`."""
        try:
            _, body = self._ask("metadata", document, config)
        except StartError as error:
            self._go_without(error)
            return None
        with self._sense():
            values = json.loads(body)
            _strings(values, *(field.name for field in fields(Metadata)))
            return Metadata(**values)

    def close(self) -> None:
        """End the child. The sandbox can go on to be used, with another one."""
        if self._process is not None:
            self._finalizer.detach()
            self._process.end()
            self._process = None

    def _start(self, seconds: float) -> Process:
        self._process = Process(self._mebibytes * MEBIBYTE, seconds)
        # If nobody closes this, no child stays, and no process that has ended.
        self._finalizer = weakref.finalize(self, self._process.kill)
        return self._process

    def _forget(self) -> None:
        if self._process is not None:
            self._finalizer.detach()
            self._process.kill()
            self._process = None

    def _ask(self, do: str, document: Document, config: Config, **more: Any) -> tuple[dict[str, Any], bytes]:
        """Return the child's answer. Raise :exc:`PageError`, :exc:`SandboxError` or :exc:`StartError`."""
        if self._deadline is None:
            self.begin()
        assert self._deadline is not None
        html = document.html[: config.max_bytes]
        text = isinstance(html, str)
        body = html.encode("utf-8", "surrogatepass") if isinstance(html, str) else html
        header = {"do": do, "url": document.url, "charset": document.charset, "text": text, **more}
        header["config"] = _plain(config)
        if self._process is not None and self._process.has_ended():  # between two pages: neither of them did it
            self._forget()
        process = self._process or self._start(max(0.01, self._deadline - time.monotonic()))
        try:
            seconds = max(0.01, self._deadline - time.monotonic())
            answer, content = process.ask(header, body, seconds, _ROOM + _GROWTH * len(body))
        except LateError:
            self._forget()
            raise SandboxError(
                FallbackReason.TIMEOUT, f"no parser was done within DRIPPER_TIMEOUT = {self._timeout:g} seconds"
            ) from None
        except DeadError as error:
            self._forget()
            raise SandboxError(FallbackReason.SANDBOX_ERROR, f"the child process gave no answer: {error}") from None
        except BaseException:
            self._forget()
            raise
        peak = answer.get("peak")
        self.peak = peak if isinstance(peak, int) else 0
        if self.peak > TIRED * self._mebibytes * MEBIBYTE:
            self.close()
        self._check(answer)
        return answer, content

    def _check(self, answer: dict[str, Any]) -> None:
        """Raise what an answer says that went wrong."""
        if answer.get("memory"):
            raise SandboxError(
                FallbackReason.OVERSIZE, f"more memory than DRIPPER_SANDBOX_MEMORY = {self._mebibytes:,} MiB"
            )
        with self._sense():
            if "reason" in answer:
                error = PageError(FallbackReason(answer["reason"]), str(answer["message"]))
            elif "error" in answer:
                error = PageError(FallbackReason.PARSE_ERROR, str(answer["error"]))
            else:
                return
        raise error

    @contextlib.contextmanager
    def _sense(self) -> Any:
        """End the child and raise :exc:`SandboxError` if its answer makes no sense."""
        try:
            yield
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
            self._forget()
            raise SandboxError(
                FallbackReason.SANDBOX_ERROR, f"the child process answered nonsense ({type(error).__name__}: {error})"
            ) from None

    def _go_without(self, error: StartError) -> None:
        """Warn, once, that there is no child; raise :exc:`SandboxError` if the page must not do without."""
        self._process = None
        if self._mode == "always":
            raise SandboxError(FallbackReason.SANDBOX_ERROR, f"the child process cannot be started: {error}")
        level = logging.DEBUG if self._warned else logging.WARNING
        self._warned = True
        logger.log(
            level,
            "The child process for dangerous pages cannot be started (%(error)s); they are parsed without it. "
            "DRIPPER_SANDBOX = 'never' does so without trying.",
            {"error": error},
        )


def _plain(config: Config) -> dict[str, Any]:
    """Return the options that a child needs to know. No guessing of languages: that would be a model in each child."""
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    if callable(config.fallback):
        del values["fallback"]
    return values | {"guess_language": False}


def _strings(values: dict[str, Any], *names: str) -> None:
    """Raise ValueError unless the values of these names, and no others but one boolean, are strings or None."""
    for name in names:
        if values[name] is not None and not isinstance(values[name], str):
            raise ValueError(f"{name} is no string")
