"""Compressed bodies in a live crawl: Scrapy's settings limit the unpacking, and the plugin limits the page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any

import pytest

SMALL, LARGE = 12, 24  # MB: over DRIPPER_LIMITS["bytes"], and over DOWNLOAD_MAXSIZE as well
MOST = 15_000_000
LINE = b"<p>Words of the article: rivers, harbours, bridges and gardens, one and all.</p>\n"


@cache
def body(encoding: str, megabytes: int) -> bytes:
    """Return a number of megabytes of paragraphs, compressed."""
    data = LINE * (megabytes * 1_000_000 // len(LINE) or 5)
    if encoding == "br":
        import brotli

        return bytes(brotli.compress(data, quality=3))
    packer = zlib.compressobj(6, zlib.DEFLATED, {"gzip": 31, "deflate": 15, "raw": -15}[encoding])
    return packer.compress(data) + packer.flush()


@pytest.fixture
def site() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, encoding, megabytes = self.path.split("/")
            data = body(encoding, int(megabytes))
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Encoding", "deflate" if encoding == "raw" else encoding)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_packed_bodies_cost_no_more_than_the_settings_allow(site: str) -> None:
    """Above ``DOWNLOAD_MAXSIZE``, there is no response. Above ``DRIPPER_LIMITS["bytes"]``, the page falls back."""
    encodings = ["gzip", "deflate", "raw", *(["br"] if find_spec("brotli") else [])]
    assert all(len(body(one, size)) < MOST / 10 for one in encodings for size in (SMALL, LARGE))
    urls = [f"{site}/{one}/{size}" for one in encodings for size in (LARGE, 0, SMALL)]
    settings = {"DOWNLOAD_MAXSIZE": MOST, "DRIPPER_FALLBACK": "empty"}

    command = [sys.executable, "-m", "tests.security.crawl_process", json.dumps(settings), *urls]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)
    items = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("ITEM ")]

    assert sorted(item["url"] for item in items) == sorted(urls), done.stderr[-2_000:]
    for item in items:
        size = int(item["url"].rpartition("/")[2])
        if size == LARGE:
            assert item["failed"] in ("IgnoreRequest", "ResponseFailed", "DownloadCancelledError")
        elif size == SMALL:
            assert item["bytes"] > 10_000_000
            assert item["by"]["fallback_reason"] == "oversize"
        else:
            assert item["by"]["fallback_reason"] in (None, "no_main")
