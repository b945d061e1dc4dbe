"""Crawls without main content: one warning, with the most frequent reason and what to do about it."""

from __future__ import annotations

import logging
from collections import Counter

from scrapy_dripper.extraction import Extraction, FallbackReason

logger = logging.getLogger(__name__)

EARLY = 20
"""Pages without an answer of the model after which a crawl that has had none is warned about, before its end."""
SHARE = 0.9
"""Share of a crawl's pages without an answer from which on it is warned about at its end."""
LONGEST = 300
"""Characters of an error that are shown."""

_SCRIPTS = (
    "they may be filled by JavaScript, or be walls against bots: look at one with 'scrapy dripper URL'; a browser can "
    "download such pages, see docs/guides/javascript.md"
)
_REPORT = "this is a bug, of an engine or of scrapy-dripper: please report it with a page"
ADVICE = {
    FallbackReason.EMPTY_BODY: "the site sends empty pages: look at what it answers to your USER_AGENT",
    FallbackReason.NOT_HTML: "the site sends other files than HTML; meta={'dripper': False} passes them by",
    FallbackReason.OVERSIZE: "raise the limit that the error names, or set DRIPPER_OVERSIZE = 'truncate'",
    FallbackReason.PARSE_ERROR: _REPORT,
    FallbackReason.TRUNCATED_PARSE: _REPORT,
    FallbackReason.NO_BLOCKS: _SCRIPTS,
    FallbackReason.NO_MAIN: _SCRIPTS,
    FallbackReason.JS_SHELL: "scripts fill these pages: let a browser download them, see docs/guides/javascript.md",
    FallbackReason.ENGINE_ERROR: "the engine does not work: 'scrapy-dripper doctor' tries it on a page",
    FallbackReason.ENGINE_LOST: "the engine was lost, such as by an error of the GPU: the log says when and why",
    FallbackReason.OVERFLOW: "numbers of the model are too large for half precision: export it in bf16 or fp32",
    FallbackReason.LOW_QUALITY: "lower DRIPPER_MIN_QUALITY, or leave it out",
    FallbackReason.OUTPUT_ERROR: _REPORT,
    FallbackReason.TIMEOUT: "raise DRIPPER_TIMEOUT, or lower DRIPPER_BATCH_SIZE or DRIPPER_PROCESSES on a busy machine",
    FallbackReason.WORKER_ERROR: "something ends the worker processes: look for lack of memory, and at "
    "DRIPPER_WORKER_MEMORY",
}
"""What to do about each reason."""


class Undecided:
    """Counts the pages of a crawl that the model did not decide about, or found nothing on."""

    def __init__(self) -> None:
        self._pages = 0
        self._reasons: Counter[FallbackReason] = Counter()
        self._first: dict[FallbackReason, Extraction] = {}
        self._said = False

    def add(self, extraction: Extraction) -> None:
        """Count a page; warn if it is one of many and none before it was any better."""
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
        """Warn at the end of a crawl, unless that has been done."""
        if self._pages and self._reasons.total() >= SHARE * self._pages:
            self._say()

    def _say(self) -> None:
        if self._said:
            return
        self._said = True
        reason, pages = self._reasons.most_common(1)[0]
        first = self._first[reason]
        error = f", {first.error[:LONGEST]}" if first.error else ""
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
