"""Compare a crawl with the plugin to the same crawl with Trafilatura, in the callback or in a pool, and without either.

The pages come from a server on the loopback interface, each crawl runs in a fresh process, and the variants take turns.
One Trafilatura variant calls ``trafilatura.extract(response.text, url=response.url, output_format="markdown")`` in the
callback, as people usually write it. The other one makes the same call in a ``ProcessPoolExecutor`` and waits for it,
as does one with rs-trafilatura, if that is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any

import numpy as np
import trafilatura
from common import SETTINGS, apart, children_cpu, crawl, options, publish, sample, serve_pages, table, watched
from scrapy import Request, signals
from scrapy.http import Response
from tqdm import tqdm

from scrapy_dripper_lab.evaluation.peers import PEERS, installed_peers, quiet

NOTHING, THREAD, ONE, TWO = "no extraction", "scrapy-dripper, a thread", "1 worker", "2 workers"
PEER, POOL, RUST = "trafilatura in the callback", "trafilatura, 2 processes", "rs-trafilatura, 2 processes"
VARIANTS = (NOTHING, THREAD, ONE, TWO, PEER, POOL, *([RUST] if installed_peers(["rs-trafilatura"]) else []))
PROCESSES = {THREAD: 0, ONE: 1, TWO: 2}
POOL_SIZE = 2
COLUMNS = ["crawl", "pages/s", "range", "/ trafilatura", "CPU ms/page", "in children"]
COLUMNS += ["lag p50 ms", "lag p95 ms", "lag p99 ms", "peak MB", "lost", "errors", "empty"]


def measured(variant: str, server: str, pages: int) -> dict[str, Any]:
    """Crawl all pages in this process and return the measurements."""
    in_pool: Callable[[str, str], str | None] | None = {POOL: peer, RUST: rust}.get(variant)
    pool = ProcessPoolExecutor(POOL_SIZE, get_context("spawn")) if in_pool else None
    if pool is not None and in_pool is not None:
        wait([pool.submit(warm_up, in_pool) for _ in range(POOL_SIZE)])
    marks: list[tuple[float, float, float]] = []
    empty: list[bool] = []

    async def read(response: Response) -> AsyncIterator[dict[str, Any]]:
        item: dict[str, Any] = {"url": response.url}
        if variant == PEER:
            item["markdown"] = peer(response.text, response.url)
        elif in_pool is not None:
            loop = asyncio.get_running_loop()
            item["markdown"] = await loop.run_in_executor(pool, in_pool, response.text, response.url)
        yield item

    def mark() -> None:
        marks.append((time.perf_counter(), time.process_time(), children_cpu(os.getpid())))

    def scraped(item: dict[str, Any]) -> None:
        empty.append(not item.get("markdown"))

    ours = {"ADDONS": {"scrapy_dripper.Addon": 500}, "DRIPPER_PROCESSES": PROCESSES.get(variant)}
    lags: list[tuple[float, float]] = []
    receivers: dict[object, Callable[..., None]] = {
        signals.spider_opened: mark,
        signals.spider_closed: mark,
        signals.item_scraped: scraped,
    }
    requests = (Request(f"{server}/{number}", read) for number in range(pages))
    with watched() as seen:
        stats = crawl(requests, ours if variant in PROCESSES else {}, receivers, lags)
    if pool is not None:
        pool.shutdown()
    seconds, cpu, in_children = np.subtract(marks[1], marks[0]).tolist()
    late = [lag for _, lag in lags] or [0.0]  # a crawl of a few pages ends before the first sample
    prefix = "dripper/fallback/"
    return {
        "pages/s": pages / seconds,
        "cpu": 1000 * cpu / pages,
        "cpu of children": 1000 * in_children / pages,
        **{f"lag p{share}": float(np.percentile(late, share)) for share in (50, 95, 99)},
        "memory": max(megabytes for megabytes, _ in seen),
        "empty": sum(empty),
        "lost": pages - stats.get("item_scraped_count", 0),
        "errors": stats.get("log_count/ERROR", 0),
        "fallbacks": {key.removeprefix(prefix): stats[key] for key in stats if key.startswith(prefix)},
    }


def warm_up(call: Callable[[str, str], object]) -> None:
    """Make a call in a process of the pool, which imports what its first page would have to import."""
    call("<p>The tide is high.</p>", "https://example.org/")
    time.sleep(1)  # so that each process of the pool gets one call


def peer(html: str, url: str) -> str | None:
    """Return Trafilatura's extraction of a page."""
    quiet()
    found: str | None = trafilatura.extract(html, url=url, output_format="markdown")
    return found


def rust(html: str, _url: str) -> str:
    """Return rs-trafilatura's extraction of a page."""
    return PEERS["rs-trafilatura"].load()(html.encode())


def run(arguments: argparse.Namespace) -> list[str]:
    """Run all crawls and return the report."""
    pages, _ = sample(arguments.data, arguments.pages, arguments.seed)
    bodies = [page.read_bytes() for page in pages]
    server = serve_pages(lambda path: bodies[int(path[1:])])
    chance = random.Random(arguments.seed)
    turns = [variant for _ in range(arguments.repeats) for variant in chance.sample(VARIANTS, len(VARIANTS))]
    results: dict[str, list[dict[str, Any]]] = {variant: [] for variant in VARIANTS}
    for variant in tqdm(turns, unit="crawl"):
        results[variant].append(apart(measured, variant, server, len(bodies)))
    return report(results, len(bodies), arguments)


def report(results: dict[str, list[dict[str, Any]]], pages: int, arguments: argparse.Namespace) -> list[str]:
    """Return the parts of the report."""

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
                *(f"{median(variant, one):.1f}" for one in ("cpu", "cpu of children", "lag p50", "lag p95", "lag p99")),
                f"{median(variant, 'memory'):.0f}",
                *(str(sum(result[one] for result in results[variant])) for one in ("lost", "errors")),
                "-" if variant == NOTHING else f"{median(variant, 'empty'):.0f}",
            ]
        )
    fallbacks: Counter[str] = Counter()
    for result in results[TWO]:
        fallbacks.update(result["fallbacks"])
    reasons = ", ".join(f"{name} {count / arguments.repeats:g}" for name, count in fallbacks.most_common()) or "none"
    return [
        f"{pages} pages from a server on the loopback interface, seed {arguments.seed}; {arguments.repeats} crawls "
        "of each variant, in turns: medians,\nand sums for lost items and logged errors. CONCURRENT_REQUESTS is "
        f"{SETTINGS['CONCURRENT_REQUESTS']}; one item per page. Lag is that of a 20 ms timer in the event loop;\n"
        "empty items have no Markdown. Peak MB is of all processes, with shared memory counted once.\n"
        f"Fallbacks of the plugin in a crawl, by reason: {reasons}.",
        table(COLUMNS, rows),
    ]


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__, 500)
    parser.add_argument("--repeats", type=int, default=3, help="crawls of each variant; default: 3")
    arguments = parser.parse_args()
    publish(arguments, ["scrapy-dripper", "scrapy", "twisted", "trafilatura", "onnxruntime"], *run(arguments))


if __name__ == "__main__":
    main()
