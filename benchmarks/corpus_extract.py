"""CPU time of complete datatrove pipelines on the same WARC shards: ours, and its own reader with Trafilatura.

Each run is a separate task, from opening the shard to the last document, with all its processes, such as the child
process in which datatrove runs Trafilatura. The same tasks with an empty shard give the time that a task takes to
start, for example to load the engine. The order of shards is random, and so is the order of pipelines for each shard,
so that noise of the machine affects all pipelines equally. Word F1 is that of texts and annotations. Needs the extras
[corpus] and [cpu], and warcio, faust-cchardet and python-magic for datatrove's reader.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from corpus import DEFAULT, sample
from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.extractors.trafilatura import Trafilatura
from datatrove.pipeline.readers.warc import WarcReader
from loguru import logger
from report import heading, publish, table
from scrapy.http import HtmlResponse

from scrapy_dripper.corpus.archive import response_record
from scrapy_dripper.corpus.reader import FastWarcReader
from scrapy_dripper.corpus.step import DripperExtractor
from scrapy_dripper.dataset.metrics import word_prf
from scrapy_dripper.dataset.pages import load_pages
from scrapy_dripper.page.profiles import PROFILES

OURS, PEER = "FastWarcReader + DripperExtractor", "WarcReader + Trafilatura"
Texts = dict[str, str]


class Cut(PipelineStep):  # type: ignore[misc]
    """Parse pages and cut them into blocks: what comes before the model."""

    def run(self, data: Iterable[Document], rank: int = 0, world_size: int = 1) -> Iterator[Document]:  # noqa: ARG002
        """Cut the page of each document, and yield the documents unchanged."""
        profile = PROFILES["native"]
        for document in data:
            profile.cut(profile.parse(document.text), document.metadata["url"])
            yield document


class Here(PipelineStep):  # type: ignore[misc]
    """datatrove's step with Trafilatura, but in this process instead of a child process."""

    def run(self, data: Iterable[Document], rank: int = 0, world_size: int = 1) -> Iterator[Document]:  # noqa: ARG002
        """Yield the documents with their text."""
        step = Trafilatura()
        for document in data:
            document.text = step.extract(document.text) or ""
            yield document


PIPELINES: dict[str, Callable[[str], list[Any]]] = {
    "FastWarcReader": lambda folder: [FastWarcReader(folder)],
    "WarcReader": lambda folder: [WarcReader(folder)],
    "FastWarcReader + cut": lambda folder: [FastWarcReader(folder), Cut()],
    OURS: lambda folder: [FastWarcReader(folder), DripperExtractor()],
    PEER: lambda folder: [WarcReader(folder), Trafilatura(timeout=30)],
    "WarcReader + Trafilatura, no child process": lambda folder: [WarcReader(folder), Here()],
    "FastWarcReader + Trafilatura": lambda folder: [FastWarcReader(folder), Trafilatura(timeout=30)],
}


def cpu() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


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
    texts: dict[str, Texts] = defaultdict(dict)
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
        empty = Path(folder) / "empty"
        empty.mkdir()
        (empty / "shard.warc").touch()
        chance.shuffle(shards)
        start = {name: min(measured(name, empty)[0] for _ in range(3)) for name in PIPELINES}
        for shard in shards:
            for name in chance.sample(list(PIPELINES), len(PIPELINES)):
                spent, found = measured(name, shard)
                seconds[name].append(spent - start[name])
                texts[name] |= found
        for shard in shards:  # not measured: texts without Markdown, as Trafilatura's
            texts[OURS] |= run([FastWarcReader(str(shard)), DripperExtractor(output="text")])
    truths = {sample.path: sample.truth for sample in load_pages(arguments.data.parent)} if annotated(arguments) else {}
    truth = [truths.get(page.path) for page in pages]
    publish(report(seconds, start, texts, truth, sum(map(len, bodies))), results())


def annotated(arguments: argparse.Namespace) -> bool:
    """Return True if the pages have annotations."""
    return bool((arguments.data.parent / "ground-truth").is_dir())


def measured(name: str, shard: Path) -> tuple[float, Texts]:
    """Run a pipeline, and return its CPU time and the texts."""
    begun = cpu()
    found = run(PIPELINES[name](str(shard)))
    return cpu() - begun, found


def run(steps: list[Any]) -> Texts:
    """Run a pipeline as a single task and return the texts of its documents, by URL."""
    data: Any = None
    for step in steps:
        data = step(data, 0, 1)
    found = {document.metadata["url"]: document.text for document in data if document.text}
    time.sleep(0.2)  # until a child process has ended, because its time counts
    return found


def report(
    seconds: dict[str, list[float]],
    start: dict[str, float],
    texts: dict[str, Texts],
    truth: list[str | None],
    size: int,
) -> str:
    """Return the report."""
    peer, pages = sum(seconds[PEER]), len(truth)
    rows = [
        [
            name,
            f"{len(texts[name])}",
            f"{start[name]:.2f}",
            f"{1000 * sum(seconds[name]) / pages:.1f}",
            f"{pages / sum(seconds[name]):.0f}",
            f"{size / 1e6 / sum(seconds[name]):.1f}",
            f"{peer / sum(seconds[name]):.2f}",
            quality(texts[name], truth) if name in (OURS, PEER) else "",
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
            "of CPU time, all processes of a task together, without its start, which is given in seconds.",
            "The bundled model was trained on these pages; the README has its F1 on pages of other hosts.",
            "",
            table(
                ["pipeline", "documents", "start", "ms/page", "pages/s", "MB/s", f"x {PEER}", "word F1"],
                rows,
            ),
            "",
            f"x {PEER}, by shard: {min(ratios):.2f} to {max(ratios):.2f}, median {statistics.median(ratios):.2f}",
        ]
    )


def quality(texts: Texts, truth: list[str | None]) -> str:
    """Return the mean word F1 of the annotated pages; a page without a document has an empty text."""
    scores = [
        word_prf(texts.get(f"https://example.org/{number}", ""), text)[2]
        for number, text in enumerate(truth)
        if text is not None
    ]
    return f"{statistics.mean(scores):.3f}" if scores else ""


def results() -> Path:
    """Return the path of the report."""
    return Path(__file__).parent / "results" / "corpus_extract.txt"


if __name__ == "__main__":
    main()
