"""The Scrapy add-on, ``ADDONS = {"scrapy_dripper.Addon": 500}``, and the items in the log of its crawls."""

from __future__ import annotations

from importlib.util import find_spec
from reprlib import Repr
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy.logformatter import LogFormatter
from scrapy.settings import BaseSettings, get_settings_priority

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.crawl.batcher import most_waiting
from scrapy_dripper.downloadermiddlewares import DripperBackpressureMiddleware, DripperShellMiddleware, has_browser
from scrapy_dripper.spidermiddlewares import DripperSpiderMiddleware

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure

PAGE_BYTES = 500_000
"""Size of a large page in bytes. The limit on waiting responses assumes this size for every page."""
ITEMS = 32
"""Minimum of the value that the add-on sets for ``CONCURRENT_ITEMS``."""
PROVIDER = ("scrapy_dripper.providers.DripperProvider", 1101)
"""The provider for scrapy-poet and its priority. Importing it takes as long as a quarter of the start of a crawl."""
LONGEST_VALUE = 200
"""Maximum length of an item's value in the log, in characters."""


class Addon:
    """Install the spider middleware, backpressure, and the components for archives, scrapy-poet and Playwright.

    ``DRIPPER_WARC`` and ``DRIPPER_REPLAY`` also work with ``DRIPPER_ENABLED = False``.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the components that the user has not placed or switched off, and adapt Scrapy's settings.

        Responses wait for their batch, so Scrapy's limit on waiting responses is raised, and Scrapy creates fewer tasks
        for each response. The log shortens long values of items. Raise :exc:`~scrapy_dripper.config.ConfigError` for an
        invalid setting.
        """
        config = Config.from_settings(settings)
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", DripperSpiderMiddleware, 25)
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", DripperBackpressureMiddleware, 20)
        if config.retry_shells or has_browser(settings):
            # After retries and redirects, but before the backpressure, which is only for pages that a callback gets.
            settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", DripperShellMiddleware, 30)
        _provide(settings)
        _archive(settings, config)
        if not config.enabled:
            return
        _suggest(settings, "LOG_FORMATTER", DripperLogFormatter)
        # Pages that wait for a batch count against this limit. With Scrapy's 5 MB, ten large pages would stop downloads
        # before the batch is full.
        size = most_waiting(config) * PAGE_BYTES
        if size > settings.getint("SCRAPER_SLOT_MAX_ACTIVE_SIZE"):
            _suggest(settings, "SCRAPER_SLOT_MAX_ACTIVE_SIZE", size)
        # Scrapy makes this number of tasks for every response at once, even if it yields a single item.
        items = max(ITEMS, most_waiting(config))
        if items < settings.getint("CONCURRENT_ITEMS"):
            _suggest(settings, "CONCURRENT_ITEMS", items)


def _suggest(settings: BaseSettings, name: str, value: object) -> None:
    """Set a setting, unless the user or another add-on has set it."""
    if (settings.getpriority(name) or 0) < get_settings_priority("addon"):
        settings.set(name, value, "addon")


def _archive(settings: BaseSettings, config: Config) -> None:
    """Install the components that write responses to an archive, or answer requests from one."""
    if config.warc is None and config.replay is None:
        return
    try:
        from scrapy_dripper.corpus.archive import ReplayMiddleware, WarcMiddleware, archives
    except ImportError as error:
        raise ConfigError(
            f"DRIPPER_WARC and DRIPPER_REPLAY need FastWARC ({error}): pip install 'scrapy-dripper[corpus]'"
        ) from None
    if config.warc is not None:  # closer to the downloader than Scrapy's cache, to get responses as they arrived
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", WarcMiddleware, 950)
    if config.replay is not None:
        archives(settings)
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", ReplayMiddleware, 940)


def _provide(settings: BaseSettings) -> None:
    """Register the provider if scrapy-poet is installed. Crawls that do not use scrapy-poet do not import it."""
    if find_spec("scrapy_poet") is None:
        return
    name = "SCRAPY_POET_PROVIDERS"
    if settings.getdict(name):  # The user may have placed the provider there, or switched it off.
        from scrapy_dripper.providers import DripperProvider

        settings.setdefault_in_component_priority_dict(name, DripperProvider, PROVIDER[1])
    else:
        settings.set(name, dict([PROVIDER]), settings.getpriority(name) or 0)


class DripperLogFormatter(LogFormatter):
    """Scrapy's messages, with long values of items cut. Otherwise, a DEBUG log would hold all pages of the crawl."""

    def scraped(self, item: Any, response: Response | Failure | None, spider: Spider) -> LogFormatterResult:
        """Return the message for an item that has been scraped."""
        return _shortened(super().scraped(item, response, spider))

    def dropped(
        self, item: Any, exception: BaseException, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult:
        """Return the message for an item that a pipeline has dropped."""
        return _shortened(super().dropped(item, exception, response, spider))

    def item_error(
        self, item: Any, exception: BaseException, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult:
        """Return the message for an item on which a pipeline has failed."""
        return _shortened(super().item_error(item, exception, response, spider))


def _shortened(message: LogFormatterResult) -> LogFormatterResult:
    args = message["args"]
    if isinstance(args, dict) and ItemAdapter.is_item(args.get("item")):
        args["item"] = _Shown(args["item"])
    return message


class _Shown:
    """An item as the log shows it. It is only formatted if the record is written."""

    def __init__(self, item: Any) -> None:
        self._item = item

    def __str__(self) -> str:
        try:
            values = ItemAdapter(self._item)
            inside = ", ".join(f"{name!r}: {_short.repr(values[name])}" for name in values)
        except Exception:  # a custom item class can raise, and logging must not lose the item
            return object.__repr__(self._item)
        name = type(self._item).__name__
        return f"{{{inside}}}" if name == "dict" else f"{name}({{{inside}}})"


_short = Repr()
_short.maxstring = _short.maxother = _short.maxlong = LONGEST_VALUE
_short.maxdict, _short.maxlist, _short.maxlevel = 20, 4, 3
