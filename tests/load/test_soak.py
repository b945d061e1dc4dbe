"""A short soak test. What benchmarks/soak.py checks for 50,000 pages holds for the first 1,000, and its checks can
fail.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the benchmark reads /proc")


@pytest.fixture(scope="module")
def soak_report() -> Any:
    """The module with the checks of the benchmark."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import soak_report
    finally:
        sys.path.remove(str(BENCHMARKS))
    return soak_report


@linux
@pytest.mark.parametrize(("processes", "options"), [(0, ["--alone"]), (2, [])])
def test_a_crawl_ends_as_it_began(tmp_path: Path, processes: int, options: list[str]) -> None:
    """Every response becomes one item with its own text, and memory does not grow with the number of pages.

    Speed is not judged here, nor RSS, which a crawl of so few pages has not filled.
    """
    output = tmp_path / "soak.txt"
    command = [sys.executable, str(BENCHMARKS / "soak.py"), "--responses", "1000", "--size", "tiny"]
    command += ["--steady", "--processes", str(processes), *options]
    done = subprocess.run([*command, "--output", str(output)], capture_output=True, text=True, check=False)

    report = output.read_text(encoding="utf-8")
    lines = [re.split(r"  +", line) for line in report.splitlines()]
    found = {line[0]: line[1:] for line in lines if len(line) == 3 and line[2] in ("ok", "FAILED")}
    counts = "malloc in use,threads,files,children,worker_threads,worker_files,jobs,responses,futures".split(",")
    counts.append("Python objects")
    judged = [*(f"growth of {name}" for name in counts), "responses", "lost", "twice", "foreign", "errors"]
    assert {name: found[name][1] for name in judged} == dict.fromkeys(judged, "ok"), report + done.stderr
    assert found["responses"][0] == "1200 of 1200"
    assert "What fell back: nothing." in report


def crawled(
    soak_report: Any,
    machine: Callable[[int], float] = lambda _: 1.0,
    busy: float = 0.01,
    **changes: Callable[[int], float],
) -> Any:
    """Return a crawl in which all tenths are alike, except for these figures, which depend on the number of items.

    ``machine`` is the speed of the machine, ``busy`` the share of a core that the crawl uses in its pauses.
    """
    alike = dict.fromkeys("rss uss trimmed heap worker_rss python_blocks objects".split(), 200_000_000)
    alike |= dict.fromkeys("threads files children worker_threads worker_files jobs responses futures".split(), 20)
    tenths, rss = [], []
    for items in range(5_000, 50_001, 5_000):
        tenth = soak_report.Tenth(items=items, pages_per_second=25.0, cpu_per_page=0.04, **alike)
        tenths.append(replace(tenth, **{name: change(items) for name, change in changes.items()}))
        rss += [(items - k * 500, tenths[-1].rss) for k in reversed(range(10))]
    fresh = [soak_report.Fresh(25.0 * machine(n), 0.04 / machine(n), busy) for n in range(0, 50_001, 5_000)]
    return soak_report.Crawl(
        rss=rss, tenths=tenths, fresh=fresh, requests=50_200, responses=50_200, lost=0, twice=0, foreign=0, empty=0,
        errors=0, processes=0, problems={}, stats={},
    )  # fmt: skip


def failed(soak_report: Any, crawl: Any, control: Any = None) -> list[str]:
    """Return the names of the checks that fail."""
    return [name for name, _, good in soak_report.checks(crawl, control) if not good]


def test_a_steady_crawl_passes(soak_report: Any) -> None:
    """Figures that go up and down do not count as growth."""
    uneven = crawled(
        soak_report,
        rss=lambda items: 2e8 + 2e6 * (items // 5_000 % 3),
        futures=lambda items: 12_000 + items // 5_000 % 2 * 4_000,
        cpu_per_page=lambda items: 0.04 + 0.003 * (items // 5_000 % 2),
    )

    assert failed(soak_report, uneven) == []


@pytest.mark.parametrize(
    ("figure", "change", "check"),
    [
        ("rss", lambda items: 2e8 + 500 * items, "growth of RSS"),
        ("heap", lambda items: 2e8 + 500 * items, "growth of malloc in use"),
        ("threads", lambda items: items // 5_000, "growth of threads"),
        ("files", lambda items: items // 250, "growth of files"),
        ("children", lambda items: items // 15_000, "growth of children"),
        ("worker_rss", lambda items: 2e8 + 500 * items, "growth of a worker's RSS"),
        ("worker_threads", lambda items: items // 5_000, "growth of worker_threads"),
        ("worker_files", lambda items: items // 500, "growth of worker_files"),
        ("jobs", lambda items: items // 500, "growth of jobs"),
        ("objects", lambda items: 200_000 + 10 * items, "growth of Python objects"),
        ("futures", lambda items: items // 25, "growth of futures"),
        ("cpu_per_page", lambda items: 0.04 * (1 + items / 2e5), "CPU per page, last 3 tenths / first 3"),
        ("pages_per_second", lambda items: 25 * (1 - items / 3e5), "pages/s, last 3 tenths / first 3"),
        ("pages_per_second", lambda items: 25 if items < 50_000 else 18, "pages/s, last tenth / first"),
    ],
)
def test_what_grows_or_slows_down_is_found(
    soak_report: Any, figure: str, change: Callable[[int], float], check: str
) -> None:
    """There is a check for each figure."""
    assert failed(soak_report, crawled(soak_report, **{figure: change})) == [check]


@pytest.mark.parametrize("name", ["lost", "twice", "foreign", "errors"])
def test_one_item_is_enough(soak_report: Any, name: str) -> None:
    """A single lost item fails the soak."""
    assert failed(soak_report, replace(crawled(soak_report), **{name: 1})) == [name]


def test_the_growth_of_scrapy_itself_does_not_count(soak_report: Any) -> None:
    """Scrapy remembers all requests, so its memory grows in the control crawl as well."""
    growing = crawled(soak_report, rss=lambda items: 2e8 + 500 * items)
    control = crawled(soak_report, rss=lambda items: 1e8 + 500 * items)

    assert failed(soak_report, growing, control) == []
    assert failed(soak_report, growing, crawled(soak_report)) == ["growth of RSS"]


@pytest.mark.parametrize(
    ("last", "failing"),
    [(0.7, []), (1.0, [f"{name}, last 3 tenths / first 3" for name in ("pages/s", "CPU per page")])],
)
def test_a_slowdown_of_the_machine_does_not_count(soak_report: Any, last: float, failing: list[str]) -> None:
    """A crawl may become slower, but only by as much as a fresh crawl is slower at that time."""

    def speed(items: int) -> float:
        return 1 - 0.3 * (items - 2_500) / 5e4

    crawl = crawled(
        soak_report,
        machine=lambda items: 1 - (1 - last) * items / 5e4,
        pages_per_second=lambda items: 25.0 * speed(items),
        cpu_per_page=lambda items: 0.04 / speed(items),
    )

    assert failed(soak_report, crawl) == [*failing, "pages/s, last tenth / first"]


def test_a_crawl_that_works_in_its_pauses_is_found(soak_report: Any) -> None:
    """Such a crawl would slow down the crawl that it is compared with, which would hide the fault."""
    assert failed(soak_report, crawled(soak_report, busy=0.2)) == ["CPU time in pauses"]
