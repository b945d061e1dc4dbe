"""One page in one line: an extractor that all callers of a process share."""

from __future__ import annotations

import os
import threading

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.extractor import Extractor

_lock = threading.RLock()
_extractor: Extractor | None = None


def extract(html: str | bytes, url: str = "") -> Extraction:
    """Return the main content of one page, with its metadata and its content list. The URL makes links absolute, and
    helps with the rest.

    The first call loads the model. All threads share it, and take turns. A forked process loads its own at its first
    call. No page makes this function raise; anything but text or bytes is a TypeError. For other options, or for many
    pages at once, which is faster, use :class:`~scrapy_dripper.extractor.Extractor`.
    """
    global _extractor
    if not isinstance(html, (str, bytes)):
        raise TypeError(f"extract takes the HTML of one page, as text or bytes (got {type(html).__name__})")
    with _lock:
        if _extractor is None:
            _extractor = Extractor(Config(metadata_field="metadata", content_field="content"))
        return _extractor.extract([Document(html, url)])[0]


def _in_a_forked_process() -> None:
    """Forget the extractor, whose worker process belongs to the parent."""
    global _lock, _extractor
    _lock, _extractor = threading.RLock(), None


def _unlock() -> None:
    _lock.release()


def _wait() -> None:
    """Let a fork wait for the page that another thread extracts, which would otherwise be copied half done."""
    _lock.acquire()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait, after_in_parent=_unlock, after_in_child=_in_a_forked_process)
