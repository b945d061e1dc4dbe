"""Several crawls of one site on this machine, with the files of docs/guides/several-crawls.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "several-crawls.md"
HOSTS, PATIENCE = 4, 180
ADDONS = '        "ADDONS": {"scrapy_dripper.Addon": 500},\n'


class Site:
    """Hosts whose pages link to two of their own pages, and to one of the next host; notes who gets what."""

    def __init__(self, pages: int) -> None:
        self.pages, self.seen = pages, list[tuple[str, str]]()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                host, _, port = self.headers["Host"].partition(":")
                number, at = int(host.rpartition(".")[2]), int(self.path[1:])
                site.seen.append((f"{host}/{at}", self.headers["User-Agent"]))
                links = [f"http://{host}:{port}/{one}" for one in (2 * at + 1, 2 * at + 2) if one < pages]
                links.append(f"http://127.0.0.{number % HOSTS + 1}:{port}/{at}")
                body = "".join(f"<a href='{link}'>next</a>" for link in links).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

            def handle(self) -> None:
                with suppress(ConnectionError):  # a crawl that was killed
                    super().handle()

        self._server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        self.urls = [f"http://127.0.0.{host + 1}:{self._server.server_address[1]}/0" for host in range(HOSTS)]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def counts(self) -> Counter[str]:
        """Return how often each page was downloaded."""
        return Counter(page for page, _ in self.seen)

    def crawls(self) -> dict[str, set[str]]:
        """Return the crawls that downloaded from each host."""
        found: dict[str, set[str]] = {}
        for page, crawl in self.seen:
            found.setdefault(page.partition("/")[0], set()).add(crawl)
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def unpack(folder: Path) -> None:
    """Write the files of the guide, without the add-on, which has nothing to do with this."""
    for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S):
        (folder / name).write_text(code.replace(ADDONS, ""), encoding="utf-8")
    (folder / "parts").mkdir()


def crawl(folder: Path, spider: str, part: int, *options: str) -> subprocess.Popen[bytes]:
    """Start a crawl as the guide does."""
    command = [sys.executable, "-m", "scrapy", "runspider", spider, "-s", f"PART={part}", "-s", "PARTS=2"]
    command += ["-o", f"pages-{part}.jsonl", "-s", f"USER_AGENT=crawl-{part}", "-s", "TELNETCONSOLE_ENABLED=0"]
    command += ["-s", "CONCURRENT_REQUESTS_PER_DOMAIN=8", "-s", "DOWNLOAD_DELAY=0.01", "-s", "ROBOTSTXT_OBEY=0"]
    with (folder / f"log-{part}").open("ab") as log:
        return subprocess.Popen(
            [*command, *options],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")]),
            },
            stderr=log,
            stdout=log,
        )


def client(folder: Path, *arguments: str) -> str:
    command = ["redis-cli", "-s", str(folder / "redis"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
