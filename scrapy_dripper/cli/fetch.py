"""Fetch a page that was named on the command line, without reaching other networks.

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
from importlib.metadata import version
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from w3lib.http import basic_auth_header
from w3lib.url import safe_url_string

SECONDS = 60.0
"""Default of ``--timeout``."""
PIECE = 65_536
"""Maximum number of bytes to read at once."""
_HOLD_IPV4 = tuple(map(ip_network, ("::/96", "::ffff:0:0/96", "64:ff9b::/96")))
"""Networks of IPv6 whose addresses end in one of IPv4, which is where packets go."""
_PUBLIC = ip_network("2000::/3")
"""The part of IPv6 that holds all other addresses of the public internet."""


class Fetched(NamedTuple):
    """The answer of a server."""

    body: bytes
    url: str
    """The URL after redirects."""
    charset: str | None


class RefusedError(ValueError):
    """A redirect leads where this command does not go. The message says why."""


def fetch(url: str, limit: int, seconds: float = SECONDS) -> Fetched:
    """Return the answer for an ``http`` or ``https`` URL, with at most ``limit + 1`` bytes of its body.

    ``seconds`` is for everything: names, connections, redirects and the body. Redirects may only lead to ``http`` and
    ``https``, and to a private address only on the host of the URL itself. A user and a password in the URL are only
    sent to its host. Raise OSError (TimeoutError, URLError), also for an answer that is not HTTP, or ValueError
    (:exc:`RefusedError`).
    """
    try:
        return within(seconds, lambda connect: _fetch(url, limit, connect))
    except TimeoutError:
        raise TimeoutError(f"no complete answer within {seconds:g} seconds") from None
    except http.client.HTTPException as error:
        raise ConnectionError(f"no valid answer ({type(error).__name__}: {error})") from None


def _fetch(url: str, limit: int, connect: Connect) -> Fetched:
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
    trusted = {parts.hostname or ""}

    def checked(address: tuple[str, int]) -> socket.socket:
        host, port = address[0].lower(), address[1]
        if (host, port) in ways or (host, None) in ways:
            return connect(address)
        if host not in trusted:  # go where the check was, because a second look-up can have another answer
            return _first(connect, _public(host), port)
        connected = connect(address)
        if _is_public(connected.getpeername()[0]):
            trusted.discard(host)  # its name must not lead to a private address later
        return connected

    opener = urllib.request.OpenerDirector()
    for handler in (
        proxies,
        _Redirects(trusted, (request.type, request.host), secret),
        *handlers(checked),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    with opener.open(request) as response:
        body = bytearray()
        while len(body) <= limit and (piece := response.read(min(PIECE, limit + 1 - len(body)))):
            body += piece
        return Fetched(bytes(body), response.url, response.headers.get_content_charset())


def _address(proxy: str) -> tuple[str, int | None]:
    parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    return parts.hostname or "", parts.port


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to other web pages."""

    def __init__(self, trusted: set[str], origin: tuple[str, str], secret: str | None) -> None:
        self.trusted, self.origin, self.secret = trusted, origin, secret

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        fp.close()  # or all of its body is read
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        assert new is not None  # it raises HTTPError instead
        if new.type not in ("http", "https"):
            raise RefusedError(f"the page redirects to {new.type}://, and only http and https are followed")
        if (host := urlsplit(f"//{new.host}").hostname or "") not in self.trusted:
            with suppress(socket.gaierror):  # maybe a proxy knows the name
                _public(host)  # not only where it connects, because a proxy would connect for it
        new.remove_header("Proxy-authorization")  # the next one may need no proxy
        if self.secret and (new.type, new.host) == self.origin:
            new.add_unredirected_header("Authorization", self.secret)
        return new


def _public(host: str) -> list[str]:
    """Return the addresses of a host. Raise :exc:`RefusedError` if one of them is not on the public internet."""
    addresses = [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    if not all(map(_is_public, addresses)):
        raise RefusedError(f"the page redirects to {host}, a private address; name that URL itself if you mean it")
    return addresses


def _is_public(address: str) -> bool:
    known: IPv4Address | IPv6Address | None = ip_address(address.partition("%")[0])
    if isinstance(known, IPv6Address):
        if any(known in network for network in _HOLD_IPV4):
            known = IPv4Address(int(known) & 0xFFFFFFFF)
        elif known.sixtofour is not None:
            known = known.sixtofour
        elif known not in _PUBLIC:
            return False
    assert known is not None
    return known.is_global and not known.is_multicast


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
