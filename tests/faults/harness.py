"""Crawls in separate processes, which are checked for what they leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scrapy

from tests.faults.books import Books
from tests.faults.fault_processes import is_worker

PAGES = int(os.environ.get("FAULTS_PAGES", "100"))
"""How many responses a crawl has at least."""
PATIENCE = 900
"""Seconds after which a crawl counts as one that does not end; none that passes gets near."""
ROOT = Path(__file__).parents[2]
ORPHAN_SECONDS = 5
"""How long a worker process may live on without its crawl."""

LOOP = Counter({"anon_inode": 1, "socket": 2, "pipe": 2})
"""What the event loop and the reactor keep open as long as their process lives."""

Crawl = Callable[..., Books]


def run(scenario: str, report: Path, job: dict[str, Any]) -> dict[str, Books]:
    """Return the books of the crawls of one process, by name, once it has ended."""
    if job.get("process") == "reactorless" and scrapy.version_info < (2, 19):
        job["process"] = "AsyncCrawlerProcess"
    pids = report.with_name("pids")
    for path in (report, pids):
        path.unlink(missing_ok=True)
    job = {"report": str(report), "pages": PAGES + 50, "at": PAGES, **job}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.fault_crawl", json.dumps(job)],
        cwd=ROOT,
        stderr=subprocess.PIPE,  # not a file: the crawl may limit the size of files
        text=True,
        preexec_fn=os.setpgrp,  # what it leaves behind is in its group
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    said = end(process)
    workers = [int(pid) for pid in pids.read_text(encoding="ascii").split()] if pids.exists() else []
    check_workers(workers, said)
    assert process.returncode == (-signal.SIGKILL if "SIGKILL" in job.get("signals", []) else 0), said[-5000:]
    check_children(process.pid, said)
    if process.returncode:
        return {}
    result = json.loads(report.read_text(encoding="utf-8"))
    if job.get("patience") == 0:
        assert set(result["threads"]) <= {"scrapy-dripper", "scrapy-dripper-keeper"}
    else:
        assert result["threads"] == []
        assert result["children"] == []
        kinds = Counter(name.partition(":")[0] for name in result["files"])
        assert kinds <= LOOP, f"{result['files']} are open\n{said[-5000:]}"
    ledgers = result["ledgers"]
    return {
        name: Books(scenario if len(ledgers) == 1 else f"{scenario}: {name}", ledger, said)
        for name, ledger in ledgers.items()
    }


def end(process: subprocess.Popen[str]) -> str:
    """Return the log of a process that has ended; a process that does not end prints its stacks and is killed."""
    try:
        return process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGUSR1)  # all stacks go to the log
        time.sleep(2)
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[1]
    finally:
        if process.poll() is None:  # Ctrl-C, for the tests
            os.killpg(process.pid, signal.SIGKILL)


def check_workers(pids: list[int], said: str) -> None:
    """Check that the worker processes have ended with their crawl."""
    deadline = time.monotonic() + ORPHAN_SECONDS
    while left := [pid for pid in pids if is_worker(pid)]:
        if time.monotonic() > deadline:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            pytest.fail(f"{len(left)} of {len(pids)} worker processes are left\n{said[-5000:]}")
        time.sleep(0.05)


def check_children(group: int, said: str) -> None:
    """Check that no process of an ended crawl's group is left."""
    deadline = time.monotonic() + 60
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        if time.monotonic() > deadline:
            os.killpg(group, signal.SIGKILL)
            pytest.fail(f"a child process is left\n{said[-5000:]}")
        time.sleep(0.05)
