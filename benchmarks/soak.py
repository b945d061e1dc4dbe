"""A long crawl over the loopback interface: its last tenth must be as fast as its first, and not need more memory.

The crawl with the plugin and the control crawl without it run in processes of their own. Every tenth of the crawl has
the same pages in the same order. No two responses are equal, because each has its own number in its title, its texts
and its ids. This only works on Linux: memory, files and children are read from ``/proc``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import gc
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import DEFAULT, SEED, SETTINGS, apart, children_cpu, crawl, family, options, publish, sample, serve_pages
from scrapy import Request, signals
from scrapy.settings import Settings
from soak_report import TENTHS, Crawl, Tenth, checks, report
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.workers.pool import processes

CONTROL, PLUGIN = "control", "scrapy-dripper"
SIZES = {
    "tiny": "generated articles of two paragraphs at most",
    "small": "generated articles",
    "mixed": "the smaller half of the pages of the folder, and one of the larger half to every 19",
}
CONCURRENT = SETTINGS["CONCURRENT_REQUESTS"]
TIMERS = {"DOWNLOAD_TIMEOUT": 15}
"""Twisted keeps the timer of a finished download until it would have fired. With Scrapy's 180 seconds, 50,000 timers
would accumulate on the loopback interface before the first ones expire, which takes most of a crawl of ten minutes."""
TAIL = 200
"""Pages beyond those that are measured, so that the last tenth ends with pages in progress, like all others."""
MIN_RESPONSES = 1_000
"""Minimum number of pages of a crawl, because a tenth must be more than the pages in progress at a time."""

_texts = re.compile(rb"(<(?:title|p|h[1-6]|li|td)\b[^<>]*>)", re.IGNORECASE)
_ids = re.compile(rb"""(\sid=["'])""", re.IGNORECASE)
_number = re.compile(r"\bn(\d{8})n\b")


def templates(folder: Path, size: str) -> list[list[bytes]]:
    """Return the pages of the site, each as the pieces between which its number is inserted."""
    chance = random.Random(SEED)
    bodies = [_written(chance, *((1, 2) if size == "tiny" else (15, 25))) for _ in range(50)]
    if size == "mixed":
        files, _ = sample(folder, 1_000_000, SEED)
        real = sorted((file.read_bytes() for file in files), key=len)
        half = (len(real) + 1) // 2
        bodies = real[:half] + chance.sample(real[half:], min(len(real) - half, half // 19))
    chance.shuffle(bodies)
    return [_ids.sub(rb"\1\0", _texts.sub(rb"\1\0 ", body.replace(b"\0", b""))).split(b"\0") for body in bodies]


def _written(chance: random.Random, least: int, most: int) -> bytes:
    """Return an article with a menu and a footer. Its 15 to 25 paragraphs make about 10 kB."""
    words = "tide moon water coast harbour sailor chart depth current wind high low spring neap hour day".split()

    def sentence() -> str:
        return " ".join(chance.choices(words, k=chance.randint(8, 16))).capitalize() + "."

    menu = "".join(f"<li id=menu-{i}><a href='/menu/{i}'>{chance.choice(words)}</a></li>" for i in range(30))
    text = "".join(f"<p>{' '.join(sentence() for _ in range(5))}</p>" for _ in range(chance.randint(least, most)))
    return (
        f"<!DOCTYPE html><html><head><title>{sentence()}</title></head><body><nav><ul>{menu}</ul></nav>"
        f"<article id='article'><h1>{sentence()}</h1>{text}</article>"
        "<footer><a href='/terms'>Terms</a> <a href='/contact'>Contact</a></footer></body></html>"
    ).encode()


class Meter:
    """Measures its own process, one tenth of the crawl at a time."""

    def __init__(self, responses: int) -> None:
        self._pid = os.getpid()
        self.responses, self.items = responses, 0
        self.seen = bytearray(responses + min(TAIL, responses))
        self.problems: Counter[str] = Counter()
        self.tenths: list[Tenth] = []
        self.foreign = 0
        self._libc = ctypes.CDLL(None)
        self._from = (0, 0.0, 0.0)

    def start(self) -> None:
        """Begin a tenth."""
        self._from = (self.items, time.perf_counter(), self._cpu())

    def item(self, item: dict[str, Any]) -> None:
        """Record an item, and measure everything after every tenth of the crawl."""
        number, markdown = item["number"], item.get("markdown") or ""
        self.seen[number] += 1
        found = _number.search(markdown)
        self.foreign += found is not None and int(found[1]) != number
        described = item.get("dripper") or {}
        if described.get("fallback_reason") or described.get("error"):
            self.problems[f"{described.get('fallback_reason')}: {described.get('error')}"[:160]] += 1
        self.items += 1
        if self.items > self.responses:
            return
        if self.items * TENTHS // self.responses > (self.items - 1) * TENTHS // self.responses:
            self.tenths.append(self._tenth())
            self.start()

    def _tenth(self) -> Tenth:
        items, wall, cpu = self._from
        pages = self.items - items
        wall, cpu = time.perf_counter() - wall, self._cpu() - cpu
        workers = [_figures(pid) for pid in family(self._pid)[1:]]
        rss, threads, files = _figures(self._pid)
        gc.collect()
        objects = gc.get_objects()
        kinds = [type(one).__name__ for one in objects]
        if hasattr(self._libc, "malloc_trim"):
            self._libc.malloc_trim(0)
        return {
            "items": self.items,
            "pages/s": pages / wall,
            "CPU ms/page": 1000 * cpu / pages,
            "RSS": rss,
            "trimmed": _figures(self._pid)[0],
            "malloc": _heap(self._libc),
            "a worker's RSS": sum(memory for memory, _, _ in workers) / max(1, len(workers)),
            "objects": len(objects),
            "threads": threads,
            "files": files,
            "children": len(workers),
            "worker_threads": max((threads for _, threads, _ in workers), default=0),
            "worker_files": max((files for _, _, files in workers), default=0),
            "jobs": kinds.count("Job"),
            "responses": kinds.count("HtmlResponse"),
            "futures": sum(isinstance(one, asyncio.Future) for one in objects),
        }

    def _cpu(self) -> float:
        """Return the CPU seconds of this process and its workers, including those that have ended."""
        return time.process_time() + children_cpu(self._pid)


def _figures(pid: int) -> tuple[float, int, int]:
    """Return the RSS in megabytes, the threads and the files of a process; zeros if it has ended."""
    folder = Path(f"/proc/{pid}")
    with contextlib.suppress(OSError):
        memory = int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        return memory, len(os.listdir(folder / "task")), len(os.listdir(folder / "fd"))
    return 0, 0, 0


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def _heap(libc: ctypes.CDLL) -> float:
    """Return the megabytes allocated by malloc and not freed; 0 if the C library does not report them."""
    if not hasattr(libc, "mallinfo2"):
        return 0
    libc.mallinfo2.restype = _Mallinfo
    info = libc.mallinfo2()
    return float(info.uordblks + info.hblkhd) / 1e6


def measured(variant: str, server: str, responses: int, settings: list[str]) -> Crawl:
    """Crawl the site in this process and return what was measured."""
    tail = min(TAIL, responses)
    meter = Meter(responses)
    progress = tqdm(total=responses + tail, unit="page", desc=variant, mininterval=1.0, smoothing=0.05)

    def requests() -> Iterator[Request]:
        meter.start()
        for number in range(CONCURRENT):
            yield from page(number)

    def page(number: int) -> Iterator[Request]:
        if number < responses + tail:
            yield Request(f"{server}/{number}", read, cb_kwargs={"number": number}, errback=failed)

    def read(_: Any, number: int) -> Iterator[Any]:
        yield {"number": number}
        yield from page(number + CONCURRENT)

    def failed(failure: Any) -> Iterator[Any]:
        yield from page(failure.request.cb_kwargs["number"] + CONCURRENT)

    def scraped(item: dict[str, Any]) -> None:
        progress.update()
        meter.item(item)

    addons: dict[str, Any] = {}
    if variant != CONTROL:
        addons = {"ADDONS": {"scrapy_dripper.Addon": 500}, "DRIPPER_META_FIELD": "dripper"}
        addons |= dict(setting.partition("=")[::2] for setting in settings)
    stats = crawl(requests(), {**TIMERS, **addons}, {signals.item_scraped: scraped})
    progress.close()
    return Crawl(
        tenths=meter.tenths,
        requests=responses + tail,
        responses=stats.get("response_received_count", 0),
        faults={
            "lost": meter.seen.count(0),
            "twice": sum(count > 1 for count in meter.seen),
            "foreign": meter.foreign,
            "errors": stats.get("log_count/ERROR", 0),
        },
        processes=0 if variant == CONTROL else processes(Config.from_settings(Settings(addons))),
        problems=dict(meter.problems.most_common(12)),
        stats={key: value for key, value in stats.items() if key.startswith("dripper/")},
    )


def run(arguments: argparse.Namespace) -> tuple[str, dict[str, Crawl]]:
    """Run both crawls of a site with /0, /1, ... Return a description of the site, and the measurements."""
    pages = templates(arguments.data, arguments.size)
    tenth = -(-arguments.responses // TENTHS)

    def page(path: str) -> bytes:
        number = int(path[1:])
        return (b"n%08dn" % number).join(pages[number % tenth % len(pages)])

    server = serve_pages(page)
    crawls: dict[str, Crawl] = {}
    for variant in (PLUGIN,) if arguments.alone else (CONTROL, PLUGIN):
        crawls[variant] = apart(measured, variant, server, arguments.responses, arguments.set)
        if len(crawls[variant].tenths) < TENTHS:
            raise SystemExit(f"the crawl '{variant}' was stopped before it had {arguments.responses} items")
    sizes = [sum(map(len, pages[i % len(pages)])) for i in range(tenth)]
    return (
        f"{arguments.responses} responses: {SIZES[arguments.size]} ({len(pages)} in turns), "
        f"{sum(sizes) / len(sizes) / 1000:.0f} kB on average and {max(sizes) / 1000:.0f} kB at most,\n"
        "each with a number of its own in title, texts and ids."
    ), crawls


def main() -> None:
    """Run the benchmark. Exits with 1 if a check fails."""
    parser = options(__doc__)
    parser.add_argument("--responses", type=int, default=50_000, help="default: 50000")
    parser.add_argument("--data", type=Path, default=DEFAULT, help="folder of *.html; default: .cache/wcxb-dev/html")
    parser.add_argument("--size", choices=SIZES, default="mixed", help="which pages; default: mixed")
    parser.add_argument("--processes", type=int, metavar="N", help="DRIPPER_PROCESSES; default: the plugin's")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a Scrapy setting")
    parser.add_argument("--alone", action="store_true", help="no control crawl")
    parser.add_argument("--steady", action="store_true", help="speed is not judged")
    arguments = parser.parse_args()
    if not Path("/proc/self/statm").exists():
        parser.error("this benchmark reads /proc, which only Linux has")
    if arguments.responses < MIN_RESPONSES:
        parser.error(f"--responses must be at least {MIN_RESPONSES} (got {arguments.responses})")
    if arguments.processes is not None:
        arguments.set.append(f"DRIPPER_PROCESSES={arguments.processes}")
    site, crawls = run(arguments)
    found = checks(crawls[PLUGIN], crawls.get(CONTROL), speed=not arguments.steady)
    parts = report(site, crawls[PLUGIN], crawls.get(CONTROL), found)
    publish(arguments, ["scrapy-dripper", "scrapy", "twisted", "lxml", "onnxruntime"], *parts)
    sys.exit(not all(good for *_, good in found))


if __name__ == "__main__":
    main()
