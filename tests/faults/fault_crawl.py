"""A crawl in a process of its own, with a ledger: ``python -m tests.faults.fault_crawl JSON``.

The keys of the JSON are in :data:`DEFAULTS`. The ledger, a JSON file, says what went in, what came out, and what is
left of the process when the crawl is over.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcess
from scrapy.exceptions import DropItem, StopDownload
from scrapy.extensions.closespider import CloseSpider

import scrapy_dripper.crawl.batcher
import scrapy_dripper.extractor
import scrapy_dripper.workers.pool
from scrapy_dripper.crawl.dripper import Dripper
from scrapy_dripper.workers.process import Process
from tests.crawl.crawling import EXTENSIONS
from tests.faults.fault_engine import Faulty, Rules, over
from tests.faults.fault_processes import children, files
from tests.faults.fault_site import kind_of

DEFAULTS: dict[str, Any] = {
    "process": "AsyncCrawlerProcess",  # or "CrawlerProcess", or "reactorless"
    "door": "middleware",  # or "pipeline", or "callback"
    "engine": "rules",  # or "tagger"
    "processes": 0,  # worker processes; they find engine and fallback in fault_worker.py
    "pages": 2_050,
    "site": {},  # faults of the site
    "faults": {},  # faults of the engine
    "fallback_faults": {},  # faults of the fallback "tests.faults.fault_worker.fallback"
    "seconds": 3.0,  # how long the engine sleeps
    "spider": {},  # what the callback does
    "lists": False,  # find the pages by links
    "again": False,  # request every page twice
    "signals": [],  # sent to the process itself, within a batch, once `at` responses are there
    "stuck": False,  # the workers are stuck when a signal comes
    "at": 2_000,
    "vanish": None,  # a folder that is deleted within a batch, whose worker dies
    "back": 0,  # it is there again when so many pages have fallen back
    "no_thread": 0,  # one in so many threads cannot be started
    "kill_worker": 0,  # one of the workers is killed at each so many items
    "no_process": [0, 0],  # the first of the worker processes that cannot be started, and the next that can be
    "restart_seconds": None,  # pause before that is tried again
    "file_limit": None,  # bytes that a file can have
    "patience": 30,  # seconds for the threads to end
    "settings": {},
    "own": {},  # settings of one crawl of several
}
SETTINGS = {
    "ADDONS": {"scrapy_dripper.Addon": 500},
    "EXTENSIONS_BASE": EXTENSIONS,
    "ROBOTSTXT_OBEY": False,
    "RETRY_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
    "LOG_LEVEL": "WARNING",
    "DRIPPER_BATCH_SIZE": 16,
    "DRIPPER_BATCH_WAIT": 0.05,
    "DRIPPER_FALLBACK": "html",
    "DRIPPER_ITEMS": ["dict"],  # also where a response has two
    "DRIPPER_META_FIELD": "by",
    "DRIPPER_PROCESSES": 0,
}
DOORS: dict[str, dict[str, Any]] = {
    "middleware": {},
    "pipeline": {"ADDONS": {}, "ITEM_PIPELINES": {"scrapy_dripper.pipelines.DripperPipeline": 300}},
    "callback": {"ADDONS": {}},
}


class Ledger:
    """Records what happens in one crawl."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = {**DEFAULTS, **job}
        self.yielded: list[str] = []
        self.scraped: list[Any] = []
        self.dropped: list[str] = []
        self.failed: list[str] = []
        self.filtered: list[str] = []
        self.requests: list[int] = []
        self.callbacks: list[int] = []
        self.errbacks: dict[int, str] = {}
        self.responses = 0
        self.asked = 0
        self.injected: defaultdict[str, set[int]] = defaultdict(set)
        self.events: list[str] = []
        self.wrong: list[str] = []
        self.field = str(self.job.get("name", "markdown"))
        self.away, self.fallen = f"{self.job['vanish']}.away", 0

    def note(self, kind: str, number: int) -> None:
        """Record a fault."""
        self.injected[kind].add(number)

    def watch(self, crawler: Crawler) -> None:
        """Connect to the signals of a crawl."""
        self.crawler = crawler
        connect = crawler.signals.connect
        connect(self._response, signals.response_received)
        connect(self._scraped, signals.item_scraped)
        connect(self._dropped, signals.item_dropped)
        connect(self._failed, signals.item_error)
        connect(self._headers, signals.headers_received)
        for name in ("engine_started", "spider_opened", "spider_closed", "engine_stopped"):
            connect(self._event(name), getattr(signals, name), weak=False)

    def _event(self, name: str) -> Callable[[], None]:
        def seen() -> None:
            self.events.append(name)
            if name == "engine_stopped":
                over.set()

        return seen

    def _response(self) -> None:
        self.responses += 1

    def _headers(self, headers: Any, request: Any) -> None:
        kind = kind_of(request.cb_kwargs.get("number", -1), self.job["spider"])
        if kind in ("stop", "stop_fail"):
            self.note(kind, request.cb_kwargs["number"])
            raise StopDownload(fail=kind == "stop_fail")

    def _scraped(self, item: Any) -> None:
        by = item.get("by") or {}
        self.scraped.append([item["id"], by.get("source"), by.get("fallback_reason")])
        self.fallen += by.get("fallback_reason") is not None
        if self.fallen == self.job["back"] and os.path.exists(self.away):
            os.rename(self.away, self.job["vanish"])
            self.note("back", 0)
            time.sleep(0.5)  # more than the pause after which an engine is loaded again
        every = self.job["kill_worker"]
        if every and not len(self.scraped) % every and (alive := [one for one in workers if one.poll() is None]):
            self.note("kill -9", len(self.scraped))
            chance.choice(alive).kill()
        text = item.get(self.field) or ""
        if text and f"page {item['number']}," not in text:  # another page's, if it is any page's text
            self.wrong.append(item["id"])

    def _dropped(self, item: Any) -> None:
        self.dropped.append(item["id"])

    def _failed(self, item: Any) -> None:
        self.failed.append(item["id"])

    def report(self) -> dict[str, Any]:
        """Return the ledger as plain JSON values."""
        names = (
            "yielded",
            "scraped",
            "dropped",
            "failed",
            "filtered",
            "requests",
            "callbacks",
            "errbacks",
            "responses",
        )
        return {
            **{name: getattr(self, name) for name in (*names, "asked", "events", "wrong")},
            "workers": [process.pid for process in workers],
            "injected": {kind: sorted(pages) for kind, pages in self.injected.items()},
            "stats": {name: value for name, value in self.crawler.stats.get_stats().items() if is_plain(value)},
        }


def is_plain(value: object) -> bool:
    return isinstance(value, (int, float, str))


class FaultSpider(Spider):
    """Fetches pages and yields an item for each, unless the job says otherwise."""

    name = "faults"
    ledger: Ledger

    async def start(self) -> Any:
        job = self.ledger.job
        pages = range(job["pages"])
        if job["lists"]:
            for number in pages[::50]:
                yield Request(f"{job['url']}/list/{number}", callback=self.parse_list)
            return
        for turn in range(1 + job["again"]):
            for number in pages:
                kind = kind_of(number, job["site"]) or "p"
                if kind != "p" and not turn:
                    self.ledger.note(kind, number)
                meta = {"download_timeout": 3} if kind == "silent" else {}
                yield self.request(number, f"{job['url']}/{kind}/{number}", dont_filter=True, meta=meta)

    def request(self, number: int, url: str, **kwargs: Any) -> Request:
        self.ledger.requests.append(number)
        kwargs = {"callback": self.parse, "errback": self.failed, **kwargs}
        return Request(url, cb_kwargs={"number": number}, **kwargs)

    def parse_list(self, response: Any) -> Iterator[Any]:
        for link in response.css("a::attr(href)").getall():
            yield self.request(int(link.rpartition("/")[2]), response.urljoin(link))

    def parse(self, response: Any, number: int) -> Any:
        if self.ledger.job["door"] == "callback":
            return self.ask(response, number)
        return self.yield_items(response, number)

    def yield_items(self, response: Any, number: int) -> Iterator[Any]:
        ledger, door = self.ledger, self.ledger.job["door"]
        kind = kind_of(number, ledger.job["spider"])
        if kind is not None:
            ledger.note(kind, number)
        ledger.callbacks.append(number)
        if kind == "raise_before":
            raise RuntimeError("a callback failed")
        if kind == "none":
            return
        items: list[dict[str, Any]] = [{"id": f"{number}", "number": number}]
        if kind == "two":
            items.append({"id": f"{number}b", "number": number})
        if ledger.job["again"]:
            items[0]["id"] += f".{ledger.callbacks.count(number)}"
        ledger.asked += len(items) if door == "pipeline" else 1
        for item in items:
            ledger.yielded.append(item["id"])
            if door == "pipeline":
                item.update(html=response.body if number % 2 else response.text, url=response.url)
            yield item
        if kind == "raise_after":
            raise RuntimeError("a callback failed")

    async def ask(self, response: Any, number: int) -> Any:
        for item in self.yield_items(response, number):
            page = await Dripper.from_crawler(self.crawler).extract(response)
            if page is not None:
                item.update(markdown=page.markdown, main_html=page.main_html, by=dict(page.meta()))
            yield item

    def failed(self, failure: Any) -> None:
        self.ledger.errbacks[failure.request.cb_kwargs["number"]] = failure.type.__name__


class Mishaps:
    """An item pipeline that drops some items and raises for others."""

    crawler: Crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Mishaps:
        one = cls()
        one.crawler = crawler
        return one

    def process_item(self, item: Any) -> Any:
        kind = kind_of(item["number"], self.crawler.spider.ledger.job["spider"])
        if kind == "drop":
            raise DropItem("not wanted")
        if kind == "fail":
            raise RuntimeError("a pipeline failed")
        return item


class Filter:
    """A user's spider middleware that removes some items."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Filter:
        one = cls()
        one.crawler = crawler
        return one

    crawler: Crawler

    async def process_spider_output(self, response: Any, result: Any) -> Any:
        ledger = self.crawler.spider.ledger
        async for entry in result:
            if isinstance(entry, dict) and kind_of(entry["number"], ledger.job["spider"]) == "filter":
                ledger.filtered.append(entry["id"])
                ledger.asked -= 1
            else:
                yield entry


class Twice:
    """A downloader middleware that answers some requests with the response object of an earlier one."""

    crawler: Crawler
    responses: dict[str, Any]

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Twice:
        one = cls()
        one.crawler, one.responses = crawler, {}
        return one

    def process_request(self, request: Any) -> Any:
        response = self.responses.get(request.url)
        if response is not None:
            ledger = self.crawler.spider.ledger
            ledger.note("twice", request.cb_kwargs["number"])
            ledger.asked -= 1
        return response

    def process_response(self, request: Any, response: Any) -> Any:
        if request.cb_kwargs["number"] % 10 == 3:
            self.responses[request.url] = response
        return response


class LateCloseSpider(CloseSpider):
    """Starts the time of ``CLOSESPIDER_TIMEOUT`` after a number of responses, however slow the machine is."""

    def spider_opened(self, spider: Any) -> None:
        self.crawler.signals.connect(self._response, signals.response_received)

    def _response(self, spider: Any) -> None:
        if spider.ledger.responses == spider.ledger.job["at"]:
            super().spider_opened(spider)


def install_engine(ledgers: dict[str, Ledger]) -> None:
    """Replace every engine that is loaded by the engine of its crawl; ``DRIPPER_MODEL`` tells them apart."""
    load = scrapy_dripper.extractor.load_engine

    def faulty(config: Any) -> Any:
        ledger = ledgers.get(str(config.markdown_field), next(iter(ledgers.values())))
        job = ledger.job
        engine = load(config) if job["engine"] == "tagger" else Rules()
        return Signalling(Faulty(engine, job["faults"], ledger.note, job["seconds"]), ledger)

    scrapy_dripper.extractor.load_engine = faulty


class Signalling:
    """An engine that sends signals to its own process within a batch."""

    def __init__(self, engine: Faulty, ledger: Ledger) -> None:
        self._engine, self._ledger = engine, ledger
        self.name, self.profile, self.limits = engine.name, engine.profile, engine.limits

    def label(self, pages: Any) -> Any:
        job, ledger = self._ledger.job, self._ledger
        if ledger.responses >= job["at"]:
            names, job["signals"] = job["signals"], []
            for turn, name in enumerate(names):
                while turn and ledger.crawler.crawling:  # until the first one has been understood
                    time.sleep(0.01)
                ledger.note(name, turn)
                os.kill(os.getpid(), getattr(signal, name))
            if len(names) > 1:  # The second one must not need an answer.
                over.wait()
        return self._engine.label(pages)

    def close(self) -> None:
        self._engine.close()


workers: list[subprocess.Popen[bytes]] = []
chance = random.Random(15)


def know_workers(ledger: Ledger, pids: Path, refused: list[int]) -> None:
    """Record the worker processes, here and in a file that outlives this process; some of them fail to start."""
    init, turns = Process.__init__, count()

    def noted(process: Any, *args: Any) -> None:
        if (turn := next(turns)) in range(*refused):
            ledger.note("no_process", turn)
            with refusing_processes():
                init(process, *args)
        init(process, *args)
        workers.append(process._popen)
        with pids.open("a", encoding="ascii") as file:
            file.write(f"{process.pid}\n")

    Process.__init__ = noted  # type: ignore[method-assign]


@contextlib.contextmanager
def refusing_processes() -> Iterator[None]:
    """Act as a system that cannot start a process."""

    def refuse(*_: Any, **__: Any) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    init = subprocess.Popen.__init__
    subprocess.Popen.__init__ = refuse  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        subprocess.Popen.__init__ = init  # type: ignore[method-assign]


def tell_workers(ledgers: dict[str, Ledger], path: Path) -> None:
    """Write what engine and fallback do in worker processes, for :mod:`tests.faults.fault_worker`."""
    names = ("engine", "faults", "fallback_faults", "seconds", "vanish", "at", "stuck")
    jobs = {name: {key: ledger.job[key] for key in names} for name, ledger in ledgers.items()}
    path.write_text(json.dumps(jobs), encoding="utf-8")
    os.environ["FAULTS_WORKERS"] = str(path)


def hear_workers(ledgers: dict[str, Ledger], path: Path) -> None:
    """Add the notes of the workers to the ledgers."""
    for line in path.read_text(encoding="ascii").splitlines() if path.exists() else ():
        name, kind, number = line.split()
        ledgers[name].note(kind, int(number))


def send_signals(ledger: Ledger, stuck: Path) -> None:
    """Send the job's signals to this process while pages are in its workers."""
    job = ledger.job

    def send() -> None:
        while ledger.responses < job["at"] or (job["stuck"] and not stuck.exists()):
            if over.wait(0.01):
                return
        for turn, name in enumerate(job["signals"]):
            while turn and ledger.crawler.crawling:  # until the first one has been understood
                time.sleep(0.01)
            ledger.note(name, turn)
            os.kill(os.getpid(), getattr(signal, name))

    threading.Thread(target=send, daemon=True, name="signals").start()


def refuse_threads(ledger: Ledger, every: int) -> None:
    """Let some of the plugin's threads fail to start."""
    start, turns = threading.Thread.start, count(1)

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "scrapy-dripper" and not (turn := next(turns)) % every:
            ledger.note("no_thread", turn)
            raise RuntimeError("can't start new thread")
        start(thread)

    threading.Thread.start = refuse  # type: ignore[method-assign]


def main() -> None:
    """Run the crawls of the job, one for each of its parts."""
    faulthandler.register(signal.SIGUSR1)
    job = json.loads(sys.argv[1])
    ledgers = {part.get("name", "markdown"): Ledger({**job, **part}) for part in job.get("crawls", [{}])}
    one = next(iter(ledgers.values()))
    report = Path(job["report"])
    told, noted = report.with_name("workers.json"), report.with_name("workers.json.notes")
    noted.unlink(missing_ok=True)
    if one.job["processes"]:
        tell_workers(ledgers, told)
        if one.job["restart_seconds"]:
            scrapy_dripper.workers.pool.RESTART_SECONDS = one.job["restart_seconds"]
        know_workers(one, report.with_name("pids"), one.job["no_process"])
        send_signals(one, noted)
    else:
        install_engine(ledgers)
    if one.job["no_thread"]:
        refuse_threads(one, one.job["no_thread"])
    before = files()
    process = new_process(one.job)
    for name, ledger in ledgers.items():
        ours = {"DRIPPER_MARKDOWN_FIELD": name, **ledger.job["own"]}
        crawler = process.create_crawler(type("Spider", (FaultSpider,), {"ledger": ledger, "custom_settings": ours}))
        ledger.watch(crawler)
        process.crawl(crawler)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if one.job["file_limit"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (one.job["file_limit"], limits[1]))
    process.start()
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    hear_workers(ledgers, noted)
    left = {
        "ledgers": {name: ledger.report() for name, ledger in ledgers.items()},
        "threads": threads_left(one.job["patience"]),
        "children": children(os.getpid()),
        "files": sorted(files() - before),
    }
    report.write_text(json.dumps(left), encoding="utf-8")


def new_process(job: dict[str, Any]) -> Any:
    """Return the Scrapy process that the job asks for."""
    ours = (
        {"DRIPPER_PROCESSES": job["processes"], "DRIPPER_ENGINE": "tests.faults.fault_worker.load"}
        if job["processes"]
        else {}
    )
    settings = {**SETTINGS, **DOORS[job["door"]], **ours, **job["settings"]}
    if job["process"] == "reactorless":
        settings["TWISTED_REACTOR_ENABLED"] = False
    return (CrawlerProcess if job["process"] == "CrawlerProcess" else AsyncCrawlerProcess)(settings)


def threads_left(patience: float) -> list[str]:
    """Return the names of the threads that do not end."""
    deadline = time.monotonic() + patience
    while True:
        names = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
        if not names or time.monotonic() > deadline:
            return names
        time.sleep(0.02)


if __name__ == "__main__":
    main()
