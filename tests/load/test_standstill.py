"""After a process was suspended, or had no CPU time, it does not treat its own threads as stuck."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper import Extractor
from scrapy_dripper.config import Config
from scrapy_dripper.crawl.batcher import Batcher
from scrapy_dripper.extraction import Document
from scrapy_dripper.testing import FakeEngine
from tests.load.observer import Observer

PATIENCE = 60
TIMEOUT = 2.0


class Engine(FakeEngine):
    """Answers when the test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.busy, self.free = threading.Event(), threading.Event()

    def label(self, pages: Any) -> Any:
        self.busy.set()
        assert self.free.wait(PATIENCE)
        return super().label(pages)


def test_time_in_which_nothing_runs_does_not_count() -> None:
    """The engine labels the page, although its answer comes after DRIPPER_TIMEOUT."""
    engine = Engine()
    config = Config(timeout=TIMEOUT, batch_wait=0.01, fallback="none", processes=0)

    async def crawl() -> Any:
        batcher = Batcher(config, lambda: Extractor(config, engine=engine), Observer())  # type: ignore[arg-type]
        future = batcher.submit(
            Document("<html><body><p>A page like any other.</p></body></html>", "https://a.example/")
        )
        await asyncio.to_thread(engine.busy.wait, PATIENCE)
        time.sleep(1.5 * TIMEOUT)  # neither the event loop nor the engine runs
        asyncio.get_running_loop().call_later(0.2, engine.free.set)
        try:
            return await asyncio.wait_for(future, PATIENCE)
        finally:
            engine.free.set()
            batcher.stop()

    assert asyncio.run(crawl()).source == "fake"


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")
@pytest.mark.parametrize("whole", [False, True], ids=["the crawl", "the crawl and its worker"])
def test_a_suspended_crawl_gives_no_page_up(tmp_path: Path, whole: bool) -> None:
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
        suspended = [crawl.pid, int(begun.read_text(encoding="ascii"))][: 1 + whole]
        for pid in suspended:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(2 * limit)
        for pid in reversed(suspended):
            os.kill(pid, signal.SIGCONT)
        said, _ = crawl.communicate(timeout=PATIENCE)
    finally:
        crawl.kill()

    assert said == "slow None\n"
