"""Which URLs a command may request, and the download of a page that its user names, without reaching other networks.

A command may request the URL that its user names and, of those that servers name, the harmless ones. A
download has a deadline for everything: looking up names, connections, redirects, and each byte of the answer.
"""

from __future__ import annotations

import http.client
import re
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from http.cookiejar import CookieJar
from importlib.metadata import version
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from w3lib.http import basic_auth_header
from w3lib.url import safe_url_string

SCHEMES = ("http", "https")
PUBLIC = "public"
_HOLD_IPV4 = tuple(map(ip_network, ("::/96", "::ffff:0:0/96", "64:ff9b::/96")))
"""Networks of IPv6 whose addresses end in one of IPv4, which is where packets go."""
_PUBLIC = ip_network("2000::/3")
"""The part of IPv6 that holds all other addresses of the public internet."""
_HOST = re.compile(r"[a-z0-9_.-]+|\[[0-9a-f:.]+(?:%[a-z0-9]+)?\]", re.I)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.I)


class RefusedError(ValueError):
    """A server names a URL that no command requests. The message says why."""


def checked_host(url: str) -> str:
    """Return the host of a URL in lower case. Raise :exc:`RefusedError` unless every program finds the same one."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise RefusedError(f"no valid URL ({error})") from None
    if parts.scheme not in SCHEMES:
        raise RefusedError("leads to an address that begins with neither http:// nor https://")
    place = parts.netloc.rpartition("@")[2]
    if not host or not _HOST.fullmatch(re.sub(r":[0-9]*\Z", "", place)) or "\\" in parts.netloc:
        raise RefusedError(f"leads to {parts.netloc!r}, which is not the name of a host")
    return host.removesuffix(".")


def network(address: str) -> str:
    """Return the network of an IP address: ``public``, or one that the internet does not reach."""
    known: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(known, IPv6Address):
        if known.is_loopback or known.is_unspecified:
            return "loopback"
        if any(known in hold for hold in _HOLD_IPV4):
            known = IPv4Address(int(known) & 0xFFFFFFFF)
        elif known.sixtofour is not None:
            known = known.sixtofour
        elif known not in _PUBLIC:
            return "link-local" if known.is_link_local else "private"
    if known.is_loopback or known.is_unspecified:  # what is sent to 0.0.0.0 arrives at this machine
        return "loopback"
    if known.is_link_local:
        return "link-local"
    return PUBLIC if known.is_global and not known.is_multicast else "private"


class Egress:
    """Decides about each URL that a server names, for the requests that begin with the URLs of a user.

    They may go to the public internet. If the URL of the user is in another network, such as that of this machine, they
    may stay there; redirects that have left it do not lead back. If there are several URLs, each is a beginning of its
    own: of what begins on its host and port.
    """

    def __init__(self, *urls: str) -> None:
        """Raise :exc:`RefusedError` if a URL of the user is not one of the web."""
        self._known: dict[str, frozenset[str]] = {}
        """The networks in which each host has been found."""
        self._urls = {*urls}
        self._starts = {_origin(url): checked_host(url) for url in urls}

    def begin(self, url: str, instead: str) -> None:
        """Let a URL take the place of one of the user's. Raise :exc:`RefusedError` if it is not one of the web."""
        self._urls = self._urls - {instead} | {url}
        left = {origin: host for origin, host in self._starts.items() if origin != _origin(instead)}
        self._starts = left | {_origin(url): checked_host(url)}

    def check(self, url: str, via: Sequence[str] = ()) -> None:
        """Raise :exc:`RefusedError` if this URL must not be requested. ``via`` has those that redirected to it.

        A name that is not found here passes, because a proxy may know it. Where a connection is made, :meth:`reachable`
        has the last word, because a second look-up may have another answer.
        """
        host = checked_host(url)
        if url in self._urls and not via:
            return
        if "@" in urlsplit(url).netloc:
            raise RefusedError(f"leads to {host} with a user or a password, which only you can name")
        is_start = _origin(url) in self._starts
        if is_start and not via and not self._known.get(host):
            return
        networks, allowed = self._networks(host), self._allowed(self._starts.get(_origin([*via, url][0])), via)
        # Of a host with several addresses, those in other networks are left out where the connection is made. But a
        # proxy would choose itself.
        if networks - allowed and not (is_start and networks & allowed):
            raise _private(host)

    def reachable(self, host: str, addresses: Iterable[str]) -> list[str]:
        """Return the addresses of a host to which a connection may be made.

        Raise :exc:`RefusedError` if there are addresses, but none of these. Those of the user's host say in which
        network the command may stay.
        """
        found = {address: network(address) for address in addresses}
        self._known[host] = self._known.get(host, frozenset()) | {*found.values()}
        allowed = self._allowed(host if host in self._starts.values() else None)
        left = [address for address, where in found.items() if where in allowed]
        if found and not left:
            raise _private(host)
        return left

    def _allowed(self, start: str | None, via: Sequence[str] = ()) -> set[str]:
        """Return the networks for what began on a host of the user, or on an unknown one."""
        if start is None and len(self._starts) > 1:
            return {PUBLIC}
        home = self._networks(start or next(iter(self._starts.values())))
        left = any(PUBLIC in self._known.get(checked_host(url), ()) for url in via)
        return {PUBLIC} if left or PUBLIC in home else {PUBLIC, *home}

    def _networks(self, host: str) -> frozenset[str]:
        """Return the networks of a host; none if it is not found."""
        if host not in self._known:
            try:
                local = host == "localhost" or host.endswith(".localhost")  # for browsers, whatever a resolver says
                self._known[host] = frozenset(["loopback"] if local else map(network, lookup(host)))
            except OSError:
                if host not in self._starts.values():  # it may be found the next time
                    return frozenset()
                self._known[host] = frozenset()
        return self._known[host]


def _origin(url: str) -> tuple[str, int | None]:
    """Return the host of a URL, and the port if it is an unusual one."""
    parts = urlsplit(url)
    return checked_host(url), None if parts.port in (80, 443) else parts.port


def lookup(host: str) -> list[str]:
    """Return the addresses of a host, in any notation. Raise OSError if it has none."""
    if ":" in host:
        return [host]
    if _NUMBER.fullmatch(host.rpartition(".")[2]):  # for browsers and resolvers, this is an address of IPv4
        try:
            return [socket.inet_ntoa(socket.inet_aton(host))]
        except OSError:
            raise RefusedError(f"leads to {host}, which is not an address") from None
    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def _private(host: str) -> RefusedError:
    return RefusedError(f"leads to {host}, a private address; name that URL itself if you mean it")


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
