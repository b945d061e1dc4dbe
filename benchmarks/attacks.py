"""Live crawls with a hostile page among good ones: delays of the event loop, speed of the other pages, and shutdown.

The pages come from a server in its own process, and each crawl runs in a fresh process with two workers. In the middle
of a crawl, one hostile page is requested. While it is processed, the good pages are counted. This is compared with the
same part of crawls without the hostile page, before and after all others. A second crawl of each page gets SIGINT as
soon as the page is processed, and the time until the crawl ends is measured.

In the first row, the engine gets stuck in a regular expression, which blocks the interpreter and does not end. The
other pages blocked or filled a crawl once.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import json
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attack_engine import BURN
from common import DEFAULT, crawled, heading, publish, sample, serve_pages, served, table
from crawl import SAMPLING, SETTINGS
from tqdm import tqdm

from scrapy_dripper.config import Config

WORKERS = 2
AT = 0.4
"""Share of the good pages that are requested before the hostile one."""
CONTROL = "(none)"
LONG = 20_000
_TEXT = "<p>" + "A page that would hold a crawl is one among many that are as they should be. " * 4 + "</p>"


def _page(body: str, head: str = "") -> bytes:
    return f"<!doctype html><html><head><title>A page</title>{head}</head><body>{_TEXT}{body}</body></html>".encode()


ATTACKS: Mapping[str, bytes] = {
    "an engine that is stuck for ever": _page(""),
    "placeholder of an image": _page(f'<img src="/blank{"-12345678" * 60}....x">'),
    "CDATA in TeX": _page(f'<script type="math/tex"><![CDATA[ x{" " * LONG}y</script>'),
    "number of an equation": _page(
        f'<div class="math"><span class="eqno">{" " * LONG}1{" " * LONG}|</span><img class="math" alt="x^2"></div>'
    ),
    "underscores in a word": _page(f"<p>a{'_' * LONG}b</p>"),
    "way back of a footnote": _page(
        f'<p>x<sup><a href="#f" id="b">1</a></sup></p><p id="f">y <a href="#b">{" " * LONG}^'
    ),
    "width of an image": _page(f'<img src="a.jpg" width="{"0" * LONG}x" alt="a">'),
    "file of an image": _page(f'<img data-foo="{"a.jpg?" * (LONG // 6)} " alt="a">'),
    "blank lines in TeX": _page(f'<script type="math/tex">a{" " * LONG}b\nc</script>'),
    "comments in TeX": _page(f'<script type="math/tex">{"%" * LONG}\nx</script>'),
    "formula of an image's URL": _page(f'<img src="https://latex.example/?{"=" * LONG}" alt="x">'),
    "authors in JSON-LD": _page(
        "", f'<script type="application/ld+json">{chr(34)}author" ' + '"author" ' * 12_000 + "</script>"
    ),
    "publishers in JSON-LD": _page(
        "", '<script type="application/ld+json">' + '"publisher": {"name ' * 12_000 + "</script>"
    ),
    "ragged table, 190 kB": _page(f"<table><tr>{'<th>x' * 9_500}{'<tr><td>x<td>y' * 9_500}</table>"),
    "<base> of 4 kB, 90,000 links": _page(
        "<a href=x>y</a> " * 90_000, f"<base href='https://example.org/{'a/' * 2_000}'>"
    ),
    "200,000 nested <div>": _page("<div>" * 200_000),
    "1 MB of <p>x": _page("<p>x" * 250_000),
}


def serve(arguments: argparse.Namespace) -> None:
    """Serve good pages as /page/0, ... and hostile ones as /burn/0, /attack/1, ... until standard input ends."""
    pages, _ = sample(arguments.data, arguments.pages, arguments.seed)
    bodies = {f"/page/{number}": page.path.read_bytes() for number, page in enumerate(pages)}
    bodies |= {path(name): body for name, body in ATTACKS.items()}
    print(serve_pages(lambda path, _: bodies[path]), len(pages), flush=True)
    sys.stdin.read()


def path(name: str) -> str:
    """Return the path of a hostile page."""
    number = list(ATTACKS).index(name)
    return f"/attack/{number}" if number else f"{BURN}0"


def crawl(name: str, port: int, pages: int, timeout: float) -> dict[str, Any]:
    """Crawl in this process and return the measurements. Print a line before the hostile page is processed."""
    import scrapy
    from scrapy import signals
    from scrapy.crawler import AsyncCrawlerProcess

    hostile = None if name == CONTROL else f"http://127.0.0.1:{port}{path(name)}"
    lags: list[tuple[float, float]] = []
    done: list[float] = []
    asked: list[float] = []
    end: dict[str, Any] = {}

    async def watch() -> None:
        while True:
            due = time.perf_counter() + SAMPLING
            await asyncio.sleep(SAMPLING)
            now = time.perf_counter()
            lags.append((now, 1000 * (now - due)))

    class Pages(scrapy.Spider):
        name = "pages"

        async def start(self) -> AsyncIterator[Any]:
            self.sampler = asyncio.get_running_loop().create_task(watch())
            for number in range(pages):
                if hostile and number == int(AT * pages):
                    yield scrapy.Request(hostile, priority=10)
                yield scrapy.Request(f"http://127.0.0.1:{port}/page/{number}")

        def parse(self, response: Any) -> Any:
            if response.url == hostile:
                asked.append(time.perf_counter())
                print("working", flush=True)
            yield {"url": response.url}

        def closed(self, _: str) -> None:
            self.sampler.cancel()

    def scraped(item: dict[str, Any]) -> None:
        now = time.perf_counter()
        if item["url"] == hostile:
            about = item["about"]
            end.update(seconds=now - asked[0], end=about["source"], reason=about["fallback_reason"], at=now)
        else:
            done.append(now)

    process = AsyncCrawlerProcess(
        {
            **SETTINGS,
            "ADDONS": {"scrapy_dripper.Addon": 500},
            "DRIPPER_PROCESSES": WORKERS,
            "DRIPPER_ENGINE": "attack_engine.Burning",
            "DRIPPER_TIMEOUT": timeout,
            "DRIPPER_META_FIELD": "about",
        }
    )
    crawler = process.create_crawler(Pages)
    crawler.signals.connect(scraped, signals.item_scraped)
    process.crawl(crawler)
    process.start()
    assert crawler.stats is not None
    known = [lag for now, lag in lags if not asked or asked[0] <= now <= end.get("at", now)] or [lag for _, lag in lags]
    return {
        **end,
        "lag": sorted(known)[int(0.99 * len(known))],
        "done": done,
        "asked": asked[0] if asked else None,
        "lost": crawler.stats.get_value("response_received_count", 0)
        - crawler.stats.get_value("item_scraped_count", 0),
    }


def rate(result: Mapping[str, Any]) -> float:
    """Return the number of good pages per second, after the first tenth of them."""
    times = sorted(result["done"])
    first, last = len(times) // 10, len(times) - 1
    return (last - first) / (times[last] - times[first])


def beside(result: Mapping[str, Any], controls: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the speed of the good pages while the hostile one was processed, relative to crawls without it.

    The same pages are compared, because some take longer than others. As many pages as a batch has are left out,
    because the pages of the hostile page's batch may have to wait for it. The result is None if the hostile page took
    less than two seconds, which is too short to measure.
    """
    times = sorted(result["done"])
    begin, end = result["asked"], min(result.get("at", times[-1]), times[-1])
    if end - begin < 2:
        return None
    first, last = bisect.bisect(times, begin), min(bisect.bisect(times, end), len(times) - Config().batch_size) - 1
    if last - first < Config().batch_size:
        return None
    without = [sorted(control["done"]) for control in controls]
    return statistics.mean(done[last] - done[first] for done in without) / (times[last] - times[first])


def run(arguments: argparse.Namespace) -> str:
    """Run all crawls and return the report."""
    command = [sys.executable, str(Path(__file__).resolve())]
    common = ["--data", str(arguments.data), "--pages", str(arguments.pages), "--seed", str(arguments.seed)]
    names = [name for name in ATTACKS if any(part in name for part in arguments.only.split(","))]
    rows = []
    with served([*command, "--serve", *common]) as (port, pages):

        def child(name: str) -> list[str]:
            options = ["--port", str(port), "--pages", str(pages), "--timeout", str(arguments.timeout)]
            return [*command, "--crawl", name, *options]

        crawls = [CONTROL, *names] * arguments.repeat + [CONTROL]
        results: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for name in tqdm(crawls, unit="crawl"):
            results[name].append(crawled(child(name)))
        controls = results.pop(CONTROL)
        normal = statistics.mean(map(rate, controls))
        for name in tqdm(names, unit="stop"):
            runs = results[name]
            with subprocess.Popen(child(name), stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(0.5)
                begin = time.perf_counter()
                process.send_signal(signal.SIGINT)
                process.stdout.read()
            stopped = time.perf_counter() - begin
            speeds = [speed for run in runs if (speed := beside(run, controls)) is not None]
            rows.append(
                [
                    name,
                    f"{len(ATTACKS[name]):,}",
                    " ".join(sorted({run["reason"] or run["end"] for run in runs})),
                    f"{statistics.median(run['seconds'] for run in runs):.1f}",
                    f"{max(run['lag'] for run in runs):.0f}",
                    f"{statistics.median(map(rate, runs)) / normal:.2f}",
                    f"{statistics.median(speeds):.2f}" if len(speeds) == len(runs) else "-",
                    f"{stopped:.1f}",
                    str(sum(run["lost"] for run in runs)),
                ]
            )
    columns = "hostile page,bytes,end,took s,lag p99 ms,pages/s / without,while it takes,SIGINT to end s,lost".split(
        ","
    )
    low, *_, high = sorted(map(rate, controls))
    return "\n\n".join(
        [
            heading("attacks.py", ["scrapy-dripper", "scrapy", "lxml", "trafilatura"]),
            f"One hostile page among {pages} development pages; {WORKERS} workers, DRIPPER_TIMEOUT is "
            f"{arguments.timeout:g} s. Lag is the delay of a\n20 ms timer"
            " in the event loop while the page is processed. Without a hostile page, "
            f"crawls have {low:.1f} to\n{high:.1f} pages/s, whose mean is the reference. 'While it takes' is "
            "relative to the same\npages without it, if it takes two seconds or more. SIGINT is sent half a second "
            "after the page; the crawl\nthen finishes the pages that it has downloaded."
            + (
                f" The table has medians of {arguments.repeat} crawls, and their longest lag."
                if arguments.repeat > 1
                else ""
            ),
            table(columns, rows),
        ]
    )


def main() -> None:
    """Run the benchmark, or one of the processes that it starts."""
    parser = argparse.ArgumentParser(description="Crawls with a hostile page among good ones.")
    parser.add_argument("--data", type=Path, default=DEFAULT, help="folder of *.html; default: .cache/wcxb-dev/html")
    parser.add_argument("--pages", type=int, default=400, help="good pages; default: 400")
    parser.add_argument("--repeat", type=int, default=1, help="crawls beside each page; default: 1")
    parser.add_argument("--timeout", type=float, default=5, help="DRIPPER_TIMEOUT in seconds; default: 5")
    parser.add_argument("--only", default="", help="those with this in their name; several with commas")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "attacks.txt")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--crawl", choices=[CONTROL, *ATTACKS], help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments)
    elif arguments.crawl:
        print(json.dumps(crawl(arguments.crawl, arguments.port, arguments.pages, arguments.timeout)))
    else:
        publish(run(arguments), arguments.output)


if __name__ == "__main__":
    main()
