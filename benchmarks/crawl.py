"""Compare a crawl with the plugin to the same crawl with Trafilatura, in the callback or in a pool, and without either.

The pages come from a server on the loopback interface in its own process, each crawl runs in a fresh process, and the
variants take turns. One Trafilatura variant calls ``trafilatura.extract(response.text, url=response.url,
output_format="markdown")`` in the callback, as people usually write it. The other one makes the same call in a
``ProcessPoolExecutor`` and waits for it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from common import DEFAULT, children_cpu, crawled, heading, memory, publish, sample, serve_pages, served, table
from tqdm import tqdm

NOTHING, THREAD, ONE, TWO = "no extraction", "scrapy-dripper, a thread", "1 worker", "2 workers"
PEER, POOL = "trafilatura in the callback", "trafilatura, 2 processes"
VARIANTS = (NOTHING, THREAD, ONE, TWO, PEER, POOL)
PROCESSES = {THREAD: 0, ONE: 1, TWO: 2}
POOL_SIZE = 2
SAMPLING = 0.02
SETTINGS: dict[str, Any] = {
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": False,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "ERROR",
}


def serve(arguments: argparse.Namespace) -> None:
    """Serve the pages as /0, /1, ... and print the port; stop when standard input is closed."""
    pages, _ = sample(arguments.data, arguments.pages, arguments.seed)
    bodies = [page.path.read_bytes() for page in pages]
    port = serve_pages(lambda path, _: bodies[int(path[1:])])
    print(port, len(bodies), flush=True)
    sys.stdin.read()


class Meter:
    """Measures a crawl in this process: time, CPU time, memory, and the lag of the event loop."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        self.marks: list[tuple[float, float, float]] = []
        self.memory = 0.0
        self.empty = 0

    def mark(self) -> None:
        """Record the beginning or the end."""
        self.marks.append((time.perf_counter(), time.process_time(), children_cpu(os.getpid())))

    def count(self, item: dict[str, Any]) -> None:
        """Record an item."""
        self.empty += not item.get("markdown")

    async def watch_loop(self) -> None:
        """Record repeatedly how late a timer is."""
        while True:
            due = time.perf_counter() + SAMPLING
            await asyncio.sleep(SAMPLING)
            self.lags.append(1000 * (time.perf_counter() - due))

    def watch_memory(self) -> None:
        """Record the peak memory, in a thread, until the crawl ends."""
        while len(self.marks) < 2:
            self.memory = max(self.memory, memory(os.getpid()))
            time.sleep(0.5)

    def figures(self, pages: int) -> dict[str, float]:
        """Return the measurements."""
        (opened, cpu_before, children_before), (closed, cpu_after, children_after) = self.marks
        lags = sorted(self.lags) or [0.0]  # a crawl of a few pages ends before the first sample
        return {
            "pages/s": pages / (closed - opened),
            "cpu": 1000 * (cpu_after - cpu_before) / pages,
            "cpu of children": 1000 * (children_after - children_before) / pages,
            "lag p50": statistics.median(lags),
            "lag p95": lags[int(0.95 * len(lags))],
            "lag p99": lags[int(0.99 * len(lags))],
            "memory": self.memory,
            "empty": self.empty,
        }


def crawl(variant: str, port: int, pages: int) -> dict[str, Any]:
    """Crawl all pages in this process and return the measurements."""
    import scrapy
    import trafilatura  # noqa: F401 (imported before the clock starts)
    from scrapy import signals
    from scrapy.crawler import AsyncCrawlerProcess

    meter = Meter()
    pool = ProcessPoolExecutor(POOL_SIZE, mp_context=get_context("spawn")) if variant == POOL else None
    if pool is not None:
        wait([pool.submit(warm_up) for _ in range(POOL_SIZE)])

    class Pages(scrapy.Spider):
        name = "pages"

        async def start(self) -> AsyncIterator[Any]:
            self.sampler = asyncio.get_running_loop().create_task(meter.watch_loop())
            for number in range(pages):
                yield scrapy.Request(f"http://127.0.0.1:{port}/{number}")

        async def parse(self, response: Any) -> AsyncIterator[dict[str, Any]]:
            item = {"url": response.url}
            if variant == PEER:
                item["markdown"] = peer(response.text, response.url)
            elif pool is not None:
                loop = asyncio.get_running_loop()
                item["markdown"] = await loop.run_in_executor(pool, peer, response.text, response.url)
            yield item

        def closed(self, _: str) -> None:
            self.sampler.cancel()

    ours = {"ADDONS": {"scrapy_dripper.Addon": 500}, "DRIPPER_PROCESSES": PROCESSES.get(variant)}
    process = AsyncCrawlerProcess({**SETTINGS, **(ours if variant in PROCESSES else {})})
    crawler = process.create_crawler(Pages)
    crawler.signals.connect(meter.mark, signals.spider_opened)
    crawler.signals.connect(meter.mark, signals.spider_closed)
    crawler.signals.connect(meter.count, signals.item_scraped)
    process.crawl(crawler)
    threading.Thread(target=meter.watch_memory, daemon=True).start()
    process.start()
    if pool is not None:
        pool.shutdown()
    assert crawler.stats is not None
    stats = crawler.stats.get_stats()
    prefix = "dripper/fallback/"
    return {
        **meter.figures(pages),
        "lost": pages - stats.get("item_scraped_count", 0),
        "errors": stats.get("log_count/ERROR", 0),
        "fallbacks": {key.removeprefix(prefix): stats[key] for key in stats if key.startswith(prefix)},
    }


def warm_up() -> None:
    """Import in a process of the pool what its first page would have to import."""
    import trafilatura  # noqa: F401

    time.sleep(1)  # so that each process of the pool gets one call


def peer(html: str, url: str) -> str | None:
    """Return Trafilatura's extraction of a page."""
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    found: str | None = trafilatura.extract(html, url=url, output_format="markdown")
    return found


def run(arguments: argparse.Namespace) -> str:
    """Run all crawls and return the report."""
    sample(arguments.data, arguments.pages, arguments.seed)  # reports missing data before anything starts
    command = [sys.executable, str(Path(__file__).resolve())]
    common = ["--data", str(arguments.data), "--pages", str(arguments.pages), "--seed", str(arguments.seed)]
    turns = [variant for _ in range(arguments.repeats) for variant in VARIANTS]
    chance = random.Random(arguments.seed)
    for start in range(0, len(turns), len(VARIANTS)):
        turns[start : start + len(VARIANTS)] = chance.sample(VARIANTS, len(VARIANTS))
    results: dict[str, list[dict[str, Any]]] = {variant: [] for variant in VARIANTS}
    with served([*command, "--serve", *common]) as (port, pages):
        for variant in tqdm(turns, unit="crawl"):
            child = [*command, "--crawl", variant, "--port", str(port), "--pages", str(pages)]
            results[variant].append(crawled(child))
    return report(results, pages, arguments)


def report(results: dict[str, list[dict[str, Any]]], pages: int, arguments: argparse.Namespace) -> str:
    """Return the tables as text."""

    def median(variant: str, figure: str) -> float:
        return statistics.median(result[figure] for result in results[variant])

    rows = []
    for variant in VARIANTS:
        speeds = [result["pages/s"] for result in results[variant]]
        rows.append(
            [
                variant,
                f"{statistics.median(speeds):.1f}",
                f"{min(speeds):.1f}-{max(speeds):.1f}",
                f"{median(variant, 'pages/s') / median(PEER, 'pages/s'):.2f}",
                f"{median(variant, 'pages/s') / median(THREAD, 'pages/s'):.2f}",
                f"{median(variant, 'cpu'):.1f}",
                f"{median(variant, 'cpu of children'):.1f}",
                f"{median(variant, 'lag p50'):.1f}",
                f"{median(variant, 'lag p95'):.1f}",
                f"{median(variant, 'lag p99'):.1f}",
                f"{median(variant, 'memory'):.0f}",
                str(sum(result["lost"] for result in results[variant])),
                str(sum(result["errors"] for result in results[variant])),
                "-" if variant == NOTHING else f"{median(variant, 'empty'):.0f}",
            ]
        )
    fallbacks: Counter[str] = Counter()
    for result in results[TWO]:
        fallbacks.update(result["fallbacks"])
    reasons = ", ".join(f"{name} {count / arguments.repeats:g}" for name, count in fallbacks.most_common()) or "none"
    columns = (
        "pages/s,range,/ trafilatura,/ thread,CPU ms/page,in children,lag p50 ms,lag p95 ms,lag p99 ms,peak MB,lost,"
        "errors,empty"
    )
    return "\n\n".join(
        [
            heading("crawl.py", ["scrapy-dripper", "scrapy", "twisted", "trafilatura", "onnxruntime"]),
            f"{pages} pages from a server on the loopback interface, seed {arguments.seed}; every variant "
            f"{arguments.repeats} times, in turns: medians,\nand sums for lost items and logged errors. "
            f"CONCURRENT_REQUESTS is {SETTINGS['CONCURRENT_REQUESTS']}, everything else is Scrapy's default; one item "
            "per page.\n"
            "Lag is the delay of a 20 ms timer in the event loop; empty items have no Markdown. Peak MB is\n"
            "the memory of all processes, with shared memory counted once.\n"
            f"Fallbacks of the plugin in a crawl, by reason: {reasons}.",
            table(["crawl", *columns.split(",")], rows),
        ]
    )


def main() -> None:
    """Run the benchmark, or one of the processes that it starts."""
    parser = argparse.ArgumentParser(description="Crawls with the plugin, with Trafilatura, with neither.")
    parser.add_argument("--data", type=Path, default=DEFAULT, help="folder of *.html; default: .cache/wcxb-dev/html")
    parser.add_argument("--pages", type=int, default=500, help="default: 500")
    parser.add_argument("--repeats", type=int, default=3, help="crawls of each variant; default: 3")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "crawl.txt", help="where the report goes"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--crawl", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments)
    elif arguments.crawl:
        print(json.dumps(crawl(arguments.crawl, arguments.port, arguments.pages)))
    else:
        publish(run(arguments), arguments.output)


if __name__ == "__main__":
    main()
