"""Warn once about a crawl without main content, with the most frequent reason and advice."""

from __future__ import annotations

import logging
from collections import Counter

from scrapy_dripper.data import Extraction, FallbackReason

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
    FallbackReason.NO_MAIN: _SCRIPTS,
    FallbackReason.JS_SHELL: f"scripts fill these pages: let a browser download them: {JAVASCRIPT}",
    FallbackReason.ENGINE_ERROR: "the engine does not work: 'scrapy-dripper doctor' tests it on a page",
    FallbackReason.ENGINE_LOST: "the engine was lost, for example by a GPU error: the log says when and why",
    FallbackReason.OVERFLOW: "numbers of the model are too large for half precision: export it in bf16 or fp32",
    FallbackReason.LOW_QUALITY: "lower DRIPPER_MIN_QUALITY, or leave it out",
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
