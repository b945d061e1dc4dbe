"""Fill items with extractions. Items can be of any type that itemadapter supports."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from itemadapter import ItemAdapter
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.dripper import Dripper
from scrapy_dripper.data import Extraction
from scrapy_dripper.items import PageItem

VALUES: dict[str, Callable[[Extraction], Any]] = {
    "html_field": lambda extraction: extraction.main_html,
    "markdown_field": lambda extraction: extraction.markdown,
    "text_field": lambda extraction: extraction.text,
    "title_field": lambda extraction: extraction.title,
    "content_field": lambda extraction: extraction.content,
    "chunks_field": lambda extraction: extraction.chunks,
    "links_field": lambda extraction: extraction.links,
    "metadata_field": lambda extraction: None if extraction.metadata is None else extraction.metadata.as_dict(),
    "meta_field": lambda extraction: extraction.meta(),
}
"""The value of the field that each option names."""
CONTENT = ("html_field", "markdown_field", "text_field", "content_field", "chunks_field", "links_field")
"""Options whose fields hold main content. In an item, they always hold that of the same document."""

OF_PAGE_ITEM = {"title_field": "title", "text_field": "text", "metadata_field": "metadata"}
"""The fields of a :class:`~scrapy_dripper.items.PageItem` for the options that name none by default."""

HEADED = ("csv", "parquet", "xlsx", "orc", "avro")
"""Formats whose exporters take the columns from the first item: Scrapy's own, and those of plugins."""


class Filler:
    """A component of a crawl that fills the fields of items.

    A field that already has a value keeps it. An item that already has main content in any form is not filled, so that
    it does not mix the content of two documents. A dict always has all fields, because feeds take their columns from
    the first item; those without a value are None.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Raise :exc:`~scrapy.exceptions.NotConfigured` if ``DRIPPER_ENABLED`` is False, and what
        :meth:`Dripper.from_crawler` raises.
        """
        self._dripper = Dripper.from_crawler(crawler)
        self._stats = self._dripper.stats
        if not self._dripper.config.enabled:
            raise NotConfigured("DRIPPER_ENABLED is False")
        self._warn_of_feeds(crawler.settings)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Any:
        """Return the component of this crawl."""
        return cls(crawler)

    def _warn_of_feeds(self, settings: BaseSettings) -> None:
        """Warn if a feed with columns does not name them."""
        names = [field for option in VALUES if (field := getattr(self._dripper.config, option))]
        if not names or settings["FEED_EXPORT_FIELDS"]:
            return
        for uri, feed in settings.getdict("FEEDS").items():
            if f"{feed.get('format')}".lower() in HEADED and not feed.get("fields"):
                self._stats.warn(
                    "feeds",
                    "The feed %s takes its columns from the first item. If that item lacks the fields of main content, "
                    "such as a dict of start(), the feed has none of them. To name the columns, set FEED_EXPORT_FIELDS "
                    "= %s, with all other fields of your items, or 'fields' of that feed in FEEDS",
                    uri,
                    ["url", *names],
                )

    def _open(self, item: Any, config: Config) -> list[str]:
        """Return the options whose fields the item has and that are empty. Never raises."""
        try:
            if not ItemAdapter.is_item(item):
                return []
            if not _is_wanted(type(item), config.items):
                if config.items:
                    name = type(item).__name__
                    message = "Items of class %s are passed on as they are: DRIPPER_ITEMS names others"
                    self._stats.warn(f"not named {name}", message, name, level=logging.INFO)
                return []
            adapter = ItemAdapter(item)
            if any(not _is_empty(adapter.get(field)) for option in CONTENT if (field := _name(item, option, config))):
                self._leave_empty(item, list(VALUES), config)
                return []
            return self._options(adapter, config)
        except Exception:
            self._stats.bug("reading an item")
            return []

    def _fill(self, item: Any, options: list[str], config: Config, extraction: Extraction | None) -> None:
        """Fill the fields of the options that :meth:`_open` returned. Warn about fields that cannot be set. Never
        raises."""
        if extraction is None:
            self._leave_empty(item, options, config)
            return
        for option in options:
            field = _name(item, option, config)
            assert field is not None
            try:
                value = VALUES[option](extraction)
            except Exception:
                self._stats.bug(f"making the value of {field}")
                continue
            if value is None:
                self._leave_empty(item, [option], config)
                continue
            try:
                ItemAdapter(item)[field] = value
            except Exception as error:  # KeyError, AttributeError, ValidationError: each item type has its own
                self._stats.field_error(type(item).__name__, field, f"{type(error).__name__}: {error}")

    def _leave_empty(self, item: Any, options: list[str], config: Config) -> None:
        """Give a dict the fields that it lacks, unless extraction is off for its response."""
        if config.enabled and isinstance(item, dict):
            for option in options:
                if field := getattr(config, option):
                    item.setdefault(field, None)

    def _options(self, adapter: ItemAdapter, config: Config) -> list[str]:
        item = adapter.item
        names = {option: name for option in VALUES if (name := _name(item, option, config)) is not None}
        if not isinstance(item, dict):
            there = set(adapter.field_names())
            lacks = [name for name in names.values() if name not in there]
            if names and len(lacks) == len(names):
                self._stats.without_fields(type(item).__name__, lacks)
                return []
            if lacks:
                self._stats.missing_fields(type(item).__name__, lacks)
            names = {option: name for option, name in names.items() if name in there}
        self._stats.matched()
        return [option for option, name in names.items() if _is_empty(adapter.get(name))]


def _name(item: Any, option: str, config: Config) -> str | None:
    """Return the name of the item's field for an option, or None if there is none."""
    name: str | None = getattr(config, option)
    return OF_PAGE_ITEM.get(option) if name is None and isinstance(item, PageItem) else name


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, dict, list)) and not value)


def _is_wanted(cls: type, names: tuple[str, ...] | None) -> bool:
    """Return True if items of a class are filled, because the class or one of its bases has one of the names."""
    if names is None:
        return True
    return any(one.__name__ in names or f"{one.__module__}.{one.__qualname__}" in names for one in cls.__mro__)
