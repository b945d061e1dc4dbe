"""``scrapy dripper --browser``: pages that a script fills, and the only way of its browser to the network."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from scrapy_dripper.commands import guard
from scrapy_dripper.commands.guard import Gate, check_browser
from scrapy_dripper.egress import Egress
from tests.crawl.crawling import Site, page
from tests.crawl.processes import COMMAND, run
from tests.crawl.test_follow import HTML, index
from tests.internet import internet_command

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "example_project"))

from example.browser import find_chromium

needs_browser = pytest.mark.skipif(
    find_spec("scrapy_playwright") is None or find_chromium() is None, reason="needs scrapy-playwright and a Chromium"
)
SHELL = "<html><head><title>App</title></head><body><div id=root></div><script src=/app.js></script></body></html>"
SCRIPT = """
const root = document.getElementById("root");
const ask = url => fetch(url, { mode: "no-cors" }).catch(() => {});
setTimeout(async () => {
  await Promise.all([ask("http://127.0.0.1:PORT/secret/1"), ask("http://inside.example:PORT/secret/2"), ask("/leads")]);
  const text = await (await fetch("/text")).text();
  root.innerHTML = `<h1>App</h1>${"<p>" + text + "</p>"}<img src=/picture.png><a href=/page/1>next</a>`;
}, 700);
"""
TEXT = "MAIN text that a script writes. " * 12


@needs_browser
def test_a_site_of_scripts_is_followed_without_leaving_the_internet(site: Site, tmp_path: Path) -> None:
    """A page that needs no browser is asked for once. Neither a script nor a redirect reaches this machine."""
    port = str(site.port)
    site.routes |= {
        "/": (HTML, SHELL.encode()),
        "/app.js": ("text/javascript", SCRIPT.replace("PORT", port).encode()),
        "/text": ("text/plain", TEXT.encode()),
    }
    site.raw["/leads"] = [
        (f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/secret/3\r\n\r\n".encode(), "close")
    ]
    launch = {"executable_path": find_chromium(), "args": ["--no-sandbox"]}
    options = {name: value for name, value in COMMAND.items() if not name.startswith("DRIPPER_")}
    words = ["dripper", "--follow", f"http://site.example:{port}/", "-o", str(tmp_path / "out"), "--browser"]

    done = run(internet_command, [*words, "-s", "DOWNLOAD_DELAY=0"], {**options, "PLAYWRIGHT_LAUNCH_OPTIONS": launch})

    assert done.returncode == 0, done.stderr
    found = index(tmp_path / "out")
    assert set(found) == {"/", "/page/1"}
    assert TEXT.strip() in (tmp_path / "out" / found["/"]["file"]).read_text(encoding="utf-8")
    assert site.seen.count("/page/1") == 1
    assert site.seen.count("/leads") == site.seen.count("/text") == 1
    assert not [path for path in site.seen if path.startswith(("/secret", "/picture"))]


@pytest.mark.parametrize(
    ("host", "is_let"),
    [("site.example", True), ("inside.example", False), ("127.0.0.1", False), ("both.example", True)],
)
def test_the_gate_connects_to_where_the_crawl_may_go(site: Site, internet: None, host: str, is_let: bool) -> None:
    site.routes["/"] = (HTML, page(1).encode())

    async def ask() -> tuple[int, bytes]:
        gate = Gate(Egress("http://site.example/"))
        await gate._open()
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
        writer.write(b"\5\1\0")
        assert await reader.readexactly(2) == b"\5\0"
        writer.write(bytes([5, 1, 0, 3, len(host)]) + host.encode() + site.port.to_bytes(2, "big"))
        answer = await reader.readexactly(10)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        got = await reader.read(1_000)
        writer.close()
        gate._close()
        return answer[1], got

    code, got = asyncio.run(ask())

    assert (code, b"MAIN text of page 1" in got) == ((0, True) if is_let else (2, False))
    assert site.seen == (["/"] if is_let else [])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            {"PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": "/none"}},
            "playwright install chromium",
            marks=needs_browser,
        ),
        pytest.param({"PLAYWRIGHT_CDP_URL": "http://localhost:1"}, "cannot guard the one", marks=needs_browser),
        (None, "--browser needs scrapy-playwright: pip install 'scrapy-dripper\\[playwright\\]'"),
    ],
)
def test_a_browser_that_is_not_there_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, object] | None, message: str
) -> None:
    if settings is None:
        monkeypatch.setattr(guard, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=message):
        check_browser(Settings(settings))
