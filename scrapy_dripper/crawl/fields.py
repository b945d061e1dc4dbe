"""Fill items with extractions. Items can be of any type that itemadapter supports."""

from __future__ import annotations

import logging
from typing import Any

from itemadapter import ItemAdapter
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings

from scrapy_dripper.config import OUTPUT_FIELDS, Config
from scrapy_dripper.crawl.dripper import Dripper
from scrapy_dripper.data import Extraction
from scrapy_dripper.items import PageItem

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
        names = [field for name in OUTPUT_FIELDS if (field := self._dripper.config.item_field(name))]
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
        """Return the fields of the output that the item has and that are empty. Never raises."""
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
            content = [name for name, output in OUTPUT_FIELDS.items() if output.is_content]
            if any(not _is_empty(adapter.get(field)) for name in content if (field := _field(item, name, config))):
                self._leave_empty(item, list(OUTPUT_FIELDS), config)
                return []
            return self._empty(adapter, config)
        except Exception:
            self._stats.bug("reading an item")
            return []

    def _fill(self, item: Any, names: list[str], config: Config, extraction: Extraction | None) -> None:
        """Fill the fields that :meth:`_open` returned. Warn about those that cannot be set. Never raises."""
        if extraction is None:
            self._leave_empty(item, names, config)
            return
        for name in names:
            field = _field(item, name, config)
            assert field is not None
            try:
                value = OUTPUT_FIELDS[name].value(extraction)
            except Exception:
                self._stats.bug(f"making the value of {field}")
                continue
            if value is None:
                self._leave_empty(item, [name], config)
                continue
            try:
                ItemAdapter(item)[field] = value
            except Exception as error:  # KeyError, AttributeError, ValidationError: each item type has its own
                self._stats.field_error(type(item).__name__, field, f"{type(error).__name__}: {error}")

    def _leave_empty(self, item: Any, names: list[str], config: Config) -> None:
        """Give a dict the fields that it lacks, unless extraction is off for its response."""
        if config.enabled and isinstance(item, dict):
            for name in names:
                if field := config.item_field(name):
                    item.setdefault(field, None)

    def _empty(self, adapter: ItemAdapter, config: Config) -> list[str]:
        item = adapter.item
        fields = {name: field for name in OUTPUT_FIELDS if (field := _field(item, name, config)) is not None}
        if not isinstance(item, dict):
            there = set(adapter.field_names())
            lacks = [field for field in fields.values() if field not in there]
            if fields and len(lacks) == len(fields):
                self._stats.without_fields(type(item).__name__, lacks)
                return []
            if lacks:
                self._stats.missing_fields(type(item).__name__, lacks)
            fields = {name: field for name, field in fields.items() if field in there}
        self._stats.matched()
        return [name for name, field in fields.items() if _is_empty(adapter.get(field))]


def _field(item: Any, name: str, config: Config) -> str | None:
    """Return the item's field for a field of the output, or None if there is none."""
    field = config.item_field(name)
    return OUTPUT_FIELDS[name].in_page_item if field is None and isinstance(item, PageItem) else field


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, dict, list)) and not value)


def _is_wanted(cls: type, names: tuple[str, ...] | None) -> bool:
    """Return True if items of a class are filled, because the class or one of its bases has one of the names."""
    if names is None:
        return True
    return any(one.__name__ in names or f"{one.__module__}.{one.__qualname__}" in names for one in cls.__mro__)
