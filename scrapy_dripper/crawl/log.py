"""The items of a crawl in its log, without their long values."""

from __future__ import annotations

from reprlib import Repr
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy.logformatter import LogFormatter

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure

LONGEST_VALUE = 200
"""Maximum length of an item's value in the log, in characters."""


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
