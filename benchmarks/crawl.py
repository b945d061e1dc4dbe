"""A crawl with the plugin beside the same crawl with Trafilatura in the callback, and beside one that extracts nothing.

The pages come from a server on the loopback interface in a process of its own, each crawl runs in a fresh process,
and the variants take turns. The callback of the Trafilatura variant makes one call,
``trafilatura.extract(response.text, url=response.url, output_format="markdown")``, as people write it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from corpus import DEFAULT, sample
from report import heading, publish, table
from server import serve_pages
from tqdm import tqdm

NOTHING, PLUGIN, PEER = "no extraction", "scrapy-dripper", "trafilatura in the callback"
VARIANTS = (NOTHING, PLUGIN, PEER)
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


def crawl(variant: str, port: int, pages: int) -> dict[str, Any]:
    """Crawl all pages in this process and return what was measured."""
    import scrapy
    import trafilatura
    from scrapy import signals
    from scrapy.crawler import AsyncCrawlerProcess

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    lags: list[float] = []
    marks: list[tuple[float, float]] = []
    empty = 0

    async def sample_lag() -> None:
        while True:
            due = time.perf_counter() + SAMPLING
            await asyncio.sleep(SAMPLING)
            lags.append(1000 * (time.perf_counter() - due))

    class Pages(scrapy.Spider):
        name = "pages"

        async def start(self) -> AsyncIterator[Any]:
            self.sampler = asyncio.get_running_loop().create_task(sample_lag())
            for number in range(pages):
                yield scrapy.Request(f"http://127.0.0.1:{port}/{number}")

        def parse(self, response: Any) -> Iterator[dict[str, Any]]:
            item = {"url": response.url}
            if variant == PEER:
                item["markdown"] = trafilatura.extract(response.text, url=response.url, output_format="markdown")
            yield item

        def closed(self, _: str) -> None:
            self.sampler.cancel()

    def mark() -> None:
        marks.append((time.perf_counter(), time.process_time()))

    def scraped(item: dict[str, Any]) -> None:
        nonlocal empty
        empty += not item.get("markdown")

    process = AsyncCrawlerProcess(
        {**SETTINGS, **({"ADDONS": {"scrapy_dripper.Addon": 500}} if variant == PLUGIN else {})}
    )
    crawler = process.create_crawler(Pages)
    crawler.signals.connect(mark, signals.spider_opened)
    crawler.signals.connect(mark, signals.spider_closed)
    crawler.signals.connect(scraped, signals.item_scraped)
    process.crawl(crawler)
    process.start()
    assert crawler.stats is not None
    stats = crawler.stats.get_stats()
    (opened, cpu_before), (closed, cpu_after) = marks
    lags = sorted(lags) or [0.0]  # a crawl of a few pages is over before the first sample
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "pages/s": pages / (closed - opened),
        "cpu": 1000 * (cpu_after - cpu_before) / pages,
        "lag p50": statistics.median(lags),
        "lag p95": lags[int(0.95 * len(lags))],
        "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6,
        "lost": pages - stats.get("item_scraped_count", 0),
        "errors": stats.get("log_count/ERROR", 0),
        "empty": 0 if variant == NOTHING else empty,
        "fallbacks": {
            key.removeprefix("dripper/fallback/"): value
            for key, value in stats.items()
            if key.startswith("dripper/fallback/")
        },
    }


def run(arguments: argparse.Namespace) -> str:
    """Run all crawls and return the report."""
    sample(arguments.data, arguments.pages, arguments.seed)  # says what is missing before anything starts
    command = [sys.executable, str(Path(__file__).resolve())]
    common = ["--data", str(arguments.data), "--pages", str(arguments.pages), "--seed", str(arguments.seed)]
    turns = [variant for _ in range(arguments.repeats) for variant in VARIANTS]
    chance = random.Random(arguments.seed)
    for start in range(0, len(turns), len(VARIANTS)):
        turns[start : start + len(VARIANTS)] = chance.sample(VARIANTS, len(VARIANTS))
    results: dict[str, list[dict[str, Any]]] = {variant: [] for variant in VARIANTS}
    server = subprocess.Popen([*command, "--serve", *common], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with server:
        assert server.stdout is not None
        port, pages = map(int, server.stdout.readline().split())
        for variant in tqdm(turns, unit="crawl"):
            child = [*command, "--crawl", variant, "--port", str(port), "--pages", str(pages)]
            done = subprocess.run(child, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"the crawl '{variant}' failed with exit code {done.returncode}")
            results[variant].append(json.loads(done.stdout.splitlines()[-1]))
        assert server.stdin is not None
        server.stdin.close()
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
                f"{median(variant, 'cpu'):.1f}",
                f"{median(variant, 'lag p50'):.1f}",
                f"{median(variant, 'lag p95'):.1f}",
                f"{median(variant, 'rss'):.0f}",
                str(sum(result["lost"] for result in results[variant])),
                str(sum(result["errors"] for result in results[variant])),
                f"{median(variant, 'empty'):.0f}",
            ]
        )
    fallbacks: Counter[str] = Counter()
    for result in results[PLUGIN]:
        fallbacks.update(result["fallbacks"])
    reasons = ", ".join(f"{name} {count / arguments.repeats:g}" for name, count in fallbacks.most_common()) or "none"
    columns = "pages/s,range,/ trafilatura,CPU ms/page,lag p50 ms,lag p95 ms,peak MB,lost,errors,empty"
    return "\n\n".join(
        [
            heading("crawl.py", ["scrapy-dripper", "scrapy", "twisted", "trafilatura", "onnxruntime"]),
            f"{pages} pages from a server on the loopback interface, seed {arguments.seed}; every variant "
            f"{arguments.repeats} times, by turns: medians,\nand sums for lost items and logged errors. "
            f"CONCURRENT_REQUESTS is {SETTINGS['CONCURRENT_REQUESTS']}, everything else Scrapy's default; one item per "
            "page.\n"
            "Lag is how late a timer of 20 ms in the event loop comes; empty are items without Markdown.\n"
            f"Fallbacks of the plugin in a crawl, by reason: {reasons}.",
            table(["crawl", *columns.split(",")], rows),
        ]
    )


def main() -> None:
    """Run the benchmark, or one of the processes that it starts."""
    parser = argparse.ArgumentParser(
        description="Crawls with the plugin, with Trafilatura in the callback, with neither."
    )
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
