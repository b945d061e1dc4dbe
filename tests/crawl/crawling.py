"""Live crawls of a small local site, with an engine that tests control."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from weakref import ref

from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.settings import default_settings
from scrapy.utils.reactor import install_reactor

from scrapy_dripper import testing
from scrapy_dripper.engines.base import EngineError, Labels

if TYPE_CHECKING:
    import pytest

EXTENSIONS = {
    path: order
    for path, order in default_settings.EXTENSIONS_BASE.items()
    if not path.endswith((".RemoteControl", ".TelnetConsole"))
}
"""Scrapy's extensions without two that take a quarter of the start of a crawl to import, even if they are disabled."""
QUIET = {
    "ADDONS": {"scrapy_dripper.Addon": 500},
    "EXTENSIONS_BASE": EXTENSIONS,
    "ROBOTSTXT_OBEY": False,
    "DOWNLOAD_DELAY": 0,
    "RETRY_ENABLED": False,
    "DRIPPER_BATCH_WAIT": 0.05,
    "DRIPPER_PROCESSES": 0,  # the fake engines are objects of this process
}
TIMES = int(os.environ.get("FAULTS_TIMES", "1"))
"""How many times as long crawls with faults are."""
PATIENCE = 180 * TIMES
"""Seconds after which a test that waits has failed; never reached by one that passes."""


def workers(number: int = 1, **options: Any) -> dict[str, Any]:
    """Return the settings of a crawl with worker processes, in which blocks with ``MAIN`` are main."""
    options = {"engine": "tests.workers.engines.Truth", "fallback": "html", "meta_field": "by", **options}
    return {f"DRIPPER_{name.upper()}": value for name, value in {"processes": number, **options}.items()}


def page(number: object, extra: str = "") -> str:
    """Return an HTML page with unique main content."""
    return (
        f"<!DOCTYPE html><html><head><title>Page {number}</title></head><body><nav><a href='/'>Menu</a></nav>"
        f"<article><p>MAIN text of page {number}, which is about nothing in particular.</p></article>"
        f"{extra}<footer><p>Contact</p></footer></body></html>"
    )


def answer(
    body: bytes, *headers: str, status: int = 200, length: int | None = None, type_: str | None = "text/html"
) -> bytes:
    """Return an HTTP response. ``length`` is what its Content-Length says, if that is not true."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *headers]
    if type_ is not None:
        lines.append(f"Content-Type: {type_}")
    if not any(header.startswith("Transfer-Encoding") for header in headers):
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Site:
    """A web site. Set ``routes[path] = (content type, body)``. Paths below ``/page/`` are pages by default.

    ``raw[path]`` has the bytes of whole responses, each with what the connection does next: ``keep``, ``close`` or
    ``reset``. The last one is sent again and again.
    """

    def __init__(self) -> None:
        self.routes: dict[str, tuple[str | None, bytes]] = {}
        self.status: dict[str, int] = {}
        self.raw: dict[str, list[tuple[bytes, str]]] = {}
        self.seen: list[str] = []
        self.loop = asyncio.new_event_loop()
        serving = self.loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=1024)
        self.port = self.loop.run_until_complete(serving).sockets[0].getsockname()[1]
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def response(self, path: str) -> tuple[bytes, str]:
        """Return the response to a request, and what the connection does next."""
        self.seen.append(path)
        if left := self.raw.get(path):
            return left.pop(0) if len(left) > 1 else left[0]
        default = ("text/html; charset=utf-8", page(path.removeprefix("/page/")).encode())
        type_, body = self.routes.get(path, default)
        return answer(body, status=self.status.get(path, 200), type_=type_), "keep"

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    def pages(self, count: int) -> list[str]:
        """Return the URLs of a number of distinct pages."""
        return [self.url(f"/page/{n}") for n in range(count)]

    def reset(self) -> None:
        """Remove the routes and records of earlier tests."""
        for records in (self.routes, self.status, self.raw, self.seen):
            records.clear()


class _Connection(asyncio.Protocol):
    """One connection to a site, kept alive until a response ends it."""

    def __init__(self, site: Site) -> None:
        self.site, self.input = site, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.input += data
        while b"\r\n\r\n" in self.input:
            head, _, self.input = self.input.partition(b"\r\n\r\n")
            whole, then = self.site.response(head.split(b" ", 2)[1].decode())
            self.transport.write(whole)
            if then == "reset":
                linger = struct.pack("ii", 1, 0)  # SO_LINGER of zero seconds makes close() send RST
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.transport.abort()
            elif then == "close":
                self.transport.close()


class FakeEngine(testing.FakeEngine):
    """Labels each block main that contains ``MAIN``, unless a test changes its behaviour.

    ``act(engine, pages)`` is called first; what it returns, unless None, is the answer. Everything that happens to any
    engine of a test is on the ``log`` that they share.
    """

    def __init__(self, log: EngineLog) -> None:
        super().__init__(main=lambda text: 0.9 if "MAIN" in text else 0.1)
        self.log = log
        log.engines.append(self)

    def label(self, pages: Sequence[Any]) -> list[Labels | EngineError]:
        self.log.threads.add(threading.current_thread())
        self.log.batches.append([page.url for page in pages])
        answer = self.log.act(self, pages) if self.log.act is not None else None
        return answer if answer is not None else super().label(pages)


@dataclass
class EngineLog:
    """What the engines of a test did, and what they should do."""

    act: Callable[[FakeEngine, Sequence[Any]], Any] | None = None
    engines: list[FakeEngine] = field(default_factory=list)
    threads: set[threading.Thread] = field(default_factory=set)
    batches: list[list[str]] = field(default_factory=list)
    free: threading.Event = field(default_factory=threading.Event)
    """Set at the end of a test; an engine that hangs waits for it."""

    def hang(self) -> None:
        """Do not answer before the end of the test."""
        self.pause(PATIENCE)

    def pause(self, seconds: float) -> None:
        """Wait a little."""
        self.free.wait(seconds)


class Reactor:
    """The asyncio reactor of the test process, in a thread of its own."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop
        started = threading.Event()

        def run() -> None:
            install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
            from twisted.internet import reactor

            self.loop = asyncio.get_event_loop()
            self.thread = threading.current_thread()
            reactor.callWhenRunning(started.set)
            reactor.run(installSignalHandlers=False)

        threading.Thread(target=run, name="reactor", daemon=True).start()
        assert started.wait(PATIENCE)

    def stop(self) -> None:
        """Stop the reactor. A process can only start it once."""
        from twisted.internet import reactor

        reactor.callFromThread(reactor.stop)


@dataclass
class Crawled:
    """The result of a crawl."""

    items: list[Any]
    stats: dict[str, Any]
    crawler: Crawler

    def stat(self, name: str) -> Any:
        """Return one of the plugin's stats, or 0 if it was never set."""
        return self.stats.get(f"dripper/{name}", 0)


class Crawls:
    """Runs spiders in the test process."""

    def __init__(self, reactor: Reactor) -> None:
        self.reactor = reactor

    def stat(self, name: str) -> Any:
        """Return one of the plugin's stats in the crawl that is running, or 0 if it was never set."""
        return self.running().stats.get_value(f"dripper/{name}", 0)

    def __call__(self, spider: type[Spider], settings: dict[str, Any] | None = None) -> Crawled:
        """Run one spider to its end."""
        return self.together((spider, settings or {}))[0]

    def together(self, *jobs: tuple[type[Spider], dict[str, Any]]) -> list[Crawled]:
        """Run spiders at the same time."""

        async def one(spider: type[Spider], settings: dict[str, Any]) -> Crawled:
            runner = AsyncCrawlerRunner({**QUIET, **settings})
            crawler = runner.create_crawler(spider)
            self.running = ref(crawler)
            items: list[Any] = []
            keep = lambda item: items.append(item)  # noqa: E731 (the signal holds it weakly)
            crawler.signals.connect(keep, signals.item_scraped)
            await runner.crawl(crawler)
            return Crawled(items, dict(crawler.stats.get_stats()), crawler)

        async def every() -> list[Crawled]:
            return await asyncio.gather(*(one(*job) for job in jobs))

        return asyncio.run_coroutine_threadsafe(every(), self.reactor.loop).result(PATIENCE)


def spider(
    urls: Sequence[str | Request], parse: Callable[..., Any] | None = None, meta: dict[str, Any] | None = None
) -> type[Spider]:
    """Return a spider that downloads pages and, by default, yields one dict item for each. ``meta`` is for all URLs."""

    def default(self: Spider, response: Any) -> Iterator[Any]:
        yield {"url": response.url}

    async def start(self: Spider) -> Any:
        for url in urls:
            yield url if isinstance(url, Request) else Request(url, meta=dict(meta or {}), dont_filter=True)

    def other(self: Spider, response: Any) -> None:
        """Yield nothing for what a callback follows."""

    return type("TestSpider", (Spider,), {"name": "test", "start": start, "parse": parse or default, "other": other})


def parse_with(*entries: Any) -> Callable[..., Any]:
    """Return a callback that yields items, and requests for paths."""

    def parse(self: Spider, response: Any) -> Any:
        for entry in entries:
            is_path = isinstance(entry, str) and entry.startswith("/")
            yield response.follow(entry, self.other) if is_path else entry

    return parse


def eventually(what: str, condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, and fail the test if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.01)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the messages of warnings and errors."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
