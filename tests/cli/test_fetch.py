"""Pages from the web on the command line: deadlines, redirects and addresses."""

from __future__ import annotations

import socket
import threading
import time
from base64 import b64encode
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

import scrapy_dripper
from scrapy_dripper.egress import RefusedError, download
from tests.cli.conftest import Answer, Run, Serve, redirect, send

BODY = b"<p>The tides rise and fall twice a day, and sailors plan their passages by them.</p>"

page = send(BODY)


def test_a_page_in_python(serve: Serve) -> None:
    """It has the options of ``extract``, and the URL after redirects."""
    other = f"{serve(page)}/page"

    found = scrapy_dripper.fetch(serve(redirect(other)), front_matter=True)

    assert found.url == other
    assert found.text == BODY.decode()[3:-4]
    assert found.markdown.startswith("---\n")
    with pytest.raises(RefusedError):
        scrapy_dripper.fetch("file:///etc/hostname")


@pytest.mark.parametrize("begin", ["", "Content-Type: text/html\r\n\r\n"], ids=["head", "body"])
def test_a_byte_a_second(serve: Serve, begin: str) -> None:
    """The deadline is for the whole answer, and does not start again with each byte. The connection ends with it."""
    ended = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        try:
            handler.wfile.write(f"HTTP/1.1 200 OK\r\n{begin}".encode())
            while not ended.wait(0.05):
                handler.wfile.write(b"x")
        except OSError:
            ended.set()

    with pytest.raises(TimeoutError, match=r"no complete answer within 0.5 seconds"):
        download(serve(drip), 1_000_000, seconds=0.5)
    assert ended.wait(30)


def endless(head: Answer) -> tuple[Answer, list[int]]:
    """Return an answer whose body has no end, and the list of the sizes that were sent."""
    sent: list[int] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        head(handler)
        for _ in range(10_000):
            try:
                handler.wfile.write(b"x" * 100_000)
            except OSError:
                return
            sent.append(100_000)

    return answer, sent


def test_an_endless_body_is_not_read_to_its_end(serve: Serve) -> None:
    """Of the one that comes with a redirect, which nobody sees, nothing is read."""
    flood, sent = endless(lambda handler: handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n"))
    hidden, unseen = endless(redirect(serve(page)))

    assert len(download(serve(flood), 500_000).body) == 500_001
    assert download(serve(hidden), 1_000).body == BODY
    assert sum(sent + unseen) < 100_000_000


def test_a_redirect_through_a_proxy(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy's own machine is as private as any other, and the proxy may know more names than this machine."""
    asked: list[str] = []

    def proxy(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        if handler.path.endswith("/away"):
            redirect("http://only-the-proxy-knows.invalid/page")(handler)
        elif handler.path.endswith("/in"):
            redirect(f"{url}/secret")(handler)
        else:
            page(handler)

    url = serve(proxy)
    monkeypatch.setenv("http_proxy", url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)

    assert download("http://site.invalid/away", 1_000).url == "http://only-the-proxy-knows.invalid/page"
    with pytest.raises(RefusedError):
        download("http://site.invalid/in", 1_000)
    assert asked == ["http://site.invalid/away", "http://only-the-proxy-knows.invalid/page", "http://site.invalid/in"]


@pytest.mark.usefixtures("internet")
def test_the_next_address_is_tried(serve: Serve) -> None:
    """As with any other connection, one of the addresses of a name may be dead."""
    assert download(serve(redirect(serve(page).replace("127.0.0.1", "next.example"))), 1_000).body == BODY


def test_a_page_that_sets_a_cookie_first(serve: Serve) -> None:
    """Its redirect leads to itself. The cookie is for this exchange alone."""
    asked = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.headers.get("Cookie"))
        if asked[-1] == "seen=1":
            page(handler)
        else:
            handler.send_response(302)
            handler.send_header("Location", handler.path)
            handler.send_header("Set-Cookie", "seen=1")
            handler.end_headers()

    url = serve(answer)

    assert [download(f"{url}/page", 1_000).body for _ in range(2)] == [BODY, BODY]
    assert asked == [None, "seen=1"] * 2


@pytest.mark.usefixtures("internet")
@pytest.mark.parametrize("leaves", [False, True], ids=["its own site", "another site"])
def test_a_password_is_sent_to_its_own_site_alone(serve: Serve, leaves: bool) -> None:
    """A folder without its slash redirects to itself. In the URL, the password may be escaped."""
    seen = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        seen.append(handler.headers.get("Authorization"))
        site = other.replace("127.0.0.1", "site.example") if leaves else ""
        (page if handler.path == "/docs/" else redirect(f"{site}/docs/"))(handler)

    other = serve(answer)

    assert download(serve(answer).replace("http://", "http://ann:s%40cret@") + "/docs", 1_000).body == BODY
    password = "Basic " + b64encode(b"ann:s@cret").decode()
    assert seen == [password, None if leaves else password]


@pytest.mark.parametrize(
    ("head", "said"),
    [("Content-Length: 99", "the answer is cut off: 94 bytes"), ("Transfer-Encoding: chunked", "no valid answer")],
)
def test_an_answer_that_is_cut_off(head: str, said: str, serve: Serve) -> None:
    """A part of a page is not taken for the page."""
    cut = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{head}\r\n\r\n5\r\nab".encode()

    with pytest.raises(ConnectionError, match=said):
        download(serve(lambda handler: handler.wfile.write(cut)), 1_000)


def test_errors_of_a_server(serve: Serve) -> None:
    with pytest.raises(HTTPError, match="404"):
        download(serve(lambda handler: handler.send_error(404)), 1_000)
    with pytest.raises(HTTPError, match="infinite loop"):
        download(serve(lambda handler: redirect("/again")(handler)), 1_000)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # and nobody listens
        with pytest.raises(URLError):
            download(f"http://127.0.0.1:{free.getsockname()[1]}/", 1_000)


@pytest.mark.parametrize("command", ["extract", "inspect", "rules check r.json", "rules learn -o r.toml"])
def test_an_answer_that_is_not_http(command: str, serve: Serve, here: Path, run: Run) -> None:
    """Every command names the page, and goes on with the others."""
    Path("r.json").write_text('{"*": {"drop": [".ad"]}}')
    Path("other.html").write_bytes(BODY)

    done = run(*command.split(), serve(lambda handler: handler.wfile.write(b"no\r\n\r\n")), "other.html")

    said = done.out + done.err
    assert done.code == 1
    assert "no valid answer (BadStatusLine: no" in said
    assert "other" in said or "tides" in said


def test_the_command_says_it_in_one_sentence(serve: Serve, extract: Run) -> None:
    done = extract(serve(lambda _: time.sleep(3)), "--timeout", "0.3")

    assert done.code == 1
    assert "no complete answer within 0.3 seconds; --timeout gives it more" in done.err
