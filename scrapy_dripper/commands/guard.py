"""The guard of the crawls of ``scrapy dripper``: no server leads them to a file, or into a private network."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.settings import BaseSettings, get_settings_priority
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.reactor import is_reactor_installed

from scrapy_dripper.egress import SCHEMES, Egress, RefusedError, checked_host

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
