"""The browser of ``scrapy dripper --browser``, which reaches no network that the crawl does not reach."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from scrapy_dripper.crawl.dripper import BROWSER
from scrapy_dripper.egress import SCHEMES, Egress, RefusedError, lookup

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
