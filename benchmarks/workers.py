"""Cost of a worker process: startup, memory, and the time for pages compared with a thread."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

from corpus import DEFAULT, sample
from processes import children_cpu, memory
from report import heading, publish, table

BATCH = 8
STARTS = 5


def main() -> None:
    """Measure and write ``results/workers.txt``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT, help="folder of *.html; default: .cache/wcxb-dev/html")
    parser.add_argument("--pages", type=int, default=300, help="default: 300")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "workers.txt")
    arguments = parser.parse_args()
    pages, _ = sample(arguments.data, arguments.pages, arguments.seed)

    from scrapy_dripper import Document, Extractor
    from scrapy_dripper.config import Config
    from scrapy_dripper.workers import Pool, Task

    config = Config(processes=0)
    documents = [Document(page.path.read_bytes(), "http://example.com/") for page in pages]
    batches = [documents[i : i + BATCH] for i in range(0, len(documents), BATCH)]

    me = os.getpid()
    walls, cpus, sizes = [], [], []
    for _ in range(STARTS):
        before, start = children_cpu(me), time.perf_counter()
        pool = Pool(config, 1)
        pool.start()
        walls.append(time.perf_counter() - start)
        cpus.append(children_cpu(me) - before)
        sizes.append(memory(pool.pids[0]))
        pool.close()

    extractor = Extractor(config)
    extractor.extract(batches[0])
    start = time.process_time()
    for batch in batches:
        extractor.extract(batch)
    here = time.process_time() - start

    pool = Pool(config, 1)
    pool.start()
    pool.extract([Task(document, config) for document in batches[0]])
    before, start = children_cpu(me), time.process_time()
    for batch in batches:
        pool.extract([Task(document, config) for document in batch])
    crawl, worker = time.process_time() - start, children_cpu(me) - before
    after = memory(pool.pids[0])
    pool.close()

    count = len(documents) / 1_000
    rows = [
        ["start to ready, s", f"{statistics.median(walls):.2f}"],
        ["CPU time of a start, s", f"{statistics.median(cpus):.2f}"],
        ["memory when ready, MB", f"{statistics.median(sizes):.0f}"],
        [f"memory after {len(documents)} pages, MB", f"{after:.0f}"],
        ["CPU ms a page in a thread", f"{here / count:.1f}"],
        ["CPU ms a page in the worker", f"{worker / count:.1f}"],
        ["CPU ms a page in the crawl's process for it", f"{crawl / count:.2f}"],
        ["both beside the thread", f"{(worker + crawl) / here:.2f}"],
    ]
    text = "\n\n".join(
        [
            heading("workers.py", ["scrapy-dripper", "lxml", "numpy", "onnxruntime"]),
            f"A worker with the bundled tagger; medians of {STARTS} starts, {len(documents)} development pages, "
            f"{BATCH} a batch.\nMemory is PSS: shared memory is divided among the processes.",
            table(["", ""], rows),
        ]
    )
    publish(text, arguments.output)


if __name__ == "__main__":
    main()
