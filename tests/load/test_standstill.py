"""After a process was suspended, or had no CPU time, it does not treat its own threads as stuck."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATIENCE = 60


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")
def test_a_suspended_crawl_gives_no_page_up(tmp_path: Path) -> None:
    """After a suspension longer than the timeout, the crawl continues and no worker is ended."""
    limit = 3.0
    begun = tmp_path / "begun"
    crawl = subprocess.Popen(
        [sys.executable, "-m", "tests.load.standstill_crawl", str(limit)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SLOW_ENGINE_BEGUN": str(begun)},
    )
    try:
        while not begun.exists() and crawl.poll() is None:
            time.sleep(0.01)
        os.kill(crawl.pid, signal.SIGSTOP)
        time.sleep(2 * limit)
        os.kill(crawl.pid, signal.SIGCONT)
        said, _ = crawl.communicate(timeout=PATIENCE)
    finally:
        crawl.kill()

    assert said == "slow None\n"
