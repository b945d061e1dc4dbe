"""The stats of a crawl, and warnings that are logged once per kind of problem."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from os.path import abspath
from shlex import quote
from typing import Any
from weakref import ref

from scrapy import Spider
from scrapy.crawler import Crawler

from scrapy_dripper.crawl.report import InspectCommand, Report
from scrapy_dripper.data import SUSPECT, Document, Extraction, FallbackReason

logger = logging.getLogger(__name__)

JAVASCRIPT = "https://github.com/scrapy-dripper/scrapy-dripper/blob/main/docs/guides/javascript.md"
"""The guide to pages that need a browser."""
RENDER = (
    f"let a browser download such pages, for example with scrapy-playwright: {JAVASCRIPT}. The stat "
    "dripper/fallback/js_shell counts them"
)
STILL_EMPTY = (
    "%s is still empty after the browser: wait for an element that its script writes, with playwright_page_methods: "
    f"{JAVASCRIPT}. The stat dripper/retried_shells/empty counts such pages"
)
LOST = (
    "The engine is lost: %s. Pages fall back until it works again; it is tried every 30 seconds. The stat "
    "dripper/fallback/engine_lost counts them"
)
STOPPED = "A page stopped a worker process and fell back: %s (%s). The stat dripper/fallback/%s counts further ones"
PREFIX = "dripper/"
MOST_MISTAKES = 10
"""Mistakes in ``meta["dripper"]`` to warn about, because each request can have a different one."""
MOST_FIELDS = 40
"""Fields that get a stat of their own if they cannot be filled. Each request can name another one."""
EARLY = 20
"""Number of items for an early warning that none can be filled, and of pages for one that the model decides none."""
OTHER = "other"

STATS = {
    "pages": "pages extracted by the model or a fallback; each response counts once",
    "pages/{source}": "pages by source: `tagger`, `template`, `fallback:trafilatura`, ...",
    "fallback/{reason}": "pages without main content from the model, by reason",
    "page_type/{name}": "pages by type: `article`, `forum`, ...",
    "quality/pages": "pages that have a quality",
    "quality/mean": "mean quality of those pages; to combine several crawls, weight it by `dripper/quality/pages`",
    "skipped/{reason}": "responses that were not extracted although an item or a caller asked for it",
    "truncated": "oversize pages of which only the first part was used",
    "rules/pages": "pages on which rules of `DRIPPER_RULES` applied to at least one block",
    "rules/missed": "pages for which there are rules but none applied; the site may have changed",
    "rules/{kind}": "blocks that rules applied to, by kind of rule: `whole`, `keep`, `drop`",
    "overruled/{step}": "pages on which a step after the model (`duplicates`, `boilerplate`, `hidden`, ...) "
    "changed nothing, because it would have removed text of which the model was sure",
    "missing/{kind}": "pages that declare and show facts (`ingredient`, `step`, `question`, `answer`, `body`) "
    "whose text has lost more than half of them",
    "failed/{form}": "pages without a form that was asked for in addition (`content`, `cards`, `links`, `chunks`, "
    "`metadata`, `front_matter`, `fingerprints`), without marks between `posts`, or whose `facts` are not checked, "
    "because that failed or would exceed "
    '`DRIPPER_LIMITS["output"]`; they keep everything else, and the log at DEBUG says why',
    "site_memory/pages": "pages that the site memory has learnt from (`DRIPPER_SITES`)",
    "site_memory/copies": "pages that it did not learn from, because it had seen them at this or another URL",
    "site_memory/changed": "pages from which main blocks were removed because other pages of the site repeat them",
    "site_memory/blocks": "main blocks that were removed from these pages",
    "site_memory/hosts": "hosts in the memory",
    "templates/{outcome}": "pages by what templates did (`DRIPPER_SITES`): `answered`, or why the model was asked",
    "templates/dropped": "templates that were forgotten, because the model disagreed",
    "templates/hosts": "hosts that have templates",
    "cancelled": "pages that were not extracted because the crawl ended",
    "{source}/{name}": "an engine's own counters, summed over its pages",
    "batches": "batches that the model has processed",
    "batch_size/mean": "mean number of pages in a batch",
    "queue/max": "peak number of pages queued or being processed",
    "retried_shells": "pages that were empty without scripts and were downloaded again in a browser; as pages, they "
    "count once",
    "retried_shells/empty": "pages that are empty although a browser has downloaded them",
    "held_back": "responses that had to wait because too many pages were queued",
    "workers/max": "peak number of worker processes",
    "workers/memory": "peak memory of a single worker process, in bytes; 0 if the system does not report it",
    "workers/{reason}": "worker processes that were killed because they were stuck (`timeout`) or that died "
    "(`worker_error`)",
    "field_errors/{class}.{field}": "items whose field is missing or cannot be set; after the first "
    f"{MOST_FIELDS} fields, items count as `other`",
    "unfilled": "dicts that were passed on unchanged because their response yielded several; see `DRIPPER_ITEMS`",
    "meta_errors": 'options in `meta["dripper"]` that were ignored because they were invalid',
    "warc/file": "the file of `DRIPPER_WARC`; an existing one is not overwritten, so it may have another name",
    "warc/records": "responses written to `DRIPPER_WARC`",
    "warc/errors": "responses that could not be written to `DRIPPER_WARC`",
    "bugs": "exceptions in the plugin itself; the item is kept but has no content; please report them",
}
"""The meaning of each stat. The reference page of the stats is generated from it."""


UNDECIDED_SHARE = 0.9
"""Minimum share of undecided pages for the warning at the end of a crawl."""
LONGEST_ERROR = 300
"""Maximum length of an error in the warning, in characters."""

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


class CrawlStats:
    """Writes the ``dripper/...`` stats of a crawl. Call all methods on the event loop."""

    def __init__(self, crawler: Crawler, report: Report) -> None:
        """``report`` also receives the pages."""
        self._report = report
        self._crawler = ref(crawler)  # a weak reference, to keep the crawler collectable
        self._warned: set[str] = set()
        self._batches = self._batched = 0
        self._bad_fields: set[str] = set()
        self._matches = False
        self._unmatched: dict[str, Sequence[str]] = {}
        self._unmatched_items = 0
        self._judged = 0
        self._quality = 0.0
        self._mistakes: set[str] = set()
        self._no_content = NoContent()

    def count(self, name: str, value: int = 1) -> None:
        """Add to one of :data:`STATS`."""
        self._write("inc_value", name, value)

    def peak(self, name: str, value: int) -> None:
        """Raise one of :data:`STATS` to a value, if it is lower."""
        self._write("max_value", name, value)

    def put(self, name: str, value: float) -> None:
        """Set one of :data:`STATS`."""
        self._write("set_value", name, value)

    def batch(self, pages: int) -> None:
        """Count a batch and its pages."""
        self._batches += 1
        self._batched += pages
        self.count("batches")
        self.put("batch_size/mean", round(self._batched / self._batches, 2))

    def page(self, extraction: Extraction, document: Document | None = None, *, rendered: bool = False) -> None:
        """Count a page by source, fallback reason, page type and quality. ``rendered`` is True if a browser has
        downloaded it: no warning advises one then.
        """
        self._report.page(extraction, document)
        self.count("pages")
        self.count(f"pages/{extraction.source}")
        if extraction.fallback_reason is not None:
            self.count(f"fallback/{extraction.fallback_reason}")
        if rendered and is_shell(extraction):
            self.count("retried_shells/empty")
            self.warn("still empty", STILL_EMPTY, extraction.url)
        else:
            self._no_content.add(extraction)
            self._warn_of(extraction)
        if extraction.truncated:
            self.count("truncated")
        if extraction.page_type is not None:
            self.count(f"page_type/{extraction.page_type}")
        if extraction.quality is not None:
            self._judged += 1
            self._quality += extraction.quality
            self.count("quality/pages")
            self.put("quality/mean", round(self._quality / self._judged, 4))
        more = extraction.details
        if more.get("template") is not None:
            self.count(f"templates/{more['template']}")
        if more.get("rules") is not None:
            self.count("rules/pages" if more["rules"] else "rules/missed")
            for kind, blocks in more["rules"].items():
                self.count(f"rules/{kind}", blocks)
        for name, value in more.get("work", {}).items():
            self.count(f"{extraction.source}/{name}", value)
        self._names(more)

    def _names(self, more: Mapping[str, Any]) -> None:
        """Count the steps, facts and forms that the details of an extraction name."""
        for step in more.get("overruled", []):
            self.count(f"overruled/{step}")
        for kind in more.get("missing", []):
            self.count(f"missing/{kind}")
        for form in more.get("failed", []):
            self.count(f"failed/{form}")

    def first_look(self, extraction: Extraction, document: Document | None = None) -> None:
        """Count a page, unless it is a shell: a browser downloads that again, and then it counts."""
        if is_shell(extraction):
            self.count("retried_shells")
        else:
            self.page(extraction, document)

    def _warn_of(self, extraction: Extraction) -> None:
        """Warn of a lost engine, of a page that stopped a worker, or of one that needs a browser. Each comes once."""
        if extraction.fallback_reason is FallbackReason.ENGINE_LOST:
            self.warn("engine_lost", LOST, extraction.error, level=logging.ERROR)
        if extraction.fallback_reason in SUSPECT:
            url = extraction.url or "a page without URL"
            self.warn(
                f"stopped by {extraction.fallback_reason}", STOPPED, url, extraction.error, extraction.fallback_reason
            )
        if is_shell(extraction):
            self.warn("js_shell", "%s is empty until a script fills it: %s", extraction.url, RENDER)

    async def close(self, spider: Spider) -> None:
        """Write the report of a spider's crawl, and log the warnings about all of it that were not logged before."""
        with ThreadPoolExecutor(1, "scrapy-dripper-report") as thread:  # which other crawls do not wait for
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(thread, self._report.tell, spider.name, self._command(spider))
        self._no_content.close()
        self._warn_of_unmatched()

    def _command(self, spider: Spider) -> InspectCommand:
        """Return the command that shows the inspector's view of any page, from where this crawl has kept it."""
        crawler = self._crawler()
        assert crawler is not None
        assert crawler.stats is not None
        settings, words, source = crawler.settings, [InspectCommand.words], InspectCommand.source
        modules = settings.getlist("SPIDER_MODULES")
        if in_project := any(f"{type(spider).__module__}.".startswith(f"{module}.") for module in modules):
            words.append(f"--spider {quote(spider.name)}")  # its own settings, and its part of the cache
        if archive := crawler.stats.get_value(f"{PREFIX}warc/file") or settings["DRIPPER_REPLAY"]:
            words.append(f"-s DRIPPER_REPLAY={quote(abspath(archive))}")
            source = "in the archive of the crawl"
        elif in_project and settings.getbool("HTTPCACHE_ENABLED"):
            words.append("-s HTTPCACHE_ENABLED=1")
            source = "in Scrapy's cache"
        return InspectCommand(" ".join(words), source)

    def meta_errors(self, url: str, messages: Sequence[str], parts: int = 1) -> None:
        """Count invalid parts of a request's ``meta["dripper"]``, and warn about each kind of mistake."""
        self.count("meta_errors", parts)
        for message in messages:
            if len(self._mistakes) < MOST_MISTAKES and message not in self._mistakes:
                self._mistakes.add(message)
                logger.warning('%s: %s; this part of meta["dripper"] is ignored', url, message)

    def matched(self) -> None:
        """Record that the class of an item has a field to fill."""
        self._matches = True

    def filled(self, cls: str, fields: Sequence[str], by_name: Collection[str]) -> None:
        """Tell once which fields of a class are filled. Those of ``by_name`` are filled although no setting names
        them.
        """
        message = "Items of class %s are filled: %s"
        if by_name:
            message += (
                ". They have %s by the name of PageItem's fields: DRIPPER_FILL_BY_NAME = False leaves those empty"
            )
        more = [", ".join(by_name)] if by_name else []
        self.warn(f"filled {cls}", message, cls, ", ".join(fields), *more, level=logging.INFO)

    def without_fields(self, cls: str, fields: Sequence[str], more: Sequence[str]) -> None:
        """Count an item whose class has none of the fields of the settings, and none of ``more``.

        Such classes may be right, beside others. So there is only a warning if no class has a field to fill.
        """
        for field in fields:
            self._count_field(cls, field)
        self._unmatched.setdefault(cls, [*fields, *more])
        self._unmatched_items += 1
        if self._unmatched_items == EARLY:
            self._warn_of_unmatched()

    def _warn_of_unmatched(self) -> None:
        if self._unmatched and not self._matches:
            fields = ", ".join(next(iter(self._unmatched.values())))
            self.warn(
                "unmatched",
                "No item can be filled: the %s %s none of the fields %s. Add them, or yield scrapy_dripper.PageItem. "
                "DRIPPER_ITEMS = [] fills no items and silences this warning.",
                "classes" if len(self._unmatched) > 1 else "class",
                ", ".join(list(self._unmatched)[:MOST_MISTAKES]) + (" have" if len(self._unmatched) > 1 else " has"),
                fields,
            )

    def missing_fields(self, cls: str, fields: Sequence[str]) -> None:
        """Count the fields that the class of an item lacks beside others that it has, and warn once per class."""
        for field in fields:
            self._count_field(cls, field)
        self.warn(
            f"missing {cls}",
            "Items of class %s have no field %s and are passed on without it. Add it to the class, set the setting "
            "that names it to None, or let DRIPPER_ITEMS name the classes to fill.",
            cls,
            ", ".join(fields),
        )

    def field_error(self, cls: str, field: str, problem: str) -> None:
        """Count a field that could not be filled, and warn once per class."""
        self._count_field(cls, field)
        self.warn(
            f"field {cls}",
            "%s.%s cannot be filled: %s. Items of this class are passed on without it; DRIPPER_ITEMS can name the "
            "classes to fill.",
            cls,
            field,
            problem,
        )

    def _count_field(self, cls: str, field: str) -> None:
        name = f"{cls}.{field}"
        if name not in self._bad_fields and len(self._bad_fields) >= MOST_FIELDS:
            self.count(f"field_errors/{OTHER}")
            return
        self._bad_fields.add(name)
        self.count(f"field_errors/{name}")

    def bug(self, where: str) -> None:
        """Count an exception in the plugin itself, and log the one being handled. The crawl goes on."""
        self.count("bugs")
        message = "scrapy-dripper failed in %s; items are passed on as they are"
        self.warn(where, message, where, level=logging.ERROR, exc_info=True)

    def stopping(self) -> bool:
        """Return True if the crawl no longer accepts requests."""
        crawler = self._crawler()
        return crawler is None or not crawler.crawling

    def _write(self, method: str, name: str, value: float) -> None:
        crawler = self._crawler()
        if crawler is None:
            return
        try:
            getattr(crawler.stats, method)(PREFIX + name, value)
        except Exception as error:  # a custom stats collector may fail, but the pages must still be settled
            self.warn("stats", "%s cannot be counted: %s: %s", PREFIX + name, type(error).__name__, error)

    def warn(
        self, kind: str, message: str, *args: object, level: int = logging.WARNING, exc_info: bool = False
    ) -> None:
        """Log a message, unless one of its kind has been logged."""
        if kind not in self._warned:
            self._warned.add(kind)
            logger.log(level, message, *args, exc_info=exc_info)


def is_shell(extraction: Extraction) -> bool:
    """Return True for a page that is empty until a script fills it."""
    return extraction.fallback_reason is FallbackReason.JS_SHELL and extraction.is_empty
