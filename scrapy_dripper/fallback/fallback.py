"""The extractors that take over where the model cannot decide."""

from __future__ import annotations

import contextlib
import logging
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from scrapy_dripper.config import FALLBACKS, Config, ConfigError
from scrapy_dripper.extraction import Document, Extraction, FallbackReason
from scrapy_dripper.output import write, write_html
from scrapy_dripper.output.bounds import most_chars
from scrapy_dripper.output.content_json import clean
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.decode import decode
from scrapy_dripper.page.errors import PageError
from scrapy_dripper.page.limits import cut_off
from scrapy_dripper.page.parse import parse

if TYPE_CHECKING:
    from lxml.html import HtmlElement

    from scrapy_dripper.output.items import Items

logger = logging.getLogger(__name__)

Fallback: TypeAlias = "Callable[[str, str], str | Extraction | None]"
"""What ``DRIPPER_FALLBACK`` can name: takes the HTML of a document and its URL.

It returns the main content as HTML, of which Markdown and text are made, or a whole :class:`Extraction`, or None where
it finds nothing.
"""

MAX_ELEMENTS = 25_000
"""Elements of a page that a fallback sees. Trafilatura takes 5 s for so many short paragraphs, and 2 minutes for five
times as many; of 1,310 real pages the largest has 16,000."""

FIRST_PART = 200_000
"""Characters, or bytes, that are left of a document that no parser can take as a whole: few enough for any nesting."""

OWN = ("trafilatura", "html")
"""The fallbacks of :data:`~scrapy_dripper.config.FALLBACKS` that parse a document."""

NOTHING_MEANT = ("empty", "none")
"""The fallbacks that are for finding nothing."""

NOT_A_PAGE = (FallbackReason.EMPTY_BODY, FallbackReason.NOT_HTML)
"""Reasons for which there is nothing that a fallback could look at."""
SUSPECT = (FallbackReason.TIMEOUT, FallbackReason.WORKER_ERROR)
"""Reasons for which a fallback may be in for the same trouble, whatever the document looks like."""
_reported: set[str] = set()


@dataclass(frozen=True, slots=True)
class _Found:
    """What a fallback made of a document; empty strings where it found nothing."""

    main_html: str = ""
    markdown: str = ""
    text: str = ""
    title: str | None = None
    truncated: bool = False
    content: Items = ()


def fall_back(
    document: Document,
    config: Config,
    reason: FallbackReason,
    error: str | None = None,
) -> Extraction:
    """Return what the fallback of the configuration makes of a document, for a given reason. Never raises.

    A fallback of ours that runs out of memory is tried once more, on the first part of the document. One that raises
    counts as ``empty``; what it raised is added to ``error``.
    """
    name = _name(config.fallback)
    if name == "none":
        return Extraction(document.url, None, None, None, None, "fallback:none", reason, error)
    found: _Found | Extraction = _Found()
    if name == "empty" or reason in NOT_A_PAGE:
        name = "empty"
    else:
        try:
            found = _run_within_memory(document, config)
        except Exception as problem:  # RecursionError and MemoryError included: no page may stop the crawl
            _report(name, document.url)
            error = "; ".join(filter(None, [error, f"fallback {name}: {type(problem).__name__}: {problem}"]))
            name = "empty"
    source = f"fallback:{name}"
    if isinstance(found, Extraction):
        return replace(found, url=document.url, source=source, fallback_reason=reason, error=found.error or error)
    return Extraction(
        url=document.url,
        title=found.title,
        main_html=found.main_html,
        markdown=found.markdown,
        text=found.text,
        content=found.content,
        source=source,
        fallback_reason=reason,
        error=error,
        truncated=found.truncated,
    )


def first_part(document: Document) -> Document | None:
    """Return the first :data:`FIRST_PART` characters or bytes of a document as one; None if it has no more."""
    if len(document.html) <= FIRST_PART:
        return None
    return replace(document, html=document.html[:FIRST_PART])


def check_fallback(config: Config) -> None:
    """Raise :exc:`ConfigError` if the fallback of the configuration is a dotted path that leads to no callable."""
    if isinstance(config.fallback, str) and config.fallback not in FALLBACKS:
        _load(config.fallback)


def dotted_path(fallback: str | Callable[..., Any]) -> str:
    """Return the name under which another process finds a fallback.

    Raise :exc:`ConfigError` for a callable that has none.
    """
    if isinstance(fallback, str):
        return fallback
    module, name = getattr(fallback, "__module__", None), getattr(fallback, "__qualname__", None)
    path = f"{module}.{name}"
    if module != "__main__":
        try:
            if pkgutil.resolve_name(path) is fallback:
                return path
        except Exception:
            logger.debug("%(path)s is not the fallback", {"path": path}, exc_info=True)
    raise ConfigError(
        f"DRIPPER_FALLBACK is {fallback!r}, which worker processes cannot import: put the function into a module and "
        "name it as 'package.module.function', or set DRIPPER_PROCESSES = 0"
    )


@lru_cache(maxsize=32)
def _load(path: str) -> Fallback:
    try:
        found = pkgutil.resolve_name(path)
    except Exception as error:  # whatever the import of the user's module raises
        raise ConfigError(
            f"DRIPPER_FALLBACK is {path!r}, which cannot be imported ({type(error).__name__}: {error}); "
            f"name a callable as package.module.function, or one of {', '.join(map(repr, FALLBACKS))}"
        ) from error
    if not callable(found) or isinstance(found, type):
        raise ConfigError(
            f"DRIPPER_FALLBACK must name a function that takes (html, url) (got {path!r}, a {type(found).__name__})"
        )
    return cast("Fallback", found)


def _name(fallback: str | Callable[..., Any]) -> str:
    if isinstance(fallback, str):
        return fallback
    return str(getattr(fallback, "__qualname__", type(fallback).__qualname__))


def _report(name: str, url: str) -> None:
    """Log the exception that is being handled: in full for the first of each fallback, for debugging after that."""
    level = logging.DEBUG if name in _reported else logging.WARNING
    _reported.add(name)
    logger.log(
        level,
        "The fallback %(name)s failed for %(url)s; such pages come out empty. Further failures are logged at DEBUG.",
        {"name": name, "url": url or "a page without URL"},
        exc_info=True,
    )


def _run_within_memory(document: Document, config: Config) -> _Found | Extraction:
    """Run the fallback; one of ours again on the first part of a document that takes more memory than there is."""
    part = first_part(document) if config.fallback in OWN else None
    if part is None:
        return _run(document, config)
    with contextlib.suppress(MemoryError):
        return _run(document, config)
    # Not while the exception is handled: it holds the frames, and so the tree, that took the memory.
    return replace(_run(part, config), truncated=True)


def _run(document: Document, config: Config) -> _Found | Extraction:
    html = document.html
    over = len(html) > config.max_bytes
    if over:
        html = html[: config.max_bytes]
    text = html if isinstance(html, str) else decode(html, document.charset)
    if config.fallback == "trafilatura":
        found = _trafilatura(text, document.url, config, len(html))
    elif config.fallback == "html":
        found = _whole_page(text, document.url, config, len(html))
    else:
        call = _load(config.fallback) if isinstance(config.fallback, str) else cast("Fallback", config.fallback)
        answer = call(text, document.url)
        if isinstance(answer, Extraction):
            content = answer.content
            if content is not None:
                content = clean(content)
            elif answer.main_html and config.content_field is not None:
                content = write_html(answer.main_html, document.url, config, len(answer.main_html)).content
            return replace(answer, truncated=answer.truncated or over, content=content)
        found = _from_html(answer, document.url, config)
    return replace(found, truncated=True) if over else found


def _trafilatura(text: str, url: str, config: Config, size: int) -> _Found:
    from scrapy_dripper.fallback import trafilatura_output  # 0.1 s that most crawls can save

    root, truncated = limited_tree(text)
    title = _title(root)
    most = most_chars(size, config.max_output)
    # Trafilatura puts the URL before that of each image, whatever that comes to.
    short = len(url) * sum(1 for _ in root.iter("img", "a")) <= most // 2
    main_html, plain = trafilatura_output.extract(root, url if short else "", config.favor, config.comments)
    trafilatura_output.limit_caches(len(text))
    written = write_html(main_html, url, config, size)
    if config.content_types is not None or written.truncated or len(plain) > most:
        plain = written.text
    return _Found(written.main_html, written.markdown, plain, title, truncated or written.truncated, written.content)


def _whole_page(text: str, url: str, config: Config, size: int) -> _Found:
    """Return the page with every block taken for main: no scripts, no handlers, nothing hidden from a reader."""
    root, truncated = limited_tree(text)
    page = cut(root, url)
    written = write(page, np.ones(len(page.blocks), dtype=np.bool_), replace(config, oversize="truncate"), size)
    return _Found(
        written.main_html,
        written.markdown,
        written.text,
        page.title,
        truncated or written.truncated,
        written.content,
    )


def _from_html(answer: object, url: str, config: Config) -> _Found:
    """Return what a callable's HTML amounts to; the HTML itself stays as it is."""
    if answer is not None and not isinstance(answer, str):
        raise TypeError(f"expected HTML, an Extraction or None (got {type(answer).__name__})")
    if answer is None or not answer.strip():
        return _Found()
    found = _whole_page(answer, url, config, len(answer))
    return replace(found, main_html=answer)


def limited_tree(text: str) -> tuple[HtmlElement, bool]:
    """Return the tree of a document, and True if that is of its first part only.

    Raise :exc:`PageError` where there is none.
    """
    truncated = False
    try:
        root = parse(text)
    except PageError as error:
        if error.reason is not FallbackReason.TRUNCATED_PARSE:
            raise
        root, truncated = parse(text[:FIRST_PART]), True
    return root, cut_off(root, MAX_ELEMENTS) or truncated


def _title(root: HtmlElement) -> str | None:
    title = root.find(".//title")
    return None if title is None else " ".join("".join(title.itertext()).split()) or None
