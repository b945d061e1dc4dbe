"""The report of a long crawl: tables and checks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import table

TENTHS = 10
WARM_UP = 3
"""Number of tenths that are left out of the fit, because caches and heaps fill."""
ENDS = 3
"""Number of tenths at each end that are compared. A single tenth varies by about 5 %."""
SLOWER = 0.2
"""How much slower than the first tenths the last ones may be, without regard to the machine."""
MORE_CPU = 0.1
"""How much more CPU time than the first tenths the last ones may take."""
GROWTH = 50e-6
"""Megabytes per page by which memory may grow more than without the plugin: 50 MB in a million pages."""
NOISE = 5.0
"""Megabytes by which the memory of two crawls can differ by chance."""

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


Tenth = dict[str, float]
"""The figures of one tenth of a crawl by their columns. Memory is in MB, and counts are those at its end.

*trimmed* is the RSS after a garbage collection and ``malloc_trim``, and *malloc* what that has allocated, without
fragmentation and without Python's own allocator. A worker's RSS is the mean of all, and its threads and files are
those of the worker that has the most. CPU time is that of the process and its workers.
"""


@dataclass(frozen=True)
class Crawl:
    """The measurements of one crawl."""

    tenths: list[Tenth]
    requests: int
    """Number of requests of the ten tenths, and a few more to keep the crawl busy to the end of the last tenth."""
    responses: int
    faults: dict[str, int]
    """The numbers of responses without an item, with several, and with the text of another page, and of errors."""
    processes: int
    """Peak number of worker processes."""
    problems: dict[str, int]
    """Fallback reasons and their errors, with counts."""
    stats: dict[str, Any]


def growth(crawl: Crawl, control: Crawl | None, what: str) -> tuple[str, bool]:
    """Return how fast a figure grows, beyond its growth without the plugin, and whether that may be by chance.

    This is the least-squares slope through the tenths after the warm-up, with its standard error.
    """
    own = np.array([[tenth["items"], tenth[what]] for tenth in crawl.tenths[WARM_UP:]])
    if control is not None:
        own[:, 1] -= [tenth[what] for tenth in control.tenths[WARM_UP:]]
    (slope, _), covariance = np.polyfit(*own.T, 1, cov=True)
    error = np.sqrt(covariance[0, 0])
    limit = GROWTH + NOISE / (crawl.tenths[-1]["items"] - crawl.tenths[WARM_UP - 1]["items"])
    beyond = "" if control is None else " beyond the control's"
    found = f"{1e6 * slope:+.0f} +- {1e6 * error:.0f} kB per 1,000 pages{beyond}"
    return found, bool(slope - 2 * error <= limit)


def grows(values: Sequence[float], slack: float) -> bool:
    """Return True if the last three values all exceed the first three, by more than a tenth and the slack."""
    return min(values[-3:]) > 1.1 * max(values[:3]) + slack


def checks(crawl: Crawl, control: Crawl | None, *, speed: bool) -> list[tuple[str, str, bool]]:
    """Return the name, the result and the outcome of each check."""
    found = _speed(crawl) if speed else []
    for name, what in (("RSS", "RSS"), ("RSS, trimmed", "trimmed"), ("malloc in use", "malloc")):
        found.append((f"growth of {name}", *growth(crawl, control, what)))
    found.append(("growth of a worker's RSS", *growth(crawl, None, "a worker's RSS")))
    for name, least in COUNTS.items():
        values = [tenth[name] for tenth in crawl.tenths]
        slack = least + crawl.processes * BY_WORKER.get(name, 0)
        found.append((f"growth of {name}", f"{values[0]} to {values[-1]}", not grows(values, slack)))
    objects = [tenth["objects"] for tenth in crawl.tenths]
    found.append(("growth of Python objects", f"{objects[0]} to {objects[-1]}", not grows(objects, 0)))
    found.append(("responses", f"{crawl.responses} of {crawl.requests}", crawl.responses == crawl.requests))
    return found + [(name, str(count), count == 0) for name, count in crawl.faults.items()]


def _speed(crawl: Crawl) -> list[tuple[str, str, bool]]:
    rates, times = ([tenth[name] for tenth in crawl.tenths] for name in ("pages/s", "CPU ms/page"))
    rate, cpu = (sum(values[-ENDS:]) / sum(values[:ENDS]) for values in (rates, times))
    return [
        (f"pages/s, last {ENDS} tenths / first {ENDS}", f"{rate:.3f}", rate >= 1 - SLOWER),
        (f"CPU per page, last {ENDS} tenths / first {ENDS}", f"{cpu:.3f}", cpu <= 1 + MORE_CPU),
    ]


def report(site: str, crawl: Crawl, control: Crawl | None, found: list[tuple[str, str, bool]]) -> list[str]:
    """Return the parts of the report."""
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
        f"{site}\nLoad of the machine at the end (1/5/15 minutes): {load}.\n{outcome}",
        f"With the plugin, by tenths of the crawl; memory in MB.\n\n{_table(crawl)}",
    ]
    if control is not None:
        parts.append(f"The control: the same crawl without the plugin.\n\n{_table(control)}")
    rows = [[name, value, "ok" if good else "FAILED"] for name, value, good in found]
    return [*parts, table(["check", "found", ""], rows)]


def _table(crawl: Crawl) -> str:
    decimals = {"pages/s": 1, "CPU ms/page": 2, "RSS": 1, "trimmed": 1, "malloc": 1, "a worker's RSS": 1}
    rows = [[f"{value:.{decimals.get(name, 0)}f}" for name, value in tenth.items()] for tenth in crawl.tenths]
    return table(list(crawl.tenths[0]), rows)
