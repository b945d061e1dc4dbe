"""The log of a crawl: items appear without their long values, and a crawl without main content gets one warning, with
the most frequent reason and advice."""

from __future__ import annotations

import logging
from collections import Counter
from reprlib import Repr
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy.logformatter import LogFormatter

from scrapy_dripper.data import Extraction, FallbackReason

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

logger = logging.getLogger(__name__)

EARLY = 20
"""Number of pages after which the warning comes early, if the model has decided none of them."""
UNDECIDED_SHARE = 0.9
"""Minimum share of undecided pages for the warning at the end of a crawl."""
LONGEST_ERROR = 300
"""Maximum length of an error in the warning, in characters."""

JAVASCRIPT = "https://github.com/scrapy-dripper/scrapy-dripper/blob/main/docs/guides/javascript.md"
"""The guide to pages that need a browser."""
_SCRIPTS = (
    "they may be filled by JavaScript, or be bot walls: look at one with 'scrapy dripper URL'; a browser can download "
    f"such pages: {JAVASCRIPT}"
)
_REPORT = "this is a bug in an engine or in scrapy-dripper: please report it with a page"
ADVICE = {
    FallbackReason.EMPTY_BODY: "the site sends empty pages: check how it responds to your USER_AGENT",
    FallbackReason.NOT_HTML: "the site sends files that are not HTML; meta={'dripper': False} skips them",
    FallbackReason.OVERSIZE: "raise the limit that the error names, or set DRIPPER_OVERSIZE = 'truncate'",
    FallbackReason.PARSE_ERROR: _REPORT,
    FallbackReason.TRUNCATED_PARSE: _REPORT,
    FallbackReason.NO_BLOCKS: _SCRIPTS,
    FallbackReason.MISSING_FACTS: "the model loses what these pages declare; correct a few of them and let the model "
    "learn from them (scrapy-dripper learn), or set DRIPPER_EMPTY to 'answer' to keep its text",
    FallbackReason.NO_MAIN: _SCRIPTS,
    FallbackReason.JS_SHELL: f"scripts fill these pages: let a browser download them: {JAVASCRIPT}",
    FallbackReason.ENGINE_ERROR: "the engine does not work: 'scrapy-dripper doctor' tests it on a page",
    FallbackReason.ENGINE_LOST: "the engine was lost, for example by a GPU error: the log says when and why",
    FallbackReason.OVERFLOW: "numbers of the model are too large for half precision: export it in bf16 or fp32",
    FallbackReason.OUTPUT_ERROR: _REPORT,
    FallbackReason.TIMEOUT: "raise DRIPPER_TIMEOUT, or lower DRIPPER_BATCH_SIZE or DRIPPER_PROCESSES on a busy machine",
    FallbackReason.WORKER_ERROR: "something kills the worker processes: check the free memory and "
    "DRIPPER_WORKER_MEMORY",
}
"""What to do about each reason."""


class NoContent:
    """Counts the pages of a crawl that the model did not decide, or on which it found nothing."""

    def __init__(self) -> None:
        self._pages = 0
        self._reasons: Counter[FallbackReason] = Counter()
        self._first: dict[FallbackReason, Extraction] = {}
        self._said = False

    def add(self, extraction: Extraction) -> None:
        """Count a page. Warn early if all of the first :data:`EARLY` pages are undecided."""
        self._pages += 1
        reason = extraction.fallback_reason
        if reason is None:
            return
        self._reasons[reason] += 1
        # Its texts would stay in memory for the whole crawl.
        self._first.setdefault(reason, Extraction(extraction.url, None, None, None, None, "", error=extraction.error))
        if self._pages == EARLY == self._reasons.total():
            self._say()

    def close(self) -> None:
        """Warn at the end of a crawl if nearly all its pages are undecided, unless it has been done."""
        if self._pages and self._reasons.total() >= UNDECIDED_SHARE * self._pages:
            self._say()

    def _say(self) -> None:
        if self._said:
            return
        self._said = True
        reason, pages = self._reasons.most_common(1)[0]
        first = self._first[reason]
        error = f", {first.error[:LONGEST_ERROR]}" if first.error else ""
        logger.warning(
            "The model gave no main content for %(none)d of the %(all)d pages so far, most often (%(pages)d) because "
            "of %(reason)s (the first: %(url)s%(error)s): %(advice)s",
            {
                "none": self._reasons.total(),
                "all": self._pages,
                "pages": pages,
                "reason": reason,
                "url": first.url or "a page without URL",
                "error": error,
                "advice": ADVICE[reason],
            },
        )
