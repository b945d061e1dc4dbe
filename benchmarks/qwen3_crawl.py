"""A crawl of small pages on a CPU, labelled by a Qwen3 model: its time, its memory, and its work.

    python benchmarks/random_model.py real --size qwen3-0.6b --tokenizer tokenizer.json
    scrapy-dripper export real prepared --device cpu --answer json --weight-format int8
    python benchmarks/qwen3_crawl.py prepared

With random weights, the labels are random, and the time and the memory are those of trained weights of that shape, with
drafts that are half wrong.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import scrapy
from common import RESULTS, children_cpu, crawl, heading, memory, publish, serve_pages, table
from scrapy import signals

from scrapy_dripper.engines.qwen3.folder import load_prepared

BLOCKS = (4, 8, 16)
SENTENCE = "The sea rises and falls twice a day, and the range is largest near new moon and full moon."


def page(blocks: int) -> bytes:
    """Return a page with a number of blocks, a third of which are not its text."""
    lines = "".join(
        f"<p>{k}. {SENTENCE}</p>" if k % 3 else f'<div class="menu"><a href="/{k}">Chapter {k}</a></div>'
        for k in range(1, blocks)
    )
    return f"<html><head><title>Tides</title></head><body><h1>Tides</h1>{lines}</body></html>".encode()


def run(model: Path) -> str:
    """Crawl, and return the report."""
    prepared = load_prepared(model)
    port = serve_pages(lambda path: page(int(path[1:])))
    rows: list[list[str]] = []
    peak, cpu, is_open = 0.0, 0.0, True

    def watch() -> None:
        nonlocal peak, cpu
        while is_open:
            peak, cpu = max(peak, memory(os.getpid())), max(cpu, children_cpu(os.getpid()))
            time.sleep(0.5)

    class Pages(scrapy.Spider):
        name = "pages"

        async def start(self) -> AsyncIterator[Any]:
            for blocks in BLOCKS:
                yield scrapy.Request(f"http://127.0.0.1:{port}/{blocks}", self.parse)

        def parse(self, response: Any) -> dict[str, Any]:
            return {"url": response.url, "markdown": None, "by": None}

    def count(item: dict[str, Any]) -> None:
        by = item["by"]
        rows.append([str(by["blocks"]), by["source"], f"{by['milliseconds'] / 1000:.1f}"])

    settings = {
        "ADDONS": {"scrapy_dripper.Addon": 500},
        "DRIPPER_ENGINE": "qwen3",
        "DRIPPER_MODEL": str(model),
        "DRIPPER_META_FIELD": "by",
        "DRIPPER_FALLBACK": "empty",
        "DRIPPER_BATCH_SIZE": 1,
        "DRIPPER_PROCESSES": 1,
        "DRIPPER_TIMEOUT": 3600,
    }
    threading.Thread(target=watch, daemon=True).start()
    start = time.perf_counter()
    crawler = crawl(Pages, settings, {signals.item_scraped: count})
    seconds, is_open = time.perf_counter() - start, False
    assert crawler.stats is not None
    prefix = "dripper/qwen3/"
    size = sum(path.stat().st_size for path in model.iterdir())
    work = {key.removeprefix(prefix): n for key, n in crawler.stats.get_stats().items() if key.startswith(prefix)}
    return "\n\n".join(
        [
            heading("qwen3_crawl.py", ["scrapy-dripper", "scrapy", "onnxruntime"]),
            f"{prepared.layers} layers, {prepared.weight_format} weights in {prepared.dtype}, {prepared.threads} thread"
            f", {size / 2**30:.2f} GiB of files; a server on the loopback interface.\n"
            f"{len(rows)} pages in {seconds:.0f} s, with the start of the model; {cpu:.0f} CPU seconds of the model "
            f"and a worker; {peak / 1000:.1f} GB of memory at most, in all processes.\n"
            f"Stats: {', '.join(f'{name} {n:,}' for name, n in work.items())}.",
            table(["blocks", "source", "seconds"], sorted(rows, key=lambda row: int(row[0]))),
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a prepared folder for a CPU")
    parser.add_argument("--output", type=Path, default=RESULTS / "qwen3-crawl.txt")
    arguments = parser.parse_args()
    publish(run(arguments.model), arguments.output)
