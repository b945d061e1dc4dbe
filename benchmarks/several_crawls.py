"""Two crawls of one site of four hosts: with parts of the hosts, with scrapy-redis, and with a queue for each part.

Each way is run a second time, in which one crawl is killed (SIGKILL) after a third of the pages, and started again.
Needs scrapy-redis, redis-server and redis-cli. The files of the crawls are those of docs/guides/several-crawls.md.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]

from report import heading, publish, table  # noqa: E402

from tests.crawl.several import HOSTS, Site, client, crawl, unpack, until  # noqa: E402

HOST_QUEUE = ("SPIDER_MIDDLEWARES", "SCHEDULER_QUEUE_CLASS")
"""The settings of the guide that are left out to measure plain scrapy-redis."""


def main() -> None:
    """Run all crawls and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=200, help="of each host")
    arguments = parser.parse_args()
    ways: dict[str, Callable[[Path, Site, bool], None]] = {
        "parts of the hosts, JOBDIR, rounds": in_rounds,
        "scrapy-redis as it is": lambda folder, site, kill: shared(folder, site, kill, HOST_QUEUE),
        "scrapy-redis, a queue for each part": shared,
    }
    rows = []
    for name, way in ways.items():
        for kill in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                unpack(Path(folder))
                site = Site(arguments.pages)
                way(Path(folder), site, kill)
                site.close()
                counts, crawls = site.counts(), site.crawls()
                lines = [line for file in Path(folder).glob("pages-*") for line in file.read_text().splitlines()]
                items = {json.loads(line)["url"] for line in lines if line.endswith("}")}
            rows.append(
                [
                    name + (", one killed" if kill else ""),
                    f"{len(counts)}",
                    f"{HOSTS * arguments.pages - len(counts)}",
                    f"{sum(counts.values()) - len(counts)}",
                    f"{sum(len(one) > 1 for one in crawls.values())}",
                    f"{len(items)}",
                ]
            )
            print(rows[-1], file=sys.stderr)
    head = ["two crawls", "pages", "lost", "more than once", "hosts with two crawls", "pages with an item"]
    text = [heading("several_crawls.py", ("scrapy", "scrapy-redis", "redis")), ""]
    text += [f"{HOSTS} hosts with {arguments.pages} pages each, which link to each other.", "", table(head, rows)]
    publish("\n".join(text), ROOT / "benchmarks" / "results" / "several_crawls.txt")


def in_rounds(folder: Path, site: Site, kill: bool) -> None:
    """Crawl in rounds, until one has no new page; in the first round, kill one crawl."""
    (folder / "start.urls").write_text("\n".join(site.urls))
    begun = -1
    while begun < len(site.seen):
        begun = len(site.seen)
        running = [crawl(folder, "spider.py", part, "-s", f"JOBDIR=jobs/{part}") for part in range(2)]
        if kill:
            third(site)
            running[0].send_signal(signal.SIGKILL)
            kill = False
        for one in running:
            one.wait()


def shared(folder: Path, site: Site, kill: bool, without: tuple[str, ...] = ()) -> None:
    """Crawl with a queue in Redis; kill one crawl, and start it again."""
    file = folder / "redis_spider.py"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.strip(' "').startswith(without)))
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", str(folder / "redis"), "--save", ""], stdout=subprocess.DEVNULL
    )
    until((folder / "redis").exists)
    options = ("-s", f"REDIS_URL=unix://{folder / 'redis'}", "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=30")
    running = [crawl(folder, "redis_spider.py", part, *options) for part in range(2)]
    until(lambda: all("Spider opened" in (folder / f"log-{part}").read_text() for part in range(2)))
    for url in site.urls:
        client(folder, "lpush", "pages:start_urls", json.dumps({"url": url}))
    if kill:
        third(site)
        running[0].send_signal(signal.SIGKILL)
        running[0].wait()
        running[0] = crawl(folder, "redis_spider.py", 0, *options)
    for one in running:
        one.wait()
    server.terminate()
    server.wait()


def third(site: Site) -> None:
    """Wait until a third of the pages are downloaded."""
    most = HOSTS * site.pages // 3
    until(lambda: len(site.seen) > most)


if __name__ == "__main__":
    main()
