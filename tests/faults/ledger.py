"""The ledger of a crawl: each item that a callback yields must come out, or be accounted for, once.

``FAULTS_TIMES=40`` makes all crawls 40 times as long, and ``FAULTS_TABLE=FILE`` adds a row for each of them to a file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem, StopDownload

from scrapy_dripper.crawl import Dripper
from tests.crawl.crawling import Crawled

DOORS: dict[str, dict[str, Any]] = {
    "middleware": {},
    "pipeline": {"ADDONS": {}, "ITEM_PIPELINES": {"scrapy_dripper.pipelines.DripperPipeline": 300}},
    "callback": {"ADDONS": {}},
}
"""The ways in which an item gets its content, with their settings."""
SETTINGS = {"DRIPPER_FALLBACK": "html", "DRIPPER_META_FIELD": "by", "DRIPPER_ITEMS": ["dict"]}


class Ledger:
    """What went into one crawl, and what came out."""

    def __init__(self) -> None:
        self.requests: list[int] = []
        self.callbacks: list[int] = []
        self.errbacks: dict[int, str] = {}
        self.yielded: list[str] = []
        self.gone: dict[str, list[str]] = {"dropped": [], "failed": [], "filtered": []}
        """IDs of the items that another component dropped, or raised for, or filtered."""
        self.by: dict[str, tuple[str | None, str | None]] = {}
        """For each item that came out, its source and its fallback reason."""
        self.asked = self.responses = 0
        self.wrong: list[str] = []
        self.events: list[str] = []

    def watch(self, crawler: Crawler) -> None:
        """Connect to the signals of a crawl, which hold their receivers weakly."""

        def note(list_: list[str]) -> Callable[[Any], None]:
            return lambda item: list_.append(item["id"])

        def happened(name: str) -> Callable[[], None]:
            return lambda: self.events.append(name)

        connect = crawler.signals.connect
        connect(self._response, signals.response_received)
        connect(self._scraped, signals.item_scraped)
        connect(note(self.gone["dropped"]), signals.item_dropped, weak=False)
        connect(note(self.gone["failed"]), signals.item_error, weak=False)
        for name in ("engine_started", "spider_opened", "spider_closed", "engine_stopped"):
            connect(happened(name), getattr(signals, name), weak=False)

    def _response(self) -> None:
        self.responses += 1

    def _scraped(self, item: Any) -> None:
        by = item.get("by") or {}
        text = item.get("markdown") or ""
        if item["id"] in self.by or ("text of page" in text and f"text of page {item['number']}," not in text):
            self.wrong.append(str(item)[:500])  # it came out twice, or has another page's content
        self.by[item["id"]] = by.get("source"), by.get("fallback_reason")

    def balance(self, crawl: Crawled, complete: bool = True) -> None:
        """Check that nothing is lost and that the stats agree. ``complete`` is False for a crawl that was stopped."""
        out = Counter([*self.by, *(one for some in self.gone.values() for one in some)])
        self._note(crawl, (Counter(self.yielded) - out).total())
        assert not self.wrong, self.wrong
        assert Counter(self.yielded) == out
        assert sorted(self.events[:2]) == ["engine_started", "spider_opened"]
        assert self.events[2:] == ["spider_closed", "engine_stopped"]
        if complete:  # each request ended in either callback or errback, once
            assert Counter([*self.callbacks, *self.errbacks]) == Counter(self.requests)
        else:
            assert len(self.callbacks) == self.responses

        def group(prefix: str) -> Counter[str]:
            start = f"dripper/{prefix}/"
            found = {name: value for name, value in crawl.stats.items() if name.startswith(start)}
            return Counter({name.removeprefix(start): value for name, value in found.items()})

        assert crawl.stats.get("item_scraped_count", 0) == len(self.by)
        assert crawl.stats.get("item_dropped_count", 0) == len(self.gone["dropped"])
        assert crawl.stat("bugs") == 0
        assert crawl.stat("pages") == group("pages").total()
        assert self.asked == crawl.stat("pages") + group("skipped").total() + crawl.stat("cancelled")
        if self.asked == len(self.by):  # one item for each page
            assert group("pages") == Counter(source for source, _ in self.by.values() if source)
            assert group("fallback") == Counter(reason for _, reason in self.by.values() if reason)

    def _note(self, crawl: Crawled, lost: int) -> None:
        """Add a row about a crawl to the table."""
        kinds = ("dripper/fallback/", "dripper/skipped/", "dripper/cancelled", "spider_exceptions/Runtime")
        reasons = {name.removeprefix("dripper/"): n for name, n in crawl.stats.items() if name.startswith(kinds)}
        reasons |= {f"item {what}": len(some) for what, some in self.gone.items() if some}
        reasons |= Counter(f"errback {name}" for name in self.errbacks.values())
        note(self.responses, len(self.by), reasons, lost)


def note(responses: int, items: int, reasons: Mapping[str, int], lost: int) -> None:
    """Add a row about the crawl of this test to the table, if there is one."""
    if path := os.environ.get("FAULTS_TABLE"):
        test = os.environ["PYTEST_CURRENT_TEST"].partition("::")[2].partition(" ")[0]
        counted = ", ".join(f"{name} {number:,}" for name, number in sorted(reasons.items())) or "none"
        with open(path, "a", encoding="utf-8") as table:
            table.write(f"| `{test}` | {responses:,} | {items:,} | {counted} | {lost:,} |\n")


class FaultSpider(Spider):
    """Fetches numbered pages and yields an item for each, unless its faults say otherwise."""

    name = "faults"
    urls: Sequence[str]
    faults: Mapping[int, str]
    """What the callback does with a page, by its number."""
    door: str
    ledger: Ledger

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Any:
        made = super().from_crawler(crawler, *args, **kwargs)
        cls.ledger.watch(crawler)
        crawler.signals.connect(made.headers, signals.headers_received)
        return made

    async def start(self) -> Any:
        for turn, url in enumerate(self.urls):
            number = self.urls.index(url)
            self.ledger.requests.append(number)
            meta = {"download_timeout": 2} if "/silence/" in url else {}
            kwargs = {"number": number}
            yield Request(url, errback=self.failed, cb_kwargs=kwargs, meta=meta, dont_filter=True, priority=-turn)

    def headers(self, headers: Any, request: Any) -> None:
        kind = self.faults.get(request.cb_kwargs["number"])
        if kind in ("stop", "stop and fail"):
            raise StopDownload(fail=kind != "stop")

    def parse(self, response: Any, number: int) -> Any:
        return self.ask(response, number) if self.door == "callback" else self.items(response, number)

    def items(self, response: Any, number: int) -> Iterator[Any]:
        kind, ledger = self.faults.get(number), self.ledger
        ledger.callbacks.append(number)
        if kind == "raise before":
            raise RuntimeError("a callback failed")
        if kind == "none":
            return
        id_ = f"{number}.{ledger.callbacks.count(number)}".removesuffix(".1")
        ids = [id_, f"{id_}b"] if kind == "two" else [id_]
        ledger.asked += len(ids) if self.door == "pipeline" else kind != "filter"
        for id_ in ids:
            ledger.yielded.append(id_)
            item = {"id": id_, "number": response.url.rpartition("/")[2]}
            if self.door == "pipeline":
                item |= {"html": response.body if number % 2 else response.text, "url": response.url}
            yield item
        if kind == "raise after":
            raise RuntimeError("a callback failed")

    async def ask(self, response: Any, number: int) -> Any:
        for item in self.items(response, number):
            page = await Dripper.from_crawler(self.crawler).extract(response)
            if page is not None:
                item |= {"markdown": page.markdown, "main_html": page.main_html, "by": dict(page.meta())}
            yield item

    def failed(self, failure: Any) -> None:
        self.ledger.errbacks[failure.request.cb_kwargs["number"]] = failure.type.__name__


def fault_spider(
    urls: Sequence[str], faults: Mapping[int, str] | None = None, door: str = "middleware"
) -> type[FaultSpider]:
    """Return a spider with a ledger of its own."""
    values = {"urls": urls, "faults": faults or {}, "door": door, "ledger": Ledger()}
    return type("FaultSpider", (FaultSpider,), values)


class Mishaps:
    """An item pipeline that drops some items and raises for others, and a spider middleware that filters some."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Mishaps:
        return cls(crawler)

    def _is(self, kind: str, item: Any) -> bool:
        assert isinstance(self.crawler.spider, FaultSpider)
        return self.crawler.spider.faults.get(int(item["id"].rstrip("b"))) == kind

    def process_item(self, item: Any) -> Any:
        if self._is("drop", item):
            raise DropItem("not wanted")
        if self._is("fail", item):
            raise RuntimeError("a pipeline failed")
        return item

    async def process_spider_output(self, response: Any, result: Any) -> Any:
        assert isinstance(self.crawler.spider, FaultSpider)
        async for entry in result:
            if isinstance(entry, dict) and self._is("filter", entry):
                self.crawler.spider.ledger.gone["filtered"].append(entry["id"])
            else:
                yield entry
