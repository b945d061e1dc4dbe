"""A crawl of small pages on a CPU, labelled by a Qwen3 model: its time, its memory, and its work.

    python benchmarks/random_model.py real --size qwen3-0.6b --tokenizer tokenizer.json
    scrapy-dripper export real prepared --device cpu --answer json --weight-format int8
    python benchmarks/qwen3_crawl.py prepared

With random weights, the labels are random, and the time and the memory are those of trained weights of that shape, with
drafts that are half wrong.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from common import crawl, options, publish, serve_pages, table, watched
from scrapy import Request, signals

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


def run(model: Path) -> list[str]:
    """Crawl, and return the parts of the report."""
    prepared = load_prepared(model)
    server = serve_pages(lambda path: page(int(path[1:])))
    rows: list[list[str]] = []

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
    start = time.perf_counter()
    requests = (Request(f"{server}/{blocks}") for blocks in BLOCKS)
    with watched() as seen:
        stats = crawl(requests, settings, {signals.item_scraped: count})
    seconds, (peak, cpu) = time.perf_counter() - start, map(max, zip(*seen, strict=True))
    prefix = "dripper/qwen3/"
    size = sum(path.stat().st_size for path in model.iterdir())
    work = {key.removeprefix(prefix): n for key, n in stats.items() if key.startswith(prefix)}
    return [
        f"{prepared.layers} layers, {prepared.weight_format} weights in {prepared.dtype}, {prepared.threads} thread"
        f", {size / 2**30:.2f} GiB of files; a server on the loopback interface.\n"
        f"{len(rows)} pages in {seconds:.0f} s, with the start of the model; {cpu:.0f} CPU seconds of the model "
        f"and a worker; {peak / 1000:.1f} GB of memory at most, in all processes.\n"
        f"Stats: {', '.join(f'{name} {n:,}' for name, n in work.items())}.",
        table(["blocks", "source", "seconds"], sorted(rows, key=lambda row: int(row[0]))),
    ]


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("model", type=Path, help="a prepared folder for a CPU")
    arguments = parser.parse_args()
    publish(arguments, ["scrapy-dripper", "scrapy", "onnxruntime"], *run(arguments.model))
