"""Download a page that a user names, without reaching other networks.

There is a deadline for everything: looking up names, connections, redirects, and each byte of the answer.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from http.cookiejar import CookieJar
from importlib.metadata import version
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from w3lib.http import basic_auth_header
from w3lib.url import safe_url_string

from scrapy_dripper.egress import Egress, lookup

SECONDS = 60.0
"""Default of the deadline."""
PIECE = 65_536
"""Maximum number of bytes to read at once."""


class Fetched(NamedTuple):
    """The answer of a server."""

    body: bytes
    url: str
    """The URL after redirects."""
    charset: str | None


def download(url: str, limit: int, seconds: float = SECONDS) -> Fetched:
    """Return the answer for an ``http`` or ``https`` URL, with at most ``limit + 1`` bytes of its body.

    ``seconds`` is for everything: names, connections, redirects and the body. Redirects only lead where
    :class:`~scrapy_dripper.egress.Egress` allows it, and keep the cookies of this exchange. A user and a password in
    the URL are only sent to its host. Raise OSError (TimeoutError, URLError), also for an answer that is not HTTP, or
    ValueError (:exc:`~scrapy_dripper.egress.RefusedError`).
    """
    try:
        return within(seconds, lambda connect: _download(url, limit, connect))
    except TimeoutError:
        raise TimeoutError(f"no complete answer within {seconds:g} seconds") from None
    except http.client.HTTPException as error:
        raise ConnectionError(f"no valid answer ({type(error).__name__}: {error})") from None


def _download(url: str, limit: int, connect: Connect) -> Fetched:
    parts = urlsplit(safe_url_string(url))
    request = urllib.request.Request(
        parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl(),
        headers={
            "User-Agent": f"scrapy-dripper/{version('scrapy-dripper')}",
            "Accept": "text/html,application/xhtml+xml;q=0.9",
        },
    )
    secret = None
    if parts.username is not None:
        secret = basic_auth_header(unquote(parts.username), unquote(parts.password or "")).decode()
        request.add_unredirected_header("Authorization", secret)

    proxies = urllib.request.ProxyHandler()
    known: dict[str, str] = proxies.proxies  # type: ignore[attr-defined]
    ways = {_address(known[scheme]) for scheme in ("http", "https") if scheme in known}
    egress = Egress(request.full_url)

    def checked(address: tuple[str, int]) -> socket.socket:
        host, port = address[0].lower().removesuffix("."), address[1]
        if (host, port) in ways or (host, None) in ways:
            return connect(address)
        # It goes where the check was, because a second look-up can have another answer.
        return _first(connect, egress.reachable(host, lookup(host)), port)

    opener = urllib.request.OpenerDirector()
    for handler in (
        proxies,
        _Redirects(egress, request, secret),
        urllib.request.HTTPCookieProcessor(CookieJar()),
        *handlers(checked),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    with opener.open(request) as response:
        body = bytearray()
        while len(body) <= limit and (piece := response.read(min(PIECE, limit + 1 - len(body)))):
            body += piece
        if len(body) <= limit and response.length:
            raise ConnectionError(f"the answer is cut off: {response.length:,} bytes are missing")
        return Fetched(bytes(body), response.url, response.headers.get_content_charset())


def _address(proxy: str) -> tuple[str, int | None]:
    parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    return parts.hostname or "", parts.port


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to other web pages."""

    def __init__(self, egress: Egress, first: urllib.request.Request, secret: str | None) -> None:
        self.egress, self.via = egress, [first.full_url]
        self.origin, self.secret = (first.type, first.host), secret

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        fp.close()  # or all of its body is read
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        assert new is not None  # it raises HTTPError instead
        self.egress.check(new.full_url, self.via)  # not only where it connects, because a proxy would connect for it
        self.via.append(new.full_url)
        new.remove_header("Proxy-authorization")  # the next one may need no proxy
        if self.secret and (new.type, new.host) == self.origin:
            new.add_unredirected_header("Authorization", self.secret)
        return new


def _first(connect: Connect, addresses: list[str], port: int) -> socket.socket:
    """Return a connection to the first address that accepts one."""
    for address in addresses[:-1]:
        with suppress(OSError):
            return connect((address, port))
    return connect((addresses[-1], port))


T = TypeVar("T")
Connect = Callable[[tuple[str, int]], socket.socket]


def within(seconds: float, work: Callable[[Connect], T]) -> T:
    """Return what ``work`` returns, or raise what it raises. Raise TimeoutError if that takes longer.

    ``work`` runs in a thread. It gets a function that connects to a host and a port; at the deadline these connections
    are shut down, which ends the thread.
    """
    # The timeout of a socket starts again with each byte, and looking up a name has none.
    end = time.monotonic() + seconds
    twins: list[socket.socket] = []
    done: Future[T] = Future()

    def connect(address: tuple[str, int]) -> socket.socket:
        if (left := end - time.monotonic()) <= 0:
            raise TimeoutError
        connected = socket.create_connection(address, left)
        twins.append(connected.dup())  # TLS takes the socket itself over
        return connected

    def run() -> None:
        try:
            done.set_result(work(connect))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="scrapy-dripper-http", daemon=True).start()
    try:
        return done.result(seconds)
    except Exception:
        if not done.done() or time.monotonic() >= end:
            raise TimeoutError from None
        raise
    finally:
        for twin in twins:
            with suppress(OSError):
                twin.shutdown(socket.SHUT_RDWR)
            twin.close()


def handlers(connect: Connect) -> tuple[urllib.request.BaseHandler, urllib.request.BaseHandler]:
    """Return the handlers for ``http`` and ``https`` of an opener that connects by a function."""

    def connection(kind: type[http.client.HTTPConnection], host: str, **named: Any) -> http.client.HTTPConnection:
        made = kind(host, **named)
        made._create_connection = lambda address, *_: connect(address)  # type: ignore[attr-defined]
        return made

    class Http(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(partial(connection, http.client.HTTPConnection), req)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(partial(connection, http.client.HTTPSConnection), req)

    return Http(), Https()
