"""A web site whose faults are in its addresses.

``python -m tests.faults.fault_site`` prints its port and serves until its input ends.
``/KIND/N`` is page number N as KIND has it; what the kinds do is in :data:`KINDS`.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

Faults = Mapping[str, Sequence[int]]
"""Which pages have which fault: ``{kind: (period, rest)}`` is every page whose number leaves that rest."""


def kind_of(number: int, faults: Faults) -> str | None:
    """Return the fault of a page, or None if it has none."""
    return next((kind for kind, (period, rest) in faults.items() if number % period == rest), None)


def pages_of(kind: str, faults: Faults, pages: range) -> list[int]:
    """Return the pages that have a fault."""
    return [number for number in pages if kind_of(number, faults) == kind]


def page(number: int) -> bytes:
    """Return an HTML page with main content of its own."""
    return (
        f"<!DOCTYPE html><html><head><title>Page {number}</title></head><body><nav><a href='/'>Menu</a></nav>"
        f"<article><h1>Page {number}</h1><p>MAIN text of page {number}, which says nothing in particular, at some "
        f"length and in whole sentences, as articles do.</p></article><footer><p>Contact us</p></footer></body></html>"
    ).encode()


def listing(first: int, count: int = 50) -> bytes:
    """Return a page with links to a number of pages."""
    links = "".join(f"<a href='/p/{number}'>Page {number}</a> " for number in range(first, first + count))
    return f"<html><body><p>{links}</p></body></html>".encode()


def answer(
    body: bytes, *headers: str, status: str = "200 OK", length: int | None = None, type_: str = "text/html"
) -> bytes:
    """Return an HTTP response; ``length`` is its Content-Length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {type_}", *headers]
    if not any(header.startswith("Transfer-Encoding") for header in headers):
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode() + body


visits: Counter[str] = Counter()


class Connection(asyncio.Protocol):
    """One connection, kept alive until a fault ends it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.input = transport, b""

    def data_received(self, data: bytes) -> None:
        self.input += data
        while b"\r\n\r\n" in self.input:
            head, _, self.input = self.input.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            kind, _, number = path.strip("/").partition("/")
            visits[path] += 1
            KINDS.get(kind, good)(self, int(number or 0))

    def last(self, data: bytes) -> None:
        """Send this and close the connection."""
        self.transport.write(data)
        self.transport.close()

    def reset(self, data: bytes = b"") -> None:
        """Send this and reset the connection."""
        self.transport.write(data)
        linger = struct.pack("ii", 1, 0)  # SO_LINGER of zero seconds makes close() send RST
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.transport.abort()


def good(connection: Connection, number: int) -> None:
    """The page without a fault."""
    connection.transport.write(answer(page(number)))


def reset(connection: Connection, number: int) -> None:
    """A reset before the first byte."""
    connection.reset()


def reset_half(connection: Connection, number: int) -> None:
    """A reset within the body."""
    body = page(number)
    connection.reset(answer(body[: len(body) // 2], length=len(body)))


def half(connection: Connection, number: int) -> None:
    """Half of the body that Content-Length promises."""
    body = page(number)
    connection.last(answer(body[: len(body) // 2], length=len(body)))


def chunk(connection: Connection, number: int) -> None:
    """A chunked body that ends within its second chunk."""
    body = page(number)
    first, second = body[:200], body[200:]
    chunks = b"%x\r\n%s\r\n%x\r\n%s" % (len(first), first, len(second), second[:50])
    connection.last(answer(chunks, "Transfer-Encoding: chunked"))


def garbage(connection: Connection, number: int) -> None:
    """A chunked body whose chunk sizes are not numbers."""
    connection.last(answer(b"zzz\r\n" + page(number), "Transfer-Encoding: chunked"))


def gzip_half(connection: Connection, number: int) -> None:
    """A compressed body that is cut off, with a Content-Length that fits."""
    body = gzip.compress(page(number) * 3)
    connection.transport.write(answer(body[: len(body) // 2], "Content-Encoding: gzip"))


def gzip_lie(connection: Connection, number: int) -> None:
    """A body that is not compressed, with a header that says it is."""
    connection.transport.write(answer(page(number), "Content-Encoding: gzip"))


def header(connection: Connection, number: int) -> None:
    """A header of 100 kB."""
    connection.transport.write(answer(page(number), f"X-Long: {'x' * 100_000}"))


def header_long(connection: Connection, number: int) -> None:
    """A content type of 10 kB, which is allowed."""
    connection.transport.write(answer(page(number), type_=f"text/html; charset={'x' * 10_000}"))


def silent(connection: Connection, number: int) -> None:
    """No answer as long as the connection lives."""


def moved(connection: Connection, number: int) -> None:
    """A redirect to the good page."""
    connection.transport.write(answer(b"", f"Location: /p/{number}", status="301 Moved Permanently"))


def loop(connection: Connection, number: int) -> None:
    """A redirect to itself."""
    connection.transport.write(answer(b"", f"Location: /loop/{number}", status="302 Found"))


def flaky(connection: Connection, number: int) -> None:
    """An overload at first, later the good page."""
    first = visits[f"/flaky/{number}"] == 1
    connection.transport.write(answer(page(number), status="503 Service Unavailable" if first else "200 OK"))


def gone(connection: Connection, number: int) -> None:
    """An error page."""
    connection.transport.write(answer(page(number), status="404 Not Found"))


def empty(connection: Connection, number: int) -> None:
    """An empty body."""
    connection.transport.write(answer(b""))


def pdf(connection: Connection, number: int) -> None:
    """A PDF that claims to be a page."""
    connection.transport.write(answer(b"%PDF-1.7\n" + page(number)))


def big(connection: Connection, number: int) -> None:
    """A body over the ``DOWNLOAD_MAXSIZE`` of the crawls."""
    connection.transport.write(answer(page(number) + b" " * 300_000))


def list_(connection: Connection, number: int) -> None:
    """Links to fifty pages."""
    connection.transport.write(answer(listing(number)))


KINDS: dict[str, Callable[[Connection, int], None]] = {
    kind.__name__.strip("_"): kind
    for kind in (
        *(good, reset, reset_half, half, chunk, garbage, gzip_half, gzip_lie, header, header_long, silent),
        *(moved, loop, flaky, gone, empty, pdf, big, list_),
    )
}


async def serve() -> None:
    """Serve until standard input ends, with the test that started this process."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
