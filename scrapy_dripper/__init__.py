"""Main content of web pages, as clean HTML and Markdown, on the items of a Scrapy crawl."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_dripper.addon import Addon
    from scrapy_dripper.crawl.dripper import Dripper
    from scrapy_dripper.extraction import Document, Extraction, FallbackReason
    from scrapy_dripper.extractor import Extractor

__all__ = ["Addon", "Document", "Dripper", "Extraction", "Extractor", "FallbackReason"]

_MODULES = {
    "Addon": "addon",
    "Document": "extraction",
    "Dripper": "crawl.dripper",
    "Extraction": "extraction",
    "Extractor": "extractor",
    "FallbackReason": "extraction",
}


def __getattr__(name: str) -> object:
    # Imported when asked for (PEP 562): a child process that parses pages needs no Scrapy.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
