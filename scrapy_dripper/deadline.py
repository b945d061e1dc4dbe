"""HTTP within a deadline for everything: looking up names, connections, redirects, and each byte of the answer."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

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
    found: list[T] = []
    failed: list[BaseException] = []

    def connect(address: tuple[str, int]) -> socket.socket:
        if (left := end - time.monotonic()) <= 0:
            raise TimeoutError
        connected = socket.create_connection(address, left)
        twins.append(connected.dup())  # TLS takes the socket itself over
        return connected

    def run() -> None:
        try:
            found.append(work(connect))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="scrapy-dripper-http", daemon=True)
    thread.start()
    try:
        thread.join(seconds)
        if found:
            return found[0]
        if not failed or time.monotonic() >= end:
            raise TimeoutError
        raise failed[0]
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
