"""Crawl with real worker processes and a simulated GPU, and measure how much of the time the GPU is busy.

    python benchmarks/busy.py [--slower 1] [--pages 160]

The pages are development pages, read from files. Workers read, draft, tokenize and write them, with the small model of
the tests. The process of the model is replaced by one that sleeps for as long as an H200 at 45 % of its peak would
compute, according to roofline.py, and returns the labels of the draft. ``--slower`` multiplies this time. This gives
the workers more time on a machine that has fewer cores than the GPU needs, or that is busy with other programs.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import AsyncIterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from corpus import DEFAULT, sample
from processes import children_cpu
from report import heading, publish, table
from roofline import DEVICES, times

from scrapy_dripper.machine import cores
from scrapy_dripper.workers.messages import Message
from scrapy_dripper.workers.model import Model

MODEL = Path(__file__).parents[1] / "tests" / "engines" / "qwen3" / "prepared" / "gqa"
OUTPUT = Path(__file__).parent / "results" / "busy.txt"
DEVICE, SHARE = DEVICES[1], 0.45
LIMIT = 1 << 20
"""Maximum number of tokens of a prompt. No page has as many."""


class Sleeper:
    """A model that sleeps instead of computing."""

    def __init__(self, slower: float, warm_up: int) -> None:
        """The first ``warm_up`` pages do not count, because not all workers have started yet."""
        self.seconds = cycle(slower * one for one in times(DEVICE, SHARE))
        self.lock = threading.Lock()
        self.pages, self.slept = -warm_up, 0.0
        self.begun = self.ended = 0.0
        self.cpu: list[float] = []

    def label(self, _: Model, header: dict[str, object], parts: list[bytes]) -> Message:  # noqa: ARG002 (interface)
        """Answer with the labels of the drafts."""
        drafts = parts[1::2]
        answer = {"say": "labels", "limit": LIMIT, "is_lost": False}
        if not drafts:
            return {**answer, "answers": []}, []
        with self.lock:
            counts = self.pages >= 0
            if counts and not self.begun:
                self.begun, self.pages = self.ended, 0
                self.cpu.append(children_cpu(os.getpid()))
            start = time.perf_counter()
            time.sleep(sum(next(self.seconds) for _ in drafts))
            self.ended = time.perf_counter()
            self.slept += counts * (self.ended - start)
            self.pages += len(drafts)
        rows = [{"passes": 2, "positions": 0, "kept": len(draft)} for draft in drafts]
        margins = [np.where(np.frombuffer(draft, dtype=np.bool_), 1, -1).astype(np.float32) for draft in drafts]
        return {**answer, "answers": rows}, [
            part for draft, own in zip(drafts, margins, strict=True) for part in (draft, own.tobytes())
        ]


def main() -> None:
    """Crawl, print the report and write it to a file."""
    import scrapy
    from scrapy import signals
    from scrapy.crawler import AsyncCrawlerProcess

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT, help="folder of *.html (default: %(default)s)")
    parser.add_argument("--pages", type=int, default=160, help="pages to crawl (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=cores() + 1, help="workers (default: %(default)s)")
    parser.add_argument("--slower", type=float, default=1.0, help="how much longer the model takes")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="file to write (default: %(default)s)")
    options = parser.parse_args()
    chosen, _ = sample(options.data, options.pages, 0)
    model = Sleeper(options.slower, 16 * options.processes)
    Model.start = lambda _: None  # type: ignore[method-assign, assignment]
    Model.label = lambda *arguments: model.label(*arguments)  # type: ignore[method-assign]

    class Pages(scrapy.Spider):
        name = "pages"

        async def start(self) -> AsyncIterator[Any]:
            for one in chosen:
                yield scrapy.Request(one.path.resolve().as_uri())

        def parse(self, response: Any) -> Any:
            yield {"url": response.url, "markdown": None}

    process = AsyncCrawlerProcess(
        {
            "ADDONS": {"scrapy_dripper.Addon": 500},
            "DRIPPER_ENGINE": "qwen3",
            "DRIPPER_MODEL": str(MODEL),
            "DRIPPER_WINDOW_TOKENS": None,  # the times are those of pages that were divided before
            "DRIPPER_PROCESSES": options.processes,
            "DRIPPER_TIMEOUT": 300,
            "CONCURRENT_REQUESTS": 64,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_LEVEL": "ERROR",
        }
    )
    crawler = process.create_crawler(Pages)
    crawler.signals.connect(lambda: model.cpu.append(children_cpu(os.getpid())), signals.spider_closed, weak=False)
    process.crawl(crawler)
    process.start()

    wall = model.ended - model.begun
    row = [
        f"{options.slower:g}",
        str(model.pages),
        f"{model.pages / wall:.1f}",
        f"{1000 * model.slept / model.pages:.0f}",
        f"{1000 * (model.cpu[1] - model.cpu[0]) / model.pages:.0f}",
        f"{model.slept / wall:.0%}",
    ]
    head = ["slower", "pages", "pages/s", "ms a page, model", "CPU ms a page, workers", "model busy"]
    about = (
        f"{DEVICE.name} at {SHARE:.0%} of its peak, simulated, and {options.processes} real workers on {cores()} cores."
    )
    publish("\n\n".join([heading("busy.py", ["scrapy-dripper", "scrapy"]), about, table(head, [row])]), options.output)


if __name__ == "__main__":
    main()
