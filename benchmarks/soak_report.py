"""The report of a long crawl: tables and checks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from common import heading, table

TENTHS = 10
WARM_UP = 3
"""Number of tenths that are left out of the fit, because caches and heaps fill."""
ENDS = 3
"""Number of tenths at each end that are compared. A single tenth varies by about 5 %."""
SLOWER = 0.2
"""How much slower than the first tenths the last ones may be, without regard to the machine."""
MORE_CPU = 0.1
"""How much more CPU time than the first tenths the last ones may take."""
GROWTH = 50.0
"""Bytes per page by which memory may grow more than without the plugin: 50 MB in a million pages."""
NOISE = 5e6
"""Bytes by which the memory of two crawls can differ by chance."""

COUNTS = {
    "threads": 1,
    "files": 8,
    "children": 0,
    "worker_threads": 0,
    "worker_files": 0,
    "jobs": 32,
    "responses": 32,
    "futures": 500,
}
"""Counts that must not grow, and by how much they vary with the pages in progress. A job is a page whose future is
pending; asyncio has two more for each of the ``CONCURRENT_ITEMS`` tasks of a response in progress."""
BY_WORKER = {"threads": 2, "files": 8, "children": 2}
"""How much more they vary for each possible worker process, with its stand-in and what belongs to them."""


@dataclass(frozen=True)
class Tenth:
    """One tenth of a crawl. Memory is in bytes, and counts are those at its end."""

    items: int
    """Number of items since the beginning of the crawl."""
    pages_per_second: float
    cpu_per_page: float
    """CPU seconds of all threads of the process and its workers."""
    rss: int
    trimmed: int
    """RSS after a garbage collection and ``malloc_trim``."""
    heap: int
    """Memory allocated by malloc, without fragmentation and without Python's own allocator."""
    objects: int
    threads: int
    files: int
    children: int
    worker_rss: int
    """Mean RSS of a worker process; 0 without workers."""
    worker_threads: int
    """Number of threads of the worker process that has the most."""
    worker_files: int
    futures: int
    jobs: int
    responses: int


@dataclass(frozen=True)
class Crawl:
    """The measurements of one crawl."""

    tenths: list[Tenth]
    requests: int
    """Number of requests of the ten tenths, and a few more to keep the crawl busy to the end of the last tenth."""
    responses: int
    lost: int
    twice: int
    foreign: int
    """Number of items with the text of another page."""
    errors: int
    processes: int
    """Peak number of worker processes."""
    problems: dict[str, int]
    """Fallback reasons and their errors, with counts."""
    stats: dict[str, Any]


@dataclass(frozen=True)
class Slope:
    """The slope of a line through memory, in bytes per page, with its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:+.0f} +- {self.error:.0f} kB per 1,000 pages"


def slope(items: Sequence[int], memory: npt.NDArray[np.float64]) -> Slope:
    """Return the least-squares slope through the tenths after the warm-up."""
    (value, _), covariance = np.polyfit(items[WARM_UP:], memory[WARM_UP:], 1, cov=True)
    return Slope(float(value), float(np.sqrt(covariance[0, 0])))


def growth(crawl: Crawl, control: Crawl | None, what: str) -> Slope:
    """Return the growth of a figure over the tenths, minus its growth without the plugin."""
    own = _series(crawl, what) - (0 if control is None else _series(control, what))
    return slope([tenth.items for tenth in crawl.tenths], own)


def _series(crawl: Crawl, what: str) -> npt.NDArray[np.float64]:
    return np.array([getattr(tenth, what) for tenth in crawl.tenths], dtype=np.float64)


def grows(values: Sequence[float], slack: float) -> bool:
    """Return True if the last three values all exceed the first three, by more than a tenth and the slack."""
    return min(values[-3:]) > 1.1 * max(values[:3]) + slack


def checks(crawl: Crawl, control: Crawl | None, *, speed: bool) -> list[tuple[str, str, bool]]:
    """Return the name, the result and the outcome of each check."""
    found = _speed(crawl) if speed else []
    limit = GROWTH + NOISE / (crawl.tenths[-1].items - crawl.tenths[WARM_UP - 1].items)
    for name, what in (("RSS", "rss"), ("RSS, trimmed", "trimmed"), ("malloc in use", "heap")):
        line = growth(crawl, control, what)
        beyond = "" if control is None else " beyond the control's"
        found.append((f"growth of {name}", f"{line}{beyond}", line.value - 2 * line.error <= limit))
    line = growth(crawl, None, "worker_rss")
    found.append(("growth of a worker's RSS", str(line), line.value - 2 * line.error <= limit))
    for name, least in COUNTS.items():
        values = [getattr(tenth, name) for tenth in crawl.tenths]
        slack = least + crawl.processes * BY_WORKER.get(name, 0)
        found.append((f"growth of {name}", f"{values[0]} to {values[-1]}", not grows(values, slack)))
    objects = [tenth.objects for tenth in crawl.tenths]
    found.append(("growth of Python objects", f"{objects[0]} to {objects[-1]}", not grows(objects, 0)))
    found.append(("responses", f"{crawl.responses} of {crawl.requests}", crawl.responses == crawl.requests))
    for name in ("lost", "twice", "foreign", "errors"):
        count = getattr(crawl, name)
        found.append((name, str(count), count == 0))
    return found


def _speed(crawl: Crawl) -> list[tuple[str, str, bool]]:
    rates, times = ([getattr(t, name) for t in crawl.tenths] for name in ("pages_per_second", "cpu_per_page"))
    rate, cpu = (sum(values[-ENDS:]) / sum(values[:ENDS]) for values in (rates, times))
    return [
        (f"pages/s, last {ENDS} tenths / first {ENDS}", f"{rate:.3f}", rate >= 1 - SLOWER),
        (f"CPU per page, last {ENDS} tenths / first {ENDS}", f"{cpu:.3f}", cpu <= 1 + MORE_CPU),
    ]


def report(site: str, crawl: Crawl, control: Crawl | None, found: list[tuple[str, str, bool]]) -> str:
    """Return the whole report as text."""
    stats = crawl.stats
    outcomes = [f"{key.removeprefix('dripper/pages/')} {value}" for key, value in stats.items() if "/pages/" in key]
    problems = [f"{reason} ({count})" for reason, count in crawl.problems.items()]
    outcome = (
        f"Worker processes: {crawl.processes} at most. "
        f"Batches {stats.get('dripper/batch_size/mean')} pages on average, queue {stats.get('dripper/queue/max')} at "
        f"most. Outcomes: {', '.join(sorted(outcomes))}.\nWhat fell back: {'; '.join(problems) or 'nothing'}."
    )
    load = "/".join(f"{value:.1f}" for value in os.getloadavg())
    parts = [
        heading("soak.py", ["scrapy-dripper", "scrapy", "twisted", "lxml", "onnxruntime"]),
        f"{site}\nLoad of the machine at the end (1/5/15 minutes): {load}.\n{outcome}",
        f"With the plugin, by tenths of the crawl; memory in MB.\n\n{_table(crawl)}",
    ]
    if control is not None:
        parts.append(f"The control: the same crawl without the plugin.\n\n{_table(control)}")
    rows = [[name, value, "ok" if good else "FAILED"] for name, value, good in found]
    parts.append(table(["check", "found", ""], rows))
    return "\n\n".join(parts)


def _table(crawl: Crawl) -> str:
    columns = "items,pages/s,CPU ms/page,RSS,trimmed,malloc,a worker's RSS,objects"
    rows = [
        [
            f"{tenth.items}",
            f"{tenth.pages_per_second:.1f}",
            f"{1000 * tenth.cpu_per_page:.2f}",
            *(f"{value / 1e6:.1f}" for value in (tenth.rss, tenth.trimmed, tenth.heap, tenth.worker_rss)),
            str(tenth.objects),
            *(str(getattr(tenth, name)) for name in COUNTS),
        ]
        for tenth in crawl.tenths
    ]
    return table([*columns.split(","), *COUNTS], rows)
