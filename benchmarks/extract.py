"""CPU time per page of each step and of the complete extraction, compared with Trafilatura on the same pages.

All extractors get the same bytes and run on one thread in one process. The order of pages is random, and so is the
order of extractors for each page, so that noise of the machine affects all of them equally. Each extractor sees each
page once, and other pages are used to warm up, so that no cache knows the page.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import trafilatura
from common import heading, options, publish, sample, table
from tqdm import tqdm

from scrapy_dripper.choose import Labels, ScoredPage, choose
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.engines.tagger.engine import TaggerModel, bundled
from scrapy_dripper.engines.tagger.features import features
from scrapy_dripper.engines.tagger.later_stages import PAGE_TYPES
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.main_html import main_tree, to_html
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.items import plain_text
from scrapy_dripper_lab.evaluation.peers import PEERS, installed_peers, quiet

STEPS = ("decode", "parse", "blocks", "features", "model", "labels", "main_html", "content_list", "markdown", "text")
WHOLE = "scrapy-dripper"
BATCHED = "scrapy-dripper, in batches"
PEER = "trafilatura"
FAST = "trafilatura fast=True"
COMPILED = ("rs-trafilatura", "resiliparse")
"""Extractors that are not written in Python, and are measured if they are installed."""
WARM_UP = 10

T = TypeVar("T")


class Steps:
    """Extracts one page step by step, and measures each step."""

    def __init__(self) -> None:
        self.model = TaggerModel(bundled())
        self.milliseconds: dict[str, float] = {}
        self._last = 0.0

    def __call__(self, html: bytes) -> None:
        """Extract one page. A step that is not reached takes no time."""
        self.milliseconds = dict.fromkeys(STEPS, 0.0)
        self._last = time.process_time()
        decoded = self._took("decode", decode_html(html))
        tree = self._took("parse", parse(decoded))
        page = self._took("blocks", cut(tree, ""))
        if len(page.blocks) == 0:
            return
        batch = self._took("features", features([page]))
        answer = self._took("model", self.model(batch))
        types = dict(zip(PAGE_TYPES, answer.types[0].tolist(), strict=True))
        rule = self.model.manifest.decoding
        labels = Labels(answer.probabilities, page_types=types, sizes=batch.size, decision=rule)
        choice = self._took("labels", choose(ScoredPage(page, labels)))
        self._took("model", self.model.quality(batch, answer, choice.by_page))
        if not choice.main.any():
            return
        tree = self._took("main_html", main_tree(page, choice.mask))
        self._took("main_html", to_html(tree))
        content = self._took("content_list", content_list(tree, page.base_url, page.declared.notation))
        self._took("markdown", markdown(content))
        self._took("text", plain_text(content))

    def _took(self, step: str, result: T) -> T:
        now = time.process_time()
        self.milliseconds[step] += 1000 * (now - self._last)
        self._last = now
        return result


def measure(call: Callable[[Any], object], argument: object) -> float:
    """Return the CPU milliseconds of a call, including all threads of this process."""
    start = time.process_time()
    call(argument)
    return 1000 * (time.process_time() - start)


def run(arguments: argparse.Namespace) -> str:
    """Measure and return the report."""
    pages, rest = sample(arguments.data, arguments.pages, arguments.seed)
    batch_size = Config().batch_size
    # In its worker process, which gets the largest pages, their time would not be measured.
    extractor, steps = Extractor(Config(processes=0)), Steps()
    times: dict[str, list[float]] = defaultdict(list)
    outcomes: Counter[str] = Counter()
    sizes: list[int] = []
    chance = random.Random(arguments.seed)

    def whole(html: bytes) -> Extraction:
        return extractor.extract([Document(html)])[0]

    def together(batch: list[bytes]) -> None:
        extractions = extractor.extract(batch)
        outcomes.update(str(extraction.fallback_reason or extraction.source) for extraction in extractions)

    contestants: dict[str, Callable[[bytes], object]] = {
        WHOLE: whole,
        "steps": steps,
        PEER: PEERS[PEER].load(),
        FAST: lambda html: trafilatura.extract(html, fast=True),
        **{name: PEERS[name].load() for name in installed_peers(COMPILED)},
    }
    for page in (rest or pages)[:WARM_UP]:
        html = page.read_bytes()
        for contestant in contestants.values():
            contestant(html)

    waiting: list[bytes] = []
    for page in tqdm(pages, unit="page", desc="extract"):
        html = page.read_bytes()
        sizes.append(len(html))
        for name in chance.sample(list(contestants), len(contestants)):
            times[name].append(measure(contestants[name], html))
        for step, milliseconds in steps.milliseconds.items():
            times[step].append(milliseconds)
        waiting.append(html)
        if len(waiting) == batch_size or len(sizes) == len(pages):
            times[BATCHED].append(measure(together, waiting))
            waiting = []
    extractor.close()
    return report(arguments.seed, [name for name in contestants if name != "steps"], times, outcomes, sizes)


def report(seed: int, names: list[str], times: dict[str, list[float]], outcomes: Counter[str], sizes: list[int]) -> str:
    """Return the tables as text."""
    n = len(sizes)
    peer = statistics.mean(times[PEER])
    batched = sum(times[BATCHED]) / n
    rows = [
        [name, *_figures(times[name]), f"{1000 / mean:.1f}", f"{peer / mean:.2f}"]
        for name in names
        for mean in [statistics.mean(times[name])]
    ]
    rows.insert(1, [BATCHED, f"{batched:.2f}", "", "", f"{1000 / batched:.1f}", f"{peer / batched:.2f}"])
    total = sum(sum(times[step]) for step in STEPS)
    steps = [[step, *_figures(times[step]), f"{100 * sum(times[step]) / total:.0f} %"] for step in STEPS]
    kilobytes = [size / 1000 for size in sizes]
    return "\n\n".join(
        [
            heading("extract.py", ["scrapy-dripper", "trafilatura", "lxml", "numpy", "onnxruntime", "html2text"]),
            f"{n} pages, {statistics.median(kilobytes):.0f} kB in the median and {statistics.mean(kilobytes):.0f} kB "
            f"in the mean, stratified by page type, seed {seed}; CPU milliseconds per page, one thread.\n"
            f"scrapy-dripper returns Main-HTML, Markdown and text; in batches of {Config().batch_size}, or page by "
            "page. Trafilatura returns text.\n"
            "Its pages by outcome: " + ", ".join(f"{name} {count}" for name, count in outcomes.most_common()) + ".",
            table(["the whole way", "mean", "median", "p95", "pages/s", "speed / trafilatura"], rows),
            table(["scrapy-dripper, step by step", "mean", "median", "p95", "share"], steps),
        ]
    )


def _figures(values: list[float]) -> list[str]:
    numbers = (statistics.mean(values), statistics.median(values), np.percentile(values, 95))
    return [f"{number:.2f}" for number in numbers]


def main() -> None:
    """Run the benchmark."""
    arguments = options("extract", __doc__, 300).parse_args()
    quiet()
    publish(run(arguments), arguments.output)


if __name__ == "__main__":
    main()
