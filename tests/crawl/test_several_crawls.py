"""docs/guides/several-crawls.md: its files, as they are there, in two processes on one machine."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawl.several import HOSTS, PATIENCE, Site, client, crawl, unpack, until

PAGES = 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs several addresses of this machine")


@pytest.fixture
def site() -> Iterator[Site]:
    one = Site(PAGES)
    yield one
    one.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    unpack(tmp_path)
    return tmp_path


def test_parts_of_hosts_in_rounds(folder: Path, site: Site) -> None:
    """Every page is downloaded once, each host by one crawl, and the rounds come to an end."""
    (folder / "start.urls").write_text("\n".join(site.urls[:2]))
    rounds = 0
    while True:
        before = len(site.seen)
        for part in range(2):  # one after the other here, so that links always arrive through the files
            assert crawl(folder, "spider.py", part, "-s", f"JOBDIR=jobs/{part}").wait(PATIENCE) == 0
        if len(site.seen) == before:
            break
        rounds += 1
    counts = site.counts()
    assert len(counts) == HOSTS * PAGES
    assert set(counts.values()) == {1}
    crawls = site.crawls()
    assert {len(one) for one in crawls.values()} == {1}
    assert len(set().union(*crawls.values())) == 2
    assert 0 < rounds < 6
    assert list((folder / "parts").iterdir())
    assert sum(1 for file in folder.glob("pages-*") for _ in file.open()) == HOSTS * PAGES


@pytest.mark.skipif(
    shutil.which("redis-server") is None or importlib.util.find_spec("scrapy_redis") is None,
    reason="needs redis-server and scrapy-redis",
)
@pytest.mark.parametrize("kill", [False, True], ids=["nobody is killed", "one is killed"])
def test_a_shared_queue(folder: Path, site: Site, kill: bool) -> None:
    """Every page is downloaded, each host by one crawl; after a kill, only what was on its way is downloaded again."""
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", str(folder / "redis"), "--save", ""])
    try:
        until(lambda: (folder / "redis").exists())
        for url in site.urls:
            client(folder, "lpush", "pages:start_urls", json.dumps({"url": url}))
        options = ("-s", f"REDIS_URL=unix://{folder / 'redis'}", "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=8")
        running = [crawl(folder, "redis_spider.py", part, *options) for part in range(2)]
        if kill:
            until(lambda: len(site.seen) > HOSTS * PAGES // 4)
            running[0].send_signal(signal.SIGKILL)
            running[0].wait()
            running[0] = crawl(folder, "redis_spider.py", 0, *options)
        assert [one.wait(PATIENCE) for one in running] == [0, 0]
        left = client(folder, "keys", "*").split()
    finally:
        server.terminate()
        server.wait()
    counts = site.counts()
    assert len(counts) == HOSTS * PAGES
    assert {len(one) for one in site.crawls().values()} == {1}
    assert sum(counts.values()) - len(counts) <= (16 if kill else 0)
    assert left == ["pages:dupefilter"]
