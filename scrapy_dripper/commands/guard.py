"""The guard of the crawls of ``scrapy dripper``: no server leads them, or a browser, to a file or a private network.

The browser of ``--browser`` reaches no network that the crawl does not reach, because its only way out is a proxy here.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware
from scrapy.exceptions import IgnoreRequest, UsageError
from scrapy.http import Response
from scrapy.settings import BaseSettings, get_settings_priority
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.reactor import is_reactor_installed

from scrapy_dripper.crawl import BROWSER
from scrapy_dripper.egress import SCHEMES, Egress, RefusedError, checked_host, lookup

BEFORE_ALL = 1
"""The place of the guard among the downloader middlewares. The one for robots.txt asks the host of each request."""
LAST = get_settings_priority("cmdline") + 1
"""The priority of settings that stay when a crawl takes those of the command line over."""
_REFRESH = "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware"


class RefusedRequest(IgnoreRequest):
    """A request that is not made. The message says why."""


class Guard:
    """An add-on, which sees the settings that others have changed, and the downloader middleware that it installs.

    ``rule`` may refuse more than the egress: it gets the spider and each request, and raises IgnoreRequest.
    """

    def __init__(self, crawler: Crawler, egress: Egress, rule: Callable[[Any, Request], None] | None = None) -> None:
        self._crawler, self._egress, self._rule = crawler, egress, rule
        self._longest = 0
        """Largest number of characters of a URL; 0 for any."""
        self._asked: set[str] = set()
        """Hosts to which the crawl connects itself, and not by a proxy."""
        self._component = lambda: self  # settings name classes, or functions that return objects
        crawler.signals.connect(self._downloads, signals.request_reached_downloader)
        addons = crawler.settings.getdict("ADDONS")
        last = max([500, *filter(None, addons.values())]) + 1
        crawler.settings.set("ADDONS", {**addons, self._component: last}, LAST)

    def update_settings(self, settings: BaseSettings) -> None:
        """Leave no handler but those for the web, and let each request pass the guard."""
        own = settings.getdict("DOWNLOAD_HANDLERS")
        every = own | dict.fromkeys({*own, *settings.getdict("DOWNLOAD_HANDLERS_BASE")} - {*SCHEMES})
        settings.set("DOWNLOAD_HANDLERS", every, LAST)
        middlewares = {**settings.getdict("DOWNLOADER_MIDDLEWARES"), self._component: BEFORE_ALL}
        if _REFRESH not in middlewares:
            order = settings.getdict("DOWNLOADER_MIDDLEWARES_BASE").get(_REFRESH)
            middlewares |= {_REFRESH: None, Refresh: order}
        settings.set("DOWNLOADER_MIDDLEWARES", middlewares, LAST)
        self._longest = settings.getint("URLLENGTH_LIMIT")
        settings.set("URLLENGTH_LIMIT", 0, LAST)  # Scrapy drops longer ones without a word

    async def process_request(self, request: Request) -> None:
        """Raise :exc:`RefusedRequest`, with the reason, for a request that is refused."""
        via = request.meta.get("redirect_urls", ())
        if not via and 0 < self._longest < (length := len(request.url)):  # as in Scrapy, not for redirects
            raise RefusedRequest(f"a URL of {length:,} characters, over URLLENGTH_LIMIT = {self._longest:,}")
        await self._check(request.url, via)
        if self._rule is not None:
            self._rule(self._crawler.spider, request)

    async def process_response(self, request: Request, response: Response) -> Response:
        """Do the same for a response. Browsers follow redirects of their own."""
        if response.url != request.url:
            await self._check(response.url, [request.url])
        return response

    async def _check(self, url: str, via: Sequence[str]) -> None:
        try:
            if is_asyncio_available():
                await asyncio.to_thread(self._egress.check, url, via)
            else:
                self._egress.check(url, via)
        except RefusedError as error:
            raise RefusedRequest(str(error)) from None

    def _downloads(self, request: Request) -> None:
        if request.meta.get("proxy"):
            return
        self._asked.add(checked_host(request.url))
        if is_asyncio_available() and not isinstance((loop := asyncio.get_running_loop()).getaddrinfo, _Addresses):
            loop.getaddrinfo = _Addresses(loop.getaddrinfo, self._reachable)  # type: ignore[method-assign]
        if not is_reactor_installed():
            return
        from twisted.internet import reactor

        engine: Any = reactor
        if not isinstance(engine.nameResolver, _Resolver):
            engine.installNameResolver(_Resolver(engine.nameResolver, self._reachable))

    def _reachable(self, name: str, addresses: Sequence[str]) -> Sequence[str]:
        """Return the addresses of a host to which a connection may be made."""
        host = name.lower().removesuffix(".")
        # Others are those of a proxy, or of a database of the project. Of an international name, this is another form.
        if host not in self._asked and host.isascii():
            return addresses
        try:
            return self._egress.reachable(host, addresses)
        except RefusedError:
            return []


class Refresh(MetaRefreshMiddleware):
    """Follows the refresh of a page, but only once to the page itself: many pages load themselves again and again."""

    def process_response(self, request: Request, response: Response, *_: Any) -> Request | Response:
        """Return the request of the refresh, or the response if the refresh leads in a circle for the second time."""
        try:
            then: Request | Response = super().process_response(request, response)
        except ValueError:  # The refresh or the <base> is no URL, and browsers ignore it.
            return response
        seen = [*request.meta.get("redirect_urls", ()), request.url]
        return response if isinstance(then, Request) and seen.count(then.url) > 1 else then


class _Addresses:
    """Leaves out the addresses of a host to which the crawl may not connect.

    This is where handlers of asyncio look up each name, and :class:`_Resolver` is where those of Twisted do, before
    they connect. So a name that has another address now than when it was checked leads nowhere.
    """

    def __init__(self, find: Callable[..., Any], reachable: Callable[[str, Sequence[str]], Sequence[str]]) -> None:
        self._find, self._reachable = find, reachable

    async def __call__(self, host: Any, *options: Any, **named: Any) -> Any:
        found = await self._find(host, *options, **named)
        name = host.decode() if isinstance(host, bytes) else host
        allowed = self._reachable(name, [str(one[4][0]) for one in found]) if name else ()
        left = [one for one in found if not name or one[4][0] in allowed]
        if not left:
            raise OSError(errno.EHOSTUNREACH, f"no results for hostname lookup: {name}")
        return left


class _Resolver:
    """Does the same in Twisted, where addresses in place of names come here as well."""

    def __init__(self, resolver: Any, reachable: Callable[[str, Sequence[str]], Sequence[str]]) -> None:
        self._resolver, self._reachable = resolver, reachable

    def resolveHostName(self, receiver: Any, name: str, *options: Any, **named: Any) -> Any:  # noqa: N802
        """Look up the addresses of a host, as ``IHostnameResolver`` says."""
        receiver = _Receiver(receiver, partial(self._reachable, name))
        return self._resolver.resolveHostName(receiver, name, *options, **named)


class _Receiver:
    """Hands on the addresses that may be reached, when it has all of them."""

    def __init__(self, receiver: Any, reachable: Callable[[Sequence[str]], Sequence[str]]) -> None:
        self._receiver, self._reachable = receiver, reachable
        self._found: list[Any] = []
        self.resolutionBegan = receiver.resolutionBegan
        self.addressResolved = self._found.append

    def resolutionComplete(self) -> None:  # noqa: N802
        """Hand on what was found."""
        allowed = self._reachable([address.host for address in self._found])
        for address in self._found:
            if address.host in allowed:
                self._receiver.addressResolved(address)
        self._receiver.resolutionComplete()


HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
SECONDS = 10
"""How long to wait for the text of a page, for all that it loads, and for a connection."""
_HAS_TEXT = "() => document.body?.innerText.trim().length > 250"
UNREAD = ("image", "media", "font")
"""What a browser does not load, because nothing of it is extracted."""
PIECE = 1 << 16
_ADDRESS = {1: (4, socket.AF_INET), 4: (16, socket.AF_INET6)}
_DONE, _FAILED, _REFUSED = (bytes([5, code, 0, 1, *bytes(6)]) for code in (0, 1, 2))


def check_browser(settings: BaseSettings) -> None:
    """Raise :exc:`UsageError`, with what to install, unless the browser of the settings starts."""
    if find_spec("scrapy_playwright") is None:
        raise wrong("--browser needs scrapy-playwright: pip install 'scrapy-dripper[playwright]'")
    from playwright.sync_api import Error, sync_playwright

    if settings["PLAYWRIGHT_CDP_URL"] or settings["PLAYWRIGHT_CONNECT_URL"]:
        raise wrong("--browser starts its own browser, and cannot guard the one of PLAYWRIGHT_*_URL")
    kind = settings["PLAYWRIGHT_BROWSER_TYPE"] or "chromium"
    try:
        with sync_playwright() as playwright:
            getattr(playwright, kind).launch(**settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS")).close()
    except Error as error:
        raise wrong(
            f"--browser cannot start one ({error.message.splitlines()[0]}): playwright install {kind}, or name a "
            """Chromium of the system: -s 'PLAYWRIGHT_LAUNCH_OPTIONS={"executable_path": "/usr/bin/chromium"}'"""
        ) from None


def wrong(message: str) -> UsageError:
    """Return the error for a command line that makes no sense."""
    return UsageError(message, print_help=False)


def use_browser(settings: BaseSettings, egress: Egress) -> Gate:
    """Let a browser download the pages that are empty without one. Return its only way to the network."""
    gate = Gate(egress)
    launch = settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS")
    # Of this machine, too, and nothing beside the proxy. A proxy of the project decides itself where it connects.
    launch.setdefault("proxy", {"server": f"socks5://127.0.0.1:{gate.port}", "bypass": "<-loopback>"})
    if (settings["PLAYWRIGHT_BROWSER_TYPE"] or "chromium") == "chromium":
        launch["args"] = [*launch.get("args", ()), "--force-webrtc-ip-handling-policy=disable_non_proxied_udp"]
    values: dict[str, Any] = {
        "PLAYWRIGHT_LAUNCH_OPTIONS": launch,
        "PLAYWRIGHT_ABORT_REQUEST": settings["PLAYWRIGHT_ABORT_REQUEST"] or _is_unread,
        "DOWNLOAD_HANDLERS": {**settings.getdict("DOWNLOAD_HANDLERS"), **dict.fromkeys(SCHEMES, HANDLER)},
        "DRIPPER_RETRY_SHELLS": True,
    }
    for name, value in values.items():
        settings.set(name, value, "cmdline")
    return gate


def rendering() -> dict[str, Any]:
    """Return the meta of a request with which a browser waits for what its page loads."""
    from scrapy_playwright.page import PageMethod

    return {f"{BROWSER}_page_methods": [PageMethod(_settle)]}


def _is_unread(request: Any) -> bool:
    return request.resource_type in UNREAD


async def _settle(page: Any) -> None:
    from playwright.async_api import Error

    with suppress(Error):  # such as a page that stays empty, or never ends to load
        await page.wait_for_function(_HAS_TEXT, timeout=SECONDS * 1_000)
        await page.wait_for_load_state("networkidle", timeout=SECONDS * 1_000)


class Gate:
    """A SOCKS5 proxy (RFC 1928) for the browser, which connects where the egress allows it.

    The browser asks for names, redirects and scripts of pages as it likes; here is where each connection is made.
    """

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._socket = socket.create_server(("127.0.0.1", 0))  # connections wait there until it serves
        self.port = self._socket.getsockname()[1]
        self._server: asyncio.Server | None = None

    def open_with(self, crawler: Crawler) -> None:
        """Serve while the crawl runs. Its signals hold this object only by weak references."""
        crawler.signals.connect(self._open, signals.spider_opened)
        crawler.signals.connect(self._close, signals.engine_stopped)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, sock=self._socket)

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = _FAILED
            try:
                there = await asyncio.wait_for(self._connect(reader, writer), SECONDS)
                answer = _DONE
            except RefusedError:
                answer = _REFUSED
            finally:
                writer.write(answer)
            await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
        except (OSError, EOFError, ValueError, asyncio.TimeoutError):  # as in any proxy
            pass
        finally:
            writer.close()

    async def _connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection to where the client wants to go."""
        _, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(b"\5\0")
        _, _, _, kind = await reader.readexactly(4)
        if kind in _ADDRESS:
            size, family = _ADDRESS[kind]
            host = socket.inet_ntop(family, await reader.readexactly(size))
        else:
            (size,) = await reader.readexactly(1)
            host = (await reader.readexactly(size)).decode("ascii").lower().removesuffix(".")
        port = int.from_bytes(await reader.readexactly(2), "big")
        error: OSError = ConnectionError(host)
        for address in self._egress.reachable(host, await asyncio.to_thread(lookup, host)):
            try:
                return await asyncio.open_connection(address, port)
            except OSError as problem:  # noqa: PERF203
                error = problem
        raise error


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(PIECE):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
