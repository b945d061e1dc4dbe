"""URLs that servers name: no command follows them to a file, to another scheme, or into a private network."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from html import escape
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse

from scrapy_dripper.egress import Egress, RefusedError, download, network
from tests.crawl.conftest import KINDS
from tests.crawl.crawling import Site, answer, page
from tests.crawl.processes import COMMAND, Done
from tests.crawl.processes import run as program
from tests.crawl.test_follow import HTML, XML, follow, index
from tests.internet import REBINDING, internet_command, public

SECRET = "MAIN secret of this machine"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        *((one, "public") for one in ("8.8.8.8", "2606:4700::1111", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8")),
        *((one, "public") for one in ("2002:808:808::1",)),
        *((one, "private") for one in ("10.0.0.1", "192.168.0.1", "100.64.0.1", "192.0.2.1", "240.0.0.1")),
        *((one, "private") for one in ("255.255.255.255", "224.0.0.1", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1")),
        *((one, "loopback") for one in ("127.0.0.1", "127.9.9.9", "0.0.0.0", "::", "::1", "::127.0.0.1")),
        *((one, "loopback") for one in ("::ffff:127.0.0.1", "::ffff:0:0", "2002:7f00:1::1")),
        *((one, "link-local") for one in ("169.254.169.254", "64:ff9b::169.254.169.254", "fe80::1", "fe80::1%eth0")),
    ],
)  # fmt: skip
def test_networks(address: str, expected: str) -> None:
    """An address of IPv6 that stands for one of IPv4 is in the network of that one."""
    assert network(address) == expected


PRIVATE = [
    "http://127.0.0.1:9/", "http://127.0.0.2/", "http://localhost/", "http://LOCALHOST./", "http://a.localhost/",
    "http://10.0.0.1/", "http://169.254.169.254/latest", "http://0.0.0.0/", "http://[::1]/", "http://[::]/",
    "HTTP://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[fe80::1]/", "http://[fe80::1%25lo]/",
    "http://[fe80::1%eth0]/", "http://[64:ff9b::7f00:1]/", "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/",
    "http://017700000001/", "http://127.1/", "http://127.0.0.1./", "http://inside.example/", "http://INSIDE.example./",
    "http://both.example/", "https://inside.example/", "http://site.example@127.0.0.1/",
]  # fmt: skip
"""URLs that lead to this machine or its network."""
ODD = [
    "file:///etc/passwd", "FILE://site.example/etc/passwd", "ftp://site.example/", "data:text/html,x", "s3://bucket/x",
    "gopher://site.example/", "javascript:alert(1)", "//site.example/", "/path", "", "http://", "http:///x", "http://:80/",
    "http://user:password@site.example/", "http://site.example\\@127.0.0.1/", "http://127.0.0.1\\@site.example/",
    "http://ex%61mple.org/", "http://%31%32%37.0.0.1/", "http://site.example%00.other.example/", "http://１２７.0.0.1/",
    "http://[::1/", "http://[site.example]/", "http://site.example:99999/", "http://1.2.3.4.5/", "http://127.0.0.0x/x",
    "http://a b/", "http://site.example#@127.0.0.1:x/",
]  # fmt: skip
"""URLs of other schemes, without a host, or in which programs may find different hosts."""


@pytest.mark.usefixtures("internet")
@pytest.mark.parametrize("url", [*PRIVATE, *ODD[:-1]])
def test_what_is_refused(url: str) -> None:
    """A site on the internet leads nowhere else, however the URL is written."""
    with pytest.raises(RefusedError):
        Egress("http://site.example/").check(url)


@pytest.mark.usefixtures("internet")
def test_what_is_allowed() -> None:
    """Any host of the internet, on any port. A user may stay in the network in which the first URL is."""
    for url in (
        "https://other.example/",
        "http://other.example:8080/x?y#z",
        "http://93.184.216.35/",
        "http://site.example./",
    ):
        Egress("http://site.example/").check(url)
    Egress("http://site.example/").check("http://only-the-proxy-knows.invalid/")
    for start, url in (
        ("http://127.0.0.1:8000/", "http://localhost:8000/"),
        ("http://0.0.0.0:8000/", "http://127.0.0.1:9/"),
        ("http://inside.example/", "http://[::1]/"),
        ("http://10.0.0.1/", "http://192.168.7.7/"),
        ("http://10.0.0.1/", "http://site.example/"),
    ):
        Egress(start).check(url)


@pytest.mark.usefixtures("internet")
@pytest.mark.parametrize(
    ("start", "via", "url"),
    [
        ("http://10.0.0.1/", [], "http://127.0.0.1/"),
        ("http://127.0.0.1/", [], "http://10.0.0.1/"),
        ("http://127.0.0.1/", [], "http://169.254.169.254/"),
        ("http://127.0.0.1/", ["http://127.0.0.1/", "http://site.example/"], "http://127.0.0.1/x"),
        ("http://127.0.0.1/", ["http://127.0.0.1/", "http://site.example/"], "http://127.0.0.1/"),
        ("http://both.example/", ["http://both.example/"], "http://127.0.0.1/x"),
    ],
)
def test_a_private_network_is_left_for_good(start: str, via: list[str], url: str) -> None:
    """Neither another private network nor the way back from the internet is open."""
    egress = Egress(start)
    for before in via:
        egress.check(before)
        egress.reachable(
            before.split("/")[2], [found[4][0] for found in socket.getaddrinfo(before.split("/")[2], None)]
        )

    with pytest.raises(RefusedError, match="a private address; name that URL itself if you mean it"):
        egress.check(url, via)


@pytest.mark.usefixtures("internet")
@pytest.mark.parametrize(
    ("url", "via", "is_allowed"),
    [
        ("http://127.0.0.1:8000/x", [], True),
        ("http://127.0.0.1:9/x", ["http://127.0.0.1:8000/"], True),
        ("http://127.0.0.1:9/x", [], False),
        ("http://inside.example:8000/x", [], False),
        ("http://127.0.0.1:8000/x", ["http://site.example/"], False),
    ],
)
def test_each_of_several_urls_is_a_beginning_of_its_own(url: str, via: list[str], is_allowed: bool) -> None:
    """What a site on the internet names is not one of the user's on another port."""
    egress = Egress("http://site.example/", "http://127.0.0.1:8000/", "http://inside.example/")
    for host, address in (("127.0.0.1", "127.0.0.1"), ("inside.example", "127.0.0.1"), ("site.example", "8.8.8.8")):
        egress.reachable(host, [address])

    with nullcontext() if is_allowed else pytest.raises(RefusedError):
        egress.check(url, via)


@pytest.mark.usefixtures("internet")
def test_the_name_that_the_user_typed_can_move() -> None:
    """Neither way makes this machine the one where the command may stay."""
    for addresses in (["127.0.0.1", "93.184.216.34"], ["93.184.216.34", "127.0.0.1"]):
        egress = Egress("http://site.example/")
        assert egress.reachable("site.example", addresses[:1]) == addresses[:1]
        with suppress(RefusedError):
            egress.reachable("site.example", addresses[1:])
        for url in ("http://127.0.0.1/", "http://localhost/"):
            with pytest.raises(RefusedError):
                egress.check(url, ["http://site.example/"])
        with pytest.raises(RefusedError):
            egress.reachable("site.example", ["127.0.0.1"])


class Victim:
    """A server of this machine that must not be asked, and a file that must not be read."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "secret.html"
        self.file.write_text(f"<p>{SECRET}, which is written in a file.</p>", encoding="utf-8")
        self.asked = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.asked += 1
            connection.sendall(answer(f"<p>{SECRET}, which a server knows.</p>".encode()))
            connection.close()

    def urls(self, host: str) -> list[str]:
        """Return URLs of the file and of the server. ``host`` is that of the site that names them."""
        ways = ["127.0.0.1", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "localhost", "inside.example", "0.0.0.0"]
        return [
            *(f"file://{place}{self.file}" for place in (host, "")),
            *(f"ftp://{place}:{self.port}/x" for place in ("127.0.0.1", host.partition(":")[0])),
            f"data:text/html,<p>{SECRET}</p>",
            *(f"http://{way}:{self.port}/x" for way in ways),
            *(f"http://{name}:{self.port}/x" for name in REBINDING),
            f"http://site.example@127.0.0.1:{self.port}/x",
        ]

    def close(self) -> None:
        """Stop the server."""
        self._socket.close()


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    """A server and a file of this machine."""
    started = Victim(tmp_path)
    yield started
    started.close()


def redirects(site: Site, way: str, path: str, url: str) -> None:
    """Let a path lead to a URL by a redirect or by a refresh."""
    if way == "redirect":
        site.raw[path] = [(answer(b"", f"Location: {url}", status=302), "keep")]
    else:
        refresh = f'<meta http-equiv="refresh" content="0; url={escape(url)}">'
        site.routes[path] = (HTML, page("with a refresh", refresh).encode())


def test_follow_asks_for_nothing_else(site: Site, victim: Victim, tmp_path: Path) -> None:
    """Neither as links nor in sitemaps, lists of sitemaps, robots.txt, redirects or refreshes."""
    urls = victim.urls(f"site.example:{site.port}")
    pages = "".join(f"<url><loc>{escape(url)}</loc></url>" for url in [*urls, public(site, "/page/2")])
    maps = "".join(f"<sitemap><loc>{escape(url)}</loc></sitemap>" for url in urls)
    paths = []
    for number, url in enumerate(urls):
        for way in ("redirect", "refresh"):
            paths.append(f"/{way}/{number}")
            redirects(site, way, paths[-1], url)
    links = "".join(f'<a href="{escape(url)}">link</a>' for url in [*urls, *paths, "/page/1"])
    site.routes |= {
        "/": (HTML, page("home", links).encode()),
        "/robots.txt": (
            "text/plain",
            "".join(f"Sitemap: {url}\n" for url in [*urls, "/map.xml", "/list.xml"]).encode(),
        ),
        "/map.xml": (XML, f"<urlset>{pages}</urlset>".encode()),
        "/list.xml": (XML, f"<sitemapindex>{maps}</sitemapindex>".encode()),
    }

    done = follow(public(site, "/"), tmp_path / "out", "-s", "RETRY_ENABLED=0", "-s", "DOWNLOAD_TIMEOUT=20")
    found = index(tmp_path / "out")

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert victim.asked == 0
    assert not any(SECRET in file.read_text(encoding="utf-8") for file in (tmp_path / "out").glob("*.md"))
    assert set(found) == {"/", "/page/1", "/page/2", *paths}
    refused = {path: record["error"] for path, record in found.items() if "source" not in record}
    assert {path for path in refused if "redirect" in path} == {path for path in paths if "redirect" in path}
    assert all(re.match(r"leads to |HTTP 302$", reason) for reason in refused.values()), refused
    assert re.search(r"^\d+ URLs of robots.txt and sitemaps are not followed, because", done.stderr, re.M)


@pytest.mark.parametrize("way", ["redirect", "refresh"])
@pytest.mark.parametrize("options", [[], ["--spider", "pages"]], ids=["page", "spider"])
def test_one_page_asks_for_nothing_else(
    site: Site, victim: Victim, tmp_path: Path, way: str, options: list[str]
) -> None:
    """The page, or the items of a spider: what a redirect names is refused, and one line says so."""
    (tmp_path / "spiders.py").write_text(SPIDER, encoding="utf-8")
    for number, url in enumerate(victim.urls(f"site.example:{site.port}")):
        redirects(site, way, f"/{number}", url)

        done = one_page(public(site, f"/{number}"), *options, cwd=tmp_path)

        assert SECRET not in done.stdout, url
        assert victim.asked == 0, url
        if way == "redirect":
            assert len(done.stderr.splitlines()) == 1, done.stderr
            assert re.search(r"leads to |DNS lookup failed|HTTP 302|Ignoring non-200", done.stderr), done.stderr


@pytest.mark.skipif("reactorless" not in KINDS, reason="this Scrapy has no download handler without Twisted's reactor")
def test_names_that_change_their_address_without_the_reactor(site: Site, victim: Victim) -> None:
    """Other download handlers look names up in another place."""
    for number, name in enumerate(REBINDING):
        redirects(site, "redirect", f"/{number}", f"http://{name}:{victim.port}/x")

        done = one_page(public(site, f"/{number}"), **KINDS["reactorless"])

        assert (done.stdout, done.returncode, victim.asked) == ("", 1, 0), done.stderr


SPIDER = """
import scrapy
class Pages(scrapy.Spider):
    name = "pages"
    def parse(self, response):
        yield {"title": response.css("title::text").get(), "secret": "".join(response.css("p::text").getall())}
"""


def one_page(*arguments: str, cwd: Path | None = None, **settings: Any) -> Done:
    """Run the command for one page."""
    project = {"SPIDER_MODULES": ["spiders"]} if "--spider" in arguments else {}
    return program(internet_command, ["dripper", *arguments], {**COMMAND, **project, **settings}, cwd=cwd)


@pytest.mark.usefixtures("internet")
def test_extract_asks_for_nothing_else(site: Site, victim: Victim) -> None:
    """The command without Scrapy keeps to the same rule."""
    for number, url in enumerate(victim.urls(f"site.example:{site.port}")):
        redirects(site, "redirect", f"/{number}", url)

        with pytest.raises((RefusedError, HTTPError)):
            download(public(site, f"/{number}"), 1_000)

        assert victim.asked == 0, url


@pytest.mark.usefixtures("internet")
def test_redirects_between_public_hosts_are_followed(site: Site) -> None:
    redirects(site, "redirect", "/old", public(site, "/page/1", "other.example"))

    assert b"MAIN text of page 1" in download(public(site, "/old"), 1_000).body
    assert "MAIN text of page 1" in one_page(public(site, "/old")).stdout


class Browser:
    """A download handler that follows redirects of its own, as a browser does."""

    lazy = True

    async def download_request(self, request: Request) -> HtmlResponse:
        """Answer with the page to which the URL leads."""
        to = request.url if request.url.endswith("/page") else "http://127.0.0.1:9/secret"
        return HtmlResponse(to, body=f"<p>{SECRET}, which a browser has read.</p>".encode())

    async def close(self) -> None:
        """Do nothing."""


def test_the_handler_of_a_project_stays() -> None:
    """A browser is asked for what may be requested. What it brings from elsewhere is not shown."""
    handlers = dict.fromkeys(("http", "file"), "tests.security.test_egress.Browser")

    page_, elsewhere, file = (
        one_page(url, DOWNLOAD_HANDLERS=handlers)
        for url in ("http://site.example/page", "http://site.example/away", "file:///page")
    )

    assert SECRET in page_.stdout
    assert SECRET not in elsewhere.stdout + file.stdout
    assert "leads to 127.0.0.1, a private address" in elsewhere.stderr
    assert (file.returncode, "expected a URL" in file.stderr) == (2, True)


def test_a_proxy_of_this_machine(site: Site, tmp_path: Path) -> None:
    """It is used for public names, those that only it knows included, and not for private ones."""
    paths = {"/away": "http://only-the-proxy-knows.invalid/page/1", "/in": site.url("/page/2")}
    for path, to in paths.items():
        site.raw[f"http://site.example{path}"] = [(answer(b"", f"Location: {to}", status=302), "keep")]
    (tmp_path / "proxy.py").write_text(PROXY.format(url=site.url("")), encoding="utf-8")
    settings = {"DOWNLOADER_MIDDLEWARES": {"proxy.Proxy": 100}}

    away, inside = (one_page(f"http://site.example{path}", cwd=tmp_path, **settings) for path in paths)

    assert "MAIN text of page http://only-the-proxy-knows.invalid/page/1" in away.stdout, away.stderr
    assert "leads to 127.0.0.1, a private address" in inside.stderr
    assert not any(path.endswith("/page/2") for path in site.seen)


PROXY = """
class Proxy:
    def process_request(self, request):
        request.meta["proxy"] = "{url}"
"""
