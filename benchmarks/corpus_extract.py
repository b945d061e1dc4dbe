"""CPU time of complete datatrove pipelines on the same WARC shards: ours, and its own reader with Trafilatura.

Each run is a separate task, from opening the shard to the last document. It includes loading the engine, and the child
process in which datatrove runs Trafilatura. The order of shards is random, and so is the order of pipelines for each
shard, so that noise of the machine affects all pipelines equally. Needs the extras [corpus] and [cpu], and warcio,
faust-cchardet and python-magic for datatrove's reader.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpus import DEFAULT, sample
from datatrove.pipeline.extractors.trafilatura import Trafilatura
from datatrove.pipeline.readers.warc import WarcReader
from loguru import logger
from report import heading, publish, table
from scrapy.http import HtmlResponse

from scrapy_dripper.corpus.archive import response_record
from scrapy_dripper.corpus.reader import FastWarcReader
from scrapy_dripper.corpus.step import DripperExtractor

OURS, PEER = "FastWarcReader + DripperExtractor", "WarcReader + Trafilatura"
PIPELINES: dict[str, Callable[[str], list[Any]]] = {
    "FastWarcReader": lambda folder: [FastWarcReader(folder)],
    "WarcReader": lambda folder: [WarcReader(folder)],
    OURS: lambda folder: [FastWarcReader(folder), DripperExtractor()],
    PEER: lambda folder: [WarcReader(folder), Trafilatura(timeout=30)],
    "FastWarcReader + Trafilatura": lambda folder: [FastWarcReader(folder), Trafilatura(timeout=30)],
}


def cpu() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def main() -> None:
    """Write the shards, run the pipelines and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT)
    parser.add_argument("--pages", type=int, default=400)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--seed", type=int, default=20)
    arguments = parser.parse_args()
    logger.remove()
    pages, _ = sample(arguments.data, arguments.pages, arguments.seed)
    bodies = [page.path.read_bytes() for page in pages]
    chance = random.Random(arguments.seed)
    seconds: dict[str, list[float]] = defaultdict(list)
    documents: dict[str, int] = defaultdict(int)
    with tempfile.TemporaryDirectory() as folder:
        shards = [Path(folder) / str(number) for number in range(arguments.shards)]
        for number, shard in enumerate(shards):
            shard.mkdir()
            records = [
                response_record(
                    HtmlResponse(
                        f"https://example.org/{index}", headers={"Content-Type": "text/html"}, body=bodies[index]
                    ),
                    {"WARC-Identified-Payload-Type": "text/html"},
                )
                for index in range(number, len(bodies), len(shards))
            ]
            (shard / "shard.warc").write_bytes(b"".join(records))
        for pipeline in PIPELINES.values():  # import everything before the measurement
            run(pipeline(str(shards[0])))
        chance.shuffle(shards)
        for shard in shards:
            for name in chance.sample(list(PIPELINES), len(PIPELINES)):
                begun = cpu()
                documents[name] += run(PIPELINES[name](str(shard)))
                seconds[name].append(cpu() - begun)
    publish(report(seconds, documents, len(bodies), sum(map(len, bodies))), results())


def run(steps: list[Any]) -> int:
    """Run a pipeline as a single task and return the number of its documents that have text."""
    data: Any = None
    for step in steps:
        data = step(data, 0, 1)
    found = sum(bool(document.text) for document in data)
    time.sleep(0.2)  # until a child process has ended, because its time counts
    return found


def report(seconds: dict[str, list[float]], documents: dict[str, int], pages: int, size: int) -> str:
    """Return the report."""
    peer = sum(seconds[PEER])
    rows = [
        [
            name,
            f"{documents[name]}",
            f"{pages / sum(seconds[name]):.0f}",
            f"{size / 1e6 / sum(seconds[name]):.1f}",
            f"{peer / sum(seconds[name]):.2f}",
        ]
        for name in PIPELINES
    ]
    ratios = [theirs / ours for ours, theirs in zip(seconds[OURS], seconds[PEER], strict=True)]
    packages = ("scrapy-dripper", "datatrove", "fastwarc", "warcio", "trafilatura", "onnxruntime")
    return "\n".join(
        [
            heading("corpus_extract.py", packages),
            "",
            f"{pages} pages, {size / 1e6:.1f} MB of HTML, in {len(ratios)} WARC shards. Pages and MB are per second",
            "of CPU time, all processes of a task together, with the time that it takes to load the engine.",
            "",
            table(["pipeline", "documents", "pages/s", "MB/s", f"x {PEER}"], rows),
            "",
            f"x {PEER}, by shard: {min(ratios):.2f} to {max(ratios):.2f}, median {statistics.median(ratios):.2f}",
        ]
    )


def results() -> Path:
    """Return the path of the report."""
    return Path(__file__).parent / "results" / "corpus_extract.txt"


if __name__ == "__main__":
    main()
