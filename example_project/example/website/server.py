"""The server of the example's own website."""

from __future__ import annotations

import re
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from urllib.parse import unquote, urlsplit

from example.website import nasty
from example.website.answer import Answer
from example.website.pictures import picture

PAGES = Path(__file__).parent / "pages"
META_CHARSET = re.compile(r'<meta[^>]+charset="?([\w-]+)', re.IGNORECASE)
ROBOTS = "User-agent: *\nDisallow: /private/\n"


def stored_pages() -> dict[str, Path]:
    """Return the file of each stored page by its path on the site, such as ``x/index.html`` for ``/x/``."""
    names = {"/" + file.relative_to(PAGES).as_posix(): file for file in sorted(PAGES.rglob("*.html"))}
    return {name.removesuffix("index.html"): file for name, file in names.items()}


def read_page(file: Path) -> Answer:
    """Return a stored page in the encoding that it declares.

    Files are UTF-8 on disk. A file with ``<meta charset="Shift_JIS">`` is sent in Shift-JIS, without a charset in the
    header, as by static servers. Only UTF-8 pages have their charset in both places.
    """
    text = file.read_text(encoding="utf-8")
    declared = META_CHARSET.search(text)
    charset = declared[1].lower() if declared else "utf-8"
    content_type = "text/html; charset=utf-8" if charset == "utf-8" else "text/html"
    return Answer(text.encode(charset), content_type)


def answer(path: str) -> Answer:
    """Return the response for a path, which is a 404 for an unknown path."""
    path = unquote(urlsplit(path).path)
    pages = stored_pages()
    if path in pages:
        return read_page(pages[path])
    if path in nasty.PAGES:
        return nasty.PAGES[path]()
    if path.startswith("/pictures/") and path.endswith(".svg"):
        return Answer(picture(path).encode(), "image/svg+xml")
    if path == "/robots.txt":
        return Answer(ROBOTS.encode(), "text/plain")
    return Answer(b"<title>Not found</title><h1>Not found</h1>", "text/html; charset=utf-8", 404)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "Example", ""
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        reply = answer(self.path)
        self.send_response(reply.status)
        if reply.content_type is not None:
            self.send_header("Content-Type", reply.content_type)
        for name, value in reply.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    do_HEAD = do_GET  # noqa: N815 (the name that http.server looks up)

    def log_message(self, *_: object) -> None:
        """Log nothing, because the crawl has its own log."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Ignore clients that disconnect in the middle of a response."""


class Website:
    """The site on a free port of 127.0.0.1, from :meth:`start` to :meth:`stop` or within a ``with`` block.

    It runs in a daemon thread, so it ends with the process in any case.
    """

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> Website:
        """Start serving, and return the site."""
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop serving, and free the port."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Website:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
