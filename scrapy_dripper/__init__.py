"""Main content of web pages, as clean HTML and Markdown, on the items of a Scrapy crawl."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_dripper.addon import Addon
    from scrapy_dripper.config import Config, ConfigError
    from scrapy_dripper.crawl import Dripper
    from scrapy_dripper.crawl.fields import PageItem
    from scrapy_dripper.data import Document, Extraction, FallbackReason
    from scrapy_dripper.derived import markdown
    from scrapy_dripper.engines.base import Engine, EngineError, Labels, Limits, ModelError
    from scrapy_dripper.extractor import Extractor, extract, fetch
    from scrapy_dripper.page.page import Page

__all__ = [
    "Addon",
    "Config",
    "ConfigError",
    "Document",
    "Dripper",
    "Engine",
    "EngineError",
    "Extraction",
    "Extractor",
    "FallbackReason",
    "Labels",
    "Limits",
    "ModelError",
    "Page",
    "PageItem",
    "extract",
    "fetch",
    "markdown",
]

_MODULES = {
    "Addon": "addon",
    **dict.fromkeys(("Config", "ConfigError"), "config"),
    "Dripper": "crawl",
    **dict.fromkeys(("Engine", "EngineError", "Labels", "Limits", "ModelError"), "engines.base"),
    **dict.fromkeys(("Document", "Extraction", "FallbackReason"), "data"),
    **dict.fromkeys(("Extractor", "extract", "fetch"), "extractor"),
    "Page": "page.page",
    "PageItem": "crawl.fields",
    "markdown": "derived",
}


def __getattr__(name: str) -> object:
    # Imported on first access (PEP 562): a worker process that parses pages does not need Scrapy.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
