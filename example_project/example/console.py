"""The output of a crawl on the console, while it runs and when it has ended."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from tqdm import tqdm
from twisted.python.failure import Failure

from example.base import PageSpider
from example.items import AppPage, Page

WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
"""A word; in Chinese and Japanese, a character."""
EVERY = 10
"""Without a terminal, a line of progress is printed each time this number of pages is done."""


@dataclass(frozen=True)
class Row:
    """One line of the table: a page with its numbers, or a URL with the reason why there are none."""

    url: str
    meta: Mapping[str, Any] | None = None
    words: int = 0
    remark: str = ""


class Watcher:
    """Watches one crawl: keeps a row per page and shows the progress."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.rows: list[Row] = []
        self.texts: dict[bool, str] = {}
        self.extracted = 0
        self._seen = self._shown = 0
        self._bar: tqdm[Any] | None = None
        connect = crawler.signals.connect
        connect(self._opened, signals.spider_opened)
        connect(self._scheduled, signals.request_scheduled)
        connect(self._dropped, signals.request_dropped)
        connect(self._scraped, signals.item_scraped)
        connect(self._crashed, signals.spider_error)
        connect(self._closed, signals.spider_closed)

    def all_rows(self) -> list[Row]:
        """Return the rows so far, and one for each URL that gave no page."""
        return [*self.rows, *(Row(url, remark=f"error: {why}") for url, why in self._failures().items())]

    def _failures(self) -> Mapping[str, str]:
        spider = self._crawler.spider
        return spider.failures if isinstance(spider, PageSpider) else {}

    def _opened(self) -> None:
        if sys.stderr.isatty():
            self._bar = tqdm(unit="page", total=0, leave=False, dynamic_ncols=True, file=sys.stderr)

    def _scheduled(self, request: Request) -> None:
        # Redirects and retries are the same page.
        if not request.meta.get("redirect_times") and not request.meta.get("retry_times"):
            self._move(seen=1)

    def _dropped(self) -> None:
        self._move(seen=-1)

    def _scraped(self, item: Page, response: Response) -> None:
        url = item.url + (" rendered" if item.rendered else " plain") if isinstance(item, AppPage) else item.url
        if isinstance(item, AppPage):
            self.texts[item.rendered] = item.markdown or ""
        self.extracted += bool(item.markdown)
        words = len(WORD.findall(item.markdown or ""))
        remark = "" if item.dripper else f"skipped: {skip_reason(response)}"
        self.rows.append(Row(url, item.dripper, words, remark))
        self._move()

    def _crashed(self, failure: Failure, response: Response) -> None:
        self.rows.append(Row(response.url, remark=f"error: the spider raised {type(failure.value).__name__}"))
        self._move()

    def _closed(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _move(self, *, seen: int = 0) -> None:
        self._seen += seen
        done = len(self.rows) + len(self._failures())
        if self._bar is not None:
            self._bar.total = self._seen
            self._bar.n = done
            self._bar.refresh()
        elif done >= self._shown + EVERY:
            self._shown = done
            print(f"{done} of {self._seen} pages", file=sys.stderr, flush=True)


def skip_reason(response: Response) -> str:
    """Return the reason why a page was not extracted at all, as in the stat ``dripper/skipped/NAME``."""
    if response.request is not None and response.request.meta.get("dripper") is False:
        return "disabled"
    return "not_html" if response.body.strip() else "empty_body"


def shorten(text: str, width: int) -> str:
    """Return a text that fits into ``width``, with two dots in place of its middle if it is too long."""
    if len(text) <= width:
        return text
    tail = (width - 2) * 2 // 3
    return f"{text[: width - 2 - tail]}..{text[-tail:]}" if width > 3 else text[:width]


HEAD = ("page", "source", "blocks", "main", "words", "ms", "fallback")
RIGHT = (False, False, True, True, True, True, False)


def cells(row: Row, home: str) -> tuple[str, ...]:
    """Return the cells of a row. A row with a remark has two."""
    url = row.url.removeprefix(home) if home else row.url
    if row.meta is None or row.remark:
        return url, row.remark
    meta = row.meta
    numbers = (meta["blocks"], meta["main_blocks"], row.words, round(meta["milliseconds"]))
    # The last column says that it was a fallback.
    source = meta["source"].removeprefix("fallback:")
    return (url, source, *(f"{number:,}" for number in numbers), meta["fallback_reason"] or "")


def table(rows: Iterable[Row], width: int) -> list[str]:
    """Return the lines of the table of a crawl, none longer than the width."""
    rows = sorted(rows, key=lambda row: row.url)
    home = common_home(rows)
    lines = [HEAD, *(cells(row, home) for row in rows)]
    full = [line for line in lines if len(line) == len(HEAD)]
    widths = [max(len(line[column]) for line in full) for column in range(len(HEAD))]
    widths[0] = max(len(line[0]) for line in lines)
    gap = "  " if sum(widths) + 2 * len(widths) - 2 <= width else " "
    widths[0] = max(12, min(widths[0], width - sum(widths[1:]) - len(gap) * (len(widths) - 1)))
    remark = max(8, width - widths[0] - len(gap))
    drawn = []
    for line in lines:
        if len(line) == len(HEAD):
            cut = (shorten(cell, size) for cell, size in zip(line, widths, strict=True))
            pads = zip(cut, widths, RIGHT, strict=True)
            text = gap.join(cell.rjust(size) if right else cell.ljust(size) for cell, size, right in pads)
        else:
            text = f"{shorten(line[0], widths[0]).ljust(widths[0])}{gap}{shorten(line[1], remark)}"
        drawn.append(text.rstrip()[:width])
    return [drawn[0], "-" * min(width, max(map(len, drawn))), *drawn[1:]]


def common_home(rows: Sequence[Row]) -> str:
    """Return the scheme and host of all rows, or an empty string if they differ."""
    homes = {"://".join(urlsplit(row.url)[:2]) for row in rows}
    return homes.pop() if len(homes) == 1 and len(rows) > 1 else ""


def counts(stats: Mapping[str, Any], prefix: str) -> str:
    """Return the stats below a prefix as ``name n, name n``, largest first."""
    found = {name.removeprefix(prefix): number for name, number in stats.items() if name.startswith(prefix)}
    return ", ".join(f"{name} {number}" for name, number in sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def quality(stats: Mapping[str, Any]) -> str:
    """Return the mean quality of the pages, or an empty string if there is none."""
    mean = stats.get("dripper/quality/mean")
    return "" if mean is None else f"{mean:.2f} on the mean of {stats['dripper/quality/pages']} pages"


def summary(watcher: Watcher, stats: Mapping[str, Any], output: str, log: str) -> list[str]:
    """Return the facts about a crawl that are printed below its table."""
    seconds = stats.get("elapsed_time_seconds") or 0.0
    pages = stats.get("item_scraped_count", 0)
    failed = sum(row.remark.startswith("error") for row in watcher.all_rows())
    facts = {
        "pages": f"{pages} in {seconds:.1f} s, {pages / seconds if seconds else 0:.1f} pages/s",
        "decided by": counts(stats, "dripper/pages/"),
        "fallbacks": counts(stats, "dripper/fallback/"),
        "page types": counts(stats, "dripper/page_type/"),
        "quality": quality(stats),
        "skipped": counts(stats, "dripper/skipped/"),
        "failed": str(failed) if failed else "",
        "log": f"{log} ({stats.get('log_count/WARNING', 0)} warnings, {stats.get('log_count/ERROR', 0)} errors)",
        "items": f"{output}/pages.jsonl" if pages else "",
        "Markdown": f"{output}/markdown/ ({stats.get('example/markdown_files', 0)} files)" if pages else "",
    }
    return [f"{name:<10}  {fact}" for name, fact in facts.items() if fact]
