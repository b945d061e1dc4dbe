"""Fetch a page that was named on the command line, within a deadline and without reaching other networks."""

from __future__ import annotations

import http.client
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from w3lib.http import basic_auth_header
from w3lib.url import safe_url_string

SECONDS = 60.0
"""Default of ``--timeout``."""
PIECE = 65_536
"""Maximum number of bytes to read at once."""


class Fetched(NamedTuple):
    """The answer of a server."""

    body: bytes
    url: str
    """The URL after redirects."""
    charset: str | None


class RefusedError(OSError):
    """A redirect leads where this command does not go. The message says why."""


def fetch(url: str, limit: int, seconds: float = SECONDS) -> Fetched:
    """Return the answer for an ``http`` or ``https`` URL, with at most ``limit + 1`` bytes of its body.

    ``seconds`` is for everything: names, connections, redirects and the body. Redirects may only lead to ``http`` and
    ``https``, and to a private address only on the host of the URL itself. A user and a password in the URL are only
    sent to its host. Raise OSError (TimeoutError, :exc:`RefusedError`, URLError), ValueError or HTTPException.
    """
    sockets: list[socket.socket] = []
    found: list[Fetched | Exception] = []

    def work() -> None:
        try:
            found.append(_fetch(url, limit, seconds, sockets))
        except Exception as error:
            found.append(error)

    # The timeout of a socket starts again with each byte, and looking up a name has none. So a thread does both.
    worker = threading.Thread(target=work, name="fetch", daemon=True)
    worker.start()
    worker.join(seconds)
    if not found:
        for connected in sockets:
            connected.close()
        raise TimeoutError(f"no complete answer within {seconds:g} seconds; --timeout gives it more")
    (answer,) = found
    if isinstance(answer, urllib.error.URLError) and isinstance(answer.reason, RefusedError):
        raise answer.reason
    if isinstance(answer, Exception):
        raise answer
    return answer


def _fetch(url: str, limit: int, seconds: float, sockets: list[socket.socket]) -> Fetched:
    parts = urlsplit(safe_url_string(url))
    typed = parts.hostname or ""
    request = urllib.request.Request(
        parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl(),
        headers={
            "User-Agent": f"scrapy-dripper/{version('scrapy-dripper')}",
            "Accept": "text/html,application/xhtml+xml;q=0.9",
        },
    )
    if parts.username:
        secret = basic_auth_header(parts.username, parts.password or "").decode()
        request.add_unredirected_header("Authorization", secret)

    proxies = urllib.request.ProxyHandler()
    free = {typed, *(urlsplit(proxy).hostname or "" for proxy in proxies.proxies.values())}  # type: ignore[attr-defined]

    def connect(address: tuple[str, int], *options: Any, **named: Any) -> socket.socket:
        host, port = address
        if host not in free:
            host = _public(host, port)  # connect to the address that was checked
        connected = socket.create_connection((host, port), *options, **named)
        sockets.append(connected)
        return connected

    opener = urllib.request.OpenerDirector()
    for handler in (
        proxies,
        _Redirects(free),
        _http(connect),
        _https(connect),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    with opener.open(request, timeout=seconds) as response:
        body = bytearray()
        while len(body) <= limit and (piece := response.read(min(PIECE, limit + 1 - len(body)))):
            body += piece
        return Fetched(bytes(body), response.url, response.headers.get_content_charset())


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to other web pages."""

    def __init__(self, free: set[str]) -> None:
        self.free = free

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        parts = urlsplit(newurl)
        if parts.scheme not in ("http", "https"):
            raise RefusedError(f"the page redirects to {parts.scheme}://, and only http and https are followed")
        if (host := parts.hostname or "") not in self.free:
            _public(host, parts.port or 0)  # also for a proxy, which would connect to it
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _public(host: str, port: int) -> str:
    """Return an address of a host. Raise :exc:`RefusedError` if one of them is not on the public internet."""
    addresses = [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for address in addresses:
        known = ip_address(address.partition("%")[0])
        mapped = getattr(known, "ipv4_mapped", None) or known
        if not mapped.is_global or mapped.is_multicast:
            raise RefusedError(f"the page redirects to {host}, a private address; name that URL itself if you mean it")
    return addresses[0]


Connect = Callable[..., socket.socket]


def _http(connect: Connect) -> urllib.request.HTTPHandler:
    class Handler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(partial(_connection, http.client.HTTPConnection, connect), req)

    return Handler()


def _https(connect: Connect) -> urllib.request.HTTPSHandler:
    class Handler(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(partial(_connection, http.client.HTTPSConnection, connect), req)

    return Handler()


def _connection(kind: type[http.client.HTTPConnection], connect: Connect, host: str, **named: Any) -> Any:
    connection = kind(host, **named)
    connection._create_connection = connect  # type: ignore[attr-defined]  # where http.client keeps it
    return connection
