"""Pages from the web on the command line: deadlines, redirects and addresses."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

from scrapy_dripper.cli import fetch as module
from scrapy_dripper.cli import main
from scrapy_dripper.cli.fetch import RefusedError, fetch

BODY = b"<p>The tides rise and fall twice a day, and sailors plan their passages by them.</p>"

Serve = Callable[[Callable[[BaseHTTPRequestHandler], None]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server whose answers a function writes, and return its URL."""
    servers = []

    def start(answer: Callable[[BaseHTTPRequestHandler], None]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer(self)

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def page(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html; charset=utf-8")
    handler.send_header("Content-Length", str(len(BODY)))
    handler.end_headers()
    handler.wfile.write(BODY)


def redirect(to: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", to)
        handler.end_headers()

    return answer


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> None:
    """``site.example`` is a name on the internet, whose server is on this machine."""
    known = socket.getaddrinfo

    def resolve(host: str, *options: object, **named: object) -> object:
        return known("127.0.0.1" if host == "site.example" else host, *options, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_a_page_on_a_typed_private_address(serve: Serve) -> None:
    url = serve(page)

    assert fetch(url, 1_000) == (BODY, url, "utf-8")


def test_a_redirect_on_the_typed_host(serve: Serve) -> None:
    """A site on this machine may redirect to itself, on another port as well."""
    other = serve(page)

    assert fetch(serve(redirect(f"{other}/page")), 1_000).url == f"{other}/page"


@pytest.mark.parametrize("pause", ["head", "body"])
def test_a_byte_a_second(serve: Serve, pause: str) -> None:
    """The deadline is for the whole answer, and does not start again with each byte."""
    stopped = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + (b"Content-Type: text/html\r\n\r\n" if pause == "body" else b""))
        while not stopped.wait(0.05):
            handler.wfile.write(b"x")

    with pytest.raises(TimeoutError, match=r"within 0.5 seconds; --timeout"):
        fetch(serve(drip), 1_000_000, seconds=0.5)
    stopped.set()


def test_an_endless_body_is_not_read_to_its_end(serve: Serve) -> None:
    sent = []

    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(10_000):
            try:
                handler.wfile.write(b"x" * 100_000)
            except OSError:
                return
            sent.append(100_000)

    assert len(fetch(serve(flood), 500_000).body) == 500_001
    assert sum(sent) < 100_000_000


@pytest.mark.parametrize(
    "to", ["ftp://site.example/secret", "file:///etc/passwd", "data:text/html,hello", "gopher://x/"]
)
def test_a_redirect_to_another_scheme(serve: Serve, to: str) -> None:
    with pytest.raises((RefusedError, HTTPError), match=r"only http and https are followed|not allowed"):
        fetch(serve(redirect(to)), 1_000)


@pytest.mark.usefixtures("internet")
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.2", "localhost", "169.254.169.254", "10.0.0.1", "192.168.0.1", "[::1]", "[::ffff:127.0.0.1]",
     "[fe80::1]", "0.0.0.0", "224.0.0.1", "2130706433"],
)  # fmt: skip
def test_a_redirect_from_the_internet_to_a_private_address(serve: Serve, host: str) -> None:
    """Nothing is sent there: neither to the services of this machine nor to those of its network."""
    asked: list[str] = []

    def secret(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        page(handler)

    port = serve(secret).rpartition(":")[2]
    url = serve(redirect(f"http://{host}:{port}/secret")).replace("127.0.0.1", "site.example")

    with pytest.raises(RefusedError, match=r"a private address; name that URL itself"):
        fetch(url, 1_000)
    assert not asked


def test_a_name_that_changes_its_address(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection goes to an address that was checked, even if a second look-up gives a private one."""
    known = socket.getaddrinfo
    addresses = iter(["8.8.8.8", "127.0.0.1", "127.0.0.1"])

    def resolve(host: str, *options: object, **named: object) -> object:
        return known(next(addresses) if host == "rebinds.example" else host, *options, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    port = serve(page).rpartition(":")[2]

    with pytest.raises(RefusedError):
        fetch(serve(redirect(f"http://rebinds.example:{port}/")), 1_000)


@pytest.mark.usefixtures("internet")
def test_a_password_goes_to_its_host_alone(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_public", lambda host, port: "127.0.0.1")
    seen = []

    def note(handler: BaseHTTPRequestHandler) -> None:
        seen.append(handler.headers.get("Authorization"))
        page(handler)

    other = serve(note).replace("127.0.0.1", "site.example")

    def first(handler: BaseHTTPRequestHandler) -> None:
        seen.append(handler.headers.get("Authorization"))
        redirect(other)(handler)

    fetch(serve(first).replace("http://", "http://ann:secret@"), 1_000)

    assert seen == ["Basic YW5uOnNlY3JldA==", None]


def test_errors_of_a_server(serve: Serve) -> None:
    with pytest.raises(HTTPError, match="404"):
        fetch(serve(lambda handler: handler.send_error(404)), 1_000)
    with pytest.raises(HTTPError, match="infinite loop"):
        fetch(serve(lambda handler: redirect("/again")(handler)), 1_000)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # and nobody listens
        with pytest.raises(URLError):
            fetch(f"http://127.0.0.1:{free.getsockname()[1]}/", 1_000)


def test_the_command_says_it_in_one_sentence(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extract", serve(lambda _: time.sleep(3)), "--timeout", "0.3"]) == 1
    assert "no complete answer within 0.3 seconds; --timeout gives it more" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as on Linux")
@pytest.mark.parametrize("kilobytes", [150_000, 200_000, 300_000])
def test_little_memory(tmp_path: Path, kilobytes: int) -> None:
    """A command that has too little memory says so in one sentence; OpenBLAS may say it first."""
    (tmp_path / "page.html").write_bytes(BODY)
    command = f"ulimit -v {kilobytes}; exec {sys.executable} -m scrapy_dripper extract page.html"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)

    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or "emory" in done.stderr
