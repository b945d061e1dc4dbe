"""Crawls in processes of their own, which are checked for what they leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scrapy
from books import Books

PAGES = int(os.environ.get("FAULTS_PAGES", "2000"))
"""How many responses a crawl has at least."""
PATIENCE = 900
"""Seconds after which a crawl counts as one that does not end; none that passes gets near."""
HERE = Path(__file__).parent

Crawl = Callable[..., Books]


def run(scenario: str, report: Path, job: dict[str, Any]) -> dict[str, Books]:
    """Return the books of the crawls of one process, by their names, when it is gone."""
    if job.get("process") == "reactorless" and scrapy.version_info < (2, 19):
        job["process"] = "AsyncCrawlerProcess"
    report.unlink(missing_ok=True)
    job = {"report": str(report), "pages": PAGES + 50, "at": PAGES, **job}
    process = subprocess.Popen(
        [sys.executable, str(HERE / "fault_crawl.py"), json.dumps(job)],
        stderr=subprocess.PIPE,  # not a file: the crawl may limit the size of files
        text=True,
        preexec_fn=os.setpgrp,  # what it leaves behind is in its group
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    said = end(process)
    assert process.returncode == 0, said[-5000:]
    check_children(process.pid, said)
    result = json.loads(report.read_text(encoding="utf-8"))
    assert result["threads"] == (["scrapy-dripper"] if job.get("patience") == 0 else [])
    assert result["children"] == []
    ledgers = result["ledgers"]
    return {
        name: Books(scenario if len(ledgers) == 1 else f"{scenario}: {name}", ledger, said)
        for name, ledger in ledgers.items()
    }


def end(process: subprocess.Popen[str]) -> str:
    """Return the log of a process that has ended; one that does not end says where it is, and is killed."""
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
