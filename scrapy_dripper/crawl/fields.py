"""Fill items with extractions. Items can be of any type that itemadapter supports."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from itemadapter import ItemAdapter
from scrapy import Field, Item
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings

from scrapy_dripper.config import OUTPUT_FIELDS, Config, ConfigError
from scrapy_dripper.crawl import Dripper
from scrapy_dripper.data import Extraction

HEADED = ("csv", "xlsx", "orc", "avro")
"""Formats whose exporters take the columns from the first item: Scrapy's own, and those of plugins."""
_DEFAULT = Config()


class PageItem(Item):
    """A page with its main content: ``yield PageItem(url=response.url)``.

    The add-on fills all other fields, without any setting, and those of them that another class has
    (``DRIPPER_FILL_BY_NAME``). Those for Main-HTML and Markdown have the names of the settings, so None leaves them
    out.
    """

    url = Field()
    title = Field()
    markdown = Field()
    main_html = Field()
    text = Field()
    metadata = Field()


class Filler:
    """A component of a crawl that fills the fields of items.

    A field that already has a value keeps it. An item that already has main content in a field that a setting names is
    not filled, so that it does not mix the content of two documents. A dict always has all fields of the settings,
    because feeds take their columns from the first item; those without a value are None. An item of a class also gets
    those that it has by the name of :class:`~scrapy_dripper.PageItem` (``DRIPPER_FILL_BY_NAME``).
    """

    def __init__(self, crawler: Crawler) -> None:
        """Raise :exc:`~scrapy.exceptions.NotConfigured` if ``DRIPPER_ENABLED`` is False, and what
        :meth:`Dripper.from_crawler` raises.
        """
        self._dripper = Dripper.from_crawler(crawler)
        self._stats = self._dripper.stats
        if not self._dripper.config.enabled:
            raise NotConfigured("DRIPPER_ENABLED is False")
        _check_parquet(crawler.settings)
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
            if any(not _is_empty(adapter.get(field)) for name in content if (field := config.item_field(name))):
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
        fields = _fields(item, config)
        by_name = _by_name(item, config)
        self._stats.filled(type(item).__name__, [*map(fields.__getitem__, names)], [*by_name.values()])
        for name in names:
            field = fields[name]
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
        fields = _fields(item, config)
        if not isinstance(item, dict):
            cls, there = type(item).__name__, set(adapter.field_names())
            lacks = {name: field for name, field in fields.items() if field not in there}
            if fields and len(lacks) == len(fields):
                self._stats.without_fields(cls, [*lacks.values()], [*_by_name(item, config, has=False).values()])
                return []
            # A class without a field of the default settings leaves it out on purpose.
            if asked := [field for name, field in lacks.items() if field != _DEFAULT.item_field(name)]:
                self._stats.missing_fields(cls, asked)
            fields = {name: field for name, field in fields.items() if name not in lacks}
        self._stats.matched()
        return [name for name, field in fields.items() if _is_empty(adapter.get(field))]


def _fields(item: Any, config: Config) -> dict[str, str]:
    """Return the fields of an item by the names of the output: those of the settings, whether it has them or not, and
    those that its class has by name.
    """
    named = {name: field for name in OUTPUT_FIELDS if (field := config.item_field(name)) is not None}
    return named | _by_name(item, config)


def _by_name(item: Any, config: Config, *, has: bool = True) -> dict[str, str]:
    """Return the fields that an item gets although no setting names them, because its class has those of ``PageItem``;
    without ``has``, those that it would get.
    """
    if isinstance(item, dict) or not config.fill_by_name:
        return {}
    there = set(ItemAdapter(item).field_names())
    named = {config.item_field(name) for name in OUTPUT_FIELDS}
    wanted = {name: one.in_page_item for name, one in OUTPUT_FIELDS.items() if config.item_field(name) is None}
    return {name: one for name, one in wanted.items() if one and one not in named and (one in there or not has)}


def _check_parquet(settings: BaseSettings) -> None:
    """Raise :exc:`ConfigError` if a feed in Parquet would be added to a file, which would lose all of its items."""
    for uri, feed in settings.getdict("FEEDS").items():
        path = Path(f"{uri}".removeprefix("file://"))
        appends = f"{feed.get('format')}" == "parquet" and not feed.get("overwrite")
        if appends and path.is_file() and path.stat().st_size:
            raise ConfigError(
                f"The feed {path} exists, and no rows can be added to a Parquet file: set 'overwrite': True for it in "
                "FEEDS, or use -O"
            )


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, dict, list)) and not value)


def _is_wanted(cls: type, names: tuple[str, ...] | None) -> bool:
    """Return True if items of a class are filled, because the class or one of its bases has one of the names."""
    if names is None:
        return True
    return any(one.__name__ in names or f"{one.__module__}.{one.__qualname__}" in names for one in cls.__mro__)
