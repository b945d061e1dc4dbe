"""Live crawls with a hostile page among good ones: delays of the event loop, speed of the other pages, and shutdown.

The pages come from a server on the loopback interface, and each crawl runs in a fresh process with two workers. In the
middle of a crawl, one hostile page is requested. While it is processed, the good pages are counted. This is compared
with the same part of crawls without the hostile page, before and after all others. A second crawl of each page gets
SIGINT as soon as the page is processed, and the time until the crawl ends is measured.

In the first row, the engine gets stuck in a regular expression, which blocks the interpreter and does not end. The
other pages blocked or filled a crawl once. Pages against single patterns are those of ``tests/linear``.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from attack_engine import BURN
from common import apart, crawl, options, publish, sample, serve_pages, table
from scrapy import Request, signals
from scrapy.http import Response
from tqdm import tqdm

WORKERS, TIMEOUT = 2, 5
AT = 0.4
"""Share of the good pages that are requested before the hostile one."""
CONTROL = "(none)"
_TEXT = "<p>" + "A page that would hold a crawl is one among many that are as they should be. " * 4 + "</p>"


def _page(body: str, head: str = "") -> bytes:
    return f"<!doctype html><html><head><title>A page</title>{head}</head><body>{_TEXT}{body}</body></html>".encode()


ATTACKS: Mapping[str, bytes] = {
    "an engine that is stuck for ever": _page(""),
    "ragged table, 190 kB": _page(f"<table><tr>{'<th>x' * 9_500}{'<tr><td>x<td>y' * 9_500}</table>"),
    "<base> of 4 kB, 90,000 links": _page(
        "<a href=x>y</a> " * 90_000, f"<base href='https://example.org/{'a/' * 2_000}'>"
    ),
    "200,000 nested <div>": _page("<div>" * 200_000),
    "1 MB of <p>x": _page("<p>x" * 250_000),
}


def path(name: str) -> str:
    """Return the path of a hostile page."""
    number = list(ATTACKS).index(name)
    return f"/attack/{number}" if number else f"{BURN}0"


def measured(name: str, server: str, pages: int, interrupt: bool = False) -> dict[str, Any]:
    """Crawl in this process and return the measurements.

    With ``interrupt``, the process gets SIGINT half a second after the hostile page has arrived.
    """
    hostile = None if name == CONTROL else server + path(name)
    lags: list[tuple[float, float]] = []
    done: list[float] = []
    asked: list[float] = []
    end: dict[str, Any] = {}

    def stop() -> None:
        end["interrupted"] = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    def requests() -> Iterator[Request]:
        for number in range(pages):
            if hostile and number == int(AT * pages):
                yield Request(hostile, read_hostile, priority=10)
            yield Request(f"{server}/page/{number}")

    def read_hostile(response: Response) -> Iterator[Any]:
        asked.append(time.perf_counter())
        if interrupt:
            threading.Timer(0.5, stop).start()  # in a thread, in case the event loop is blocked
        yield {"url": response.url}

    def scraped(item: dict[str, Any]) -> None:
        now = time.perf_counter()
        if item["url"] == hostile:
            about = item["about"]
            end.update(seconds=now - asked[0], end=about["source"], reason=about["fallback_reason"], at=now)
        else:
            done.append(now)

    settings = {
        "ADDONS": {"scrapy_dripper.Addon": 500},
        "DRIPPER_PROCESSES": WORKERS,
        "DRIPPER_ENGINE": "attack_engine.load",
        "DRIPPER_TIMEOUT": TIMEOUT,
        "DRIPPER_META_FIELD": "about",
    }
    stats = crawl(requests(), settings, {signals.item_scraped: scraped}, lags)
    known = [lag for now, lag in lags if not asked or asked[0] <= now <= end.get("at", now)] or [lag for _, lag in lags]
    return {
        **end,
        "lag": float(np.percentile(known, 99)),
        "done": done,
        "lost": stats.get("response_received_count", 0) - stats.get("item_scraped_count", 0),
    }


def rate(result: Mapping[str, Any]) -> float:
    """Return the number of good pages per second, after the first tenth of them."""
    times = sorted(result["done"])
    first, last = len(times) // 10, len(times) - 1
    return (last - first) / (times[last] - times[first])


def run(arguments: argparse.Namespace) -> list[str]:
    """Run all crawls and return the report."""
    samples, _ = sample(arguments.data, arguments.pages, arguments.seed)
    bodies = {f"/page/{number}": page.read_bytes() for number, page in enumerate(samples)}
    bodies |= {path(name): body for name, body in ATTACKS.items()}
    crawls = (serve_pages(bodies.__getitem__), len(samples))
    results: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name in tqdm([CONTROL, *ATTACKS] * arguments.repeat + [CONTROL], unit="crawl"):
        results[name].append(apart(measured, name, *crawls))
    controls = results.pop(CONTROL)
    normal = statistics.mean(map(rate, controls))
    rows = []
    for name in tqdm(ATTACKS, unit="stop"):
        runs = results[name]
        # The clock is the same in all processes.
        begin = apart(measured, name, *crawls, True)["interrupted"]
        stopped = time.perf_counter() - begin
        rows.append(
            [
                name,
                f"{len(ATTACKS[name]):,}",
                " ".join(sorted({run["reason"] or run["end"] for run in runs})),
                f"{statistics.median(run['seconds'] for run in runs):.1f}",
                f"{max(run['lag'] for run in runs):.0f}",
                f"{statistics.median(map(rate, runs)) / normal:.2f}",
                f"{stopped:.1f}",
                str(sum(run["lost"] for run in runs)),
            ]
        )
    columns = "hostile page,bytes,end,took s,lag p99 ms,pages/s / without,SIGINT to end s,lost"
    low, *_, high = sorted(map(rate, controls))
    return [
        f"One hostile page among {len(samples)} development pages; {WORKERS} workers, DRIPPER_TIMEOUT is {TIMEOUT} s. "
        "Lag is the delay of a\n20 ms timer in the event loop while the page is processed. "
        f"Without a hostile page, crawls have {low:.1f} to\n{high:.1f} pages/s, whose mean is the "
        "reference. SIGINT is sent half a second after the page; the crawl\nthen finishes the pages that it has "
        f"downloaded. The table has medians of {arguments.repeat} crawls, and their longest lag.",
        table(columns.split(","), rows),
    ]


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__, 400)
    parser.add_argument("--repeat", type=int, default=1, help="crawls beside each page; default: 1")
    arguments = parser.parse_args()
    publish(arguments, ["scrapy-dripper", "scrapy", "lxml", "trafilatura"], *run(arguments))


if __name__ == "__main__":
    main()
