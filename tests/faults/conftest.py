"""A site in its own process, crawls in theirs, and a table of what they came to.

``FAULTS_PAGES=2000`` makes every crawl 20 times as long, ``FAULTS_TABLE=FILE`` writes the table.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.books import ROWS, Books, table
from tests.faults.harness import PAGES, PATIENCE, ROOT, Crawl, run


@pytest.fixture(scope="session")
def fault_site() -> Iterator[str]:
    """The address of the site."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.fault_site"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    server.stdin.close()
    server.wait(PATIENCE)


@pytest.fixture
def pages() -> int:
    """The least number of responses of a crawl."""
    return PAGES


@pytest.fixture
def crawls(fault_site: str, tmp_path: Path) -> Callable[..., dict[str, Books]]:
    """Run the crawls of one process to their end: ``crawls(scenario, **job)``."""
    return lambda scenario, **job: run(scenario, tmp_path / "report.json", {"url": fault_site, **job})


@pytest.fixture
def crawl(crawls: Callable[..., dict[str, Books]]) -> Crawl:
    """Run one crawl in a separate process: ``crawl(scenario, **job)``."""
    return lambda scenario, **job: crawls(scenario, **job)["markdown"]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table, and write it to the file ``FAULTS_TABLE``."""
    if ROWS:
        terminalreporter.section("faults in live crawls")
        terminalreporter.write(table())
        if path := os.environ.get("FAULTS_TABLE"):
            Path(path).write_text(table(), encoding="utf-8")
