"""Methods that extract a document without a model, as engines and as fallbacks, and the metadata of such pages."""

from __future__ import annotations

import contextlib
import logging
import pkgutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scrapy_dripper.characters import without_controls
from scrapy_dripper.checks import METHODS, is_method
from scrapy_dripper.config import Config, load
from scrapy_dripper.data import Document, Extraction, FallbackReason, Metadata, attempt, from_plain, nothing, to_plain
from scrapy_dripper.declared.metadata import metadata_of
from scrapy_dripper.derived import naming, with_derived
from scrapy_dripper.fallback.methods import first_part, limited_tree, text_within, whole_page
from scrapy_dripper.output.content_json import sanitized
from scrapy_dripper.page.page import NOT_A_PAGE, PageError

__all__ = ["by_method", "fall_back", "first_part", "metadata", "method"]

logger = logging.getLogger(__name__)
_reported: set[str] = set()


def method(name: str) -> Callable[[str, str, Config, int], Extraction]:
    """Return the function of one of :data:`~scrapy_dripper.checks.METHODS`.

    It is called with the text and the URL of a document, the options, and the length of the document.
    """
    found: Callable[[str, str, Config, int], Extraction] = pkgutil.resolve_name(f"{__name__}.{METHODS[name].function}")
    return found


def by_method(name: str, document: Document, config: Config) -> Extraction:
    """Return the extraction of a document by a method that is the engine. Its errors propagate."""
    found = with_derived(_run_within_memory(name, document, config), None, document, config)
    found = replace(found, url=document.url, source=name)
    if found.text or found.markdown:
        return found
    return replace(found, main_html="", fallback_reason=FallbackReason.NO_MAIN)


def fall_back(
    document: Document,
    config: Config,
    reason: FallbackReason,
    error: str | None = None,
) -> Extraction:
    """Run the configured fallback on a document and return its extraction. Never raises.

    If a built-in fallback runs out of memory, it is retried on the first part of the document. If a fallback raises,
    the extraction is that of ``empty``, and the exception is appended to ``error``.
    """
    return with_derived(_fall_back(document, config, reason, error), None, document, config)


def _fall_back(document: Document, config: Config, reason: FallbackReason, error: str | None) -> Extraction:
    name = _name(config.fallback)
    if name == "none":
        return nothing(document.url, reason, error)
    if name == "empty" or reason in NOT_A_PAGE:
        return nothing(document.url, reason, error, "empty")
    try:
        found = _run_within_memory(config.fallback, document, config)
    except Exception as problem:  # includes RecursionError and MemoryError: no page may stop the crawl
        _report(name, document.url, problem)
        error = "; ".join(filter(None, [error, f"fallback {name}: {type(problem).__name__}: {problem}"]))
        return nothing(document.url, reason, error, "empty")
    source = f"fallback:{name}"
    error = found.error or (error and without_controls(error))
    found = replace(found, url=document.url, source=source, fallback_reason=reason, error=error)
    return found if not is_method(name) else replace(found, labels=(), probabilities=())


def _name(fallback: str | Callable[..., Any]) -> str:
    if isinstance(fallback, str):
        return fallback
    return str(getattr(fallback, "__qualname__", type(fallback).__qualname__))


def _report(name: str, url: str, problem: Exception) -> None:
    """Log an exception, as a warning for the first failure of each fallback and at DEBUG after that."""
    level = logging.DEBUG if name in _reported else logging.WARNING
    _reported.add(name)
    logger.log(
        level,
        "The fallback %(name)s failed for %(url)s; such pages come out empty. Further failures are logged at DEBUG.",
        {"name": name, "url": url or "a page without URL"},
        exc_info=None if isinstance(problem, MemoryError) else problem,
    )


def _run_within_memory(way: str | Callable[..., Any], document: Document, config: Config) -> Extraction:
    """Run a method or a custom fallback. If a method runs out of memory, retry it on the first part of the document."""
    part = first_part(document) if is_method(way) else None
    if part is None:
        return _run(way, document, config)
    with contextlib.suppress(MemoryError):
        return _run(way, document, config)
    # Outside of the exception handler: the exception keeps the frames alive, and with them the tree in memory.
    return replace(_run(way, part, config), truncated=True)


def _run(way: str | Callable[..., Any], document: Document, config: Config) -> Extraction:
    size = len(document.html)
    text = text_within(document, config.limits.bytes)
    if is_method(way):
        found = method(str(way))(text, document.url, config, size)
    else:
        found = _custom(load(way) if isinstance(way, str) else way, text, document.url, config)
    return replace(found, truncated=found.truncated or size > config.limits.bytes)


def _custom(call: Callable[..., Any], text: str, url: str, config: Config) -> Extraction:
    """Run a custom fallback. The HTML that it returns is not changed."""
    answer: object = call(text, url)
    if isinstance(answer, Extraction):
        failed: list[str] = []
        given = answer.content
        content = None if given is None else attempt("content", lambda: sanitized(given), failed)
        known = attempt("metadata", lambda: _read_again(answer.metadata), failed)
        own: dict[str, Any] = {"url": url, "source": "", "fallback_reason": None, "extra": {}, "details": {}}
        found = from_plain(to_plain(replace(answer, content=None, metadata=None, **own))).without_controls()
        if content is None and found.main_html:
            html = found.main_html
            content = attempt("content", lambda: whole_page(html, url, config, len(html)).content, [])
        return naming(replace(found, content=content, metadata=known), failed)
    if answer is not None and not isinstance(answer, str):
        raise TypeError(f"expected HTML, an Extraction or None (got {type(answer).__name__})")
    if answer is None or not answer.strip():
        return nothing(url, None, None, "empty")
    return replace(whole_page(answer, url, config, len(answer)), main_html=answer).without_controls()


def _read_again(known: Metadata | None) -> Metadata | None:
    """Return metadata without control characters. Errors propagate, because a custom fallback can return anything."""
    return None if known is None else Metadata.from_dict(known.as_dict()).without_controls()


def metadata(document: Document, config: Config) -> Metadata:
    """Return the metadata of a document that has no page, because it exceeds a limit or cannot be parsed as a whole.

    Values that cannot be read are None. Errors propagate.
    """
    try:
        root, _ = limited_tree(text_within(document, config.limits.bytes))
    except PageError:
        return Metadata()
    return metadata_of(root, document.url)
