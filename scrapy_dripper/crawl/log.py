"""Keep the log of a crawl short: an error at its start takes one line, and items appear without their long values."""

from __future__ import annotations

import logging
from reprlib import Repr
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy.logformatter import LogFormatter

from scrapy_dripper.config import ConfigError, ModelError

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure

MOST = 200
"""Maximum length of an item's value in the log, in characters."""
_LOGGERS = ("asyncio", "twisted")
"""Loggers of the exception that stopped a crawl of CrawlerProcess or AsyncCrawlerProcess at its start."""


class OneSentence(logging.Filter):
    """Replaces the traceback of an error that the user can fix by its message."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record of such an error. Keep all records."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, (ConfigError, ModelError)):
            record.msg, record.args = "The crawl cannot start: %s: %s", (type(error).__name__, error)
            record.exc_info = record.exc_text = None
        return True


_one_sentence = OneSentence()


def say_errors_in_one_sentence() -> None:
    """Make Scrapy's processes log an invalid setting, or a model that cannot be loaded, without a traceback.

    For crawls of CrawlerProcess, Twisted also writes to standard error without logging. This does not change that.
    """
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_one_sentence)  # has no effect the second time


class DripperLogFormatter(LogFormatter):
    """Scrapy's messages, with long values of items cut. Otherwise, a DEBUG log would hold all pages of the crawl."""

    def scraped(self, item: Any, response: Response | Failure | None, spider: Spider) -> LogFormatterResult:
        """Return the message for an item that has been scraped."""
        return _cut(super().scraped(item, response, spider))

    def dropped(
        self, item: Any, exception: BaseException, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult:
        """Return the message for an item that a pipeline has dropped."""
        return _cut(super().dropped(item, exception, response, spider))

    def item_error(
        self, item: Any, exception: BaseException, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult:
        """Return the message for an item on which a pipeline has failed."""
        return _cut(super().item_error(item, exception, response, spider))


def _cut(message: LogFormatterResult) -> LogFormatterResult:
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


def _repr() -> Repr:
    short = Repr()
    short.maxstring = short.maxother = short.maxlong = MOST
    short.maxdict, short.maxlist, short.maxlevel = 20, 4, 3
    return short


_short = _repr()
