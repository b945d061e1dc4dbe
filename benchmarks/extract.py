"""CPU time per page of each step and of the complete extraction, compared with Trafilatura on the same pages.

All extractors get the same bytes and run on one thread in one process. The order of pages is random, and so is the
order of extractors for each page, so that noise of the machine affects all of them equally. Each extractor sees each
page once, and other pages are used to warm up, so that no cache knows the page.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import trafilatura
from common import DEFAULT, heading, publish, sample, table
from tqdm import tqdm

from scrapy_dripper.choose import Given, choose
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.engines.tagger.engine import chosen
from scrapy_dripper.engines.tagger.features import features
from scrapy_dripper.engines.tagger.model import TaggerModel, bundled
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.main_html import main_tree, to_html
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.output.text import plain_text
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.parse import parse

STEPS = ("decode", "parse", "blocks", "features", "model", "labels", "main_html", "content_list", "markdown", "text")
WHOLE = "scrapy-dripper"
BATCHED = "scrapy-dripper, in batches"
LABELLED = "features + model"
LABELLED_TOGETHER = "features + model, in batches"
PEER = "trafilatura"
FAST = "trafilatura fast=True"
WARM_UP = 10

T = TypeVar("T")


class Steps:
    """Extracts one page step by step, and measures each step."""

    def __init__(self) -> None:
        self.model = TaggerModel(bundled())
        self.milliseconds: dict[str, float] = {}
        self.page: Page | None = None
        self._last = 0.0

    def label(self, pages: list[Page]) -> None:
        """Label pages together."""
        self.model(features(pages))

    def __call__(self, html: bytes) -> None:
        """Extract one page. A step that is not reached takes no time."""
        self.milliseconds = dict.fromkeys(STEPS, 0.0)
        self.page = None
        self._last = time.process_time()
        decoded = self._took("decode", decode_html(html))
        tree = self._took("parse", parse(decoded))
        page = self._took("blocks", cut(tree, ""))
        if len(page.blocks) == 0:
            return
        self.page = page
        batch = self._took("features", features([page]))
        answer = self._took("model", self.model(batch))
        p, rule = answer.probabilities, self.model.manifest.decoding
        *_, last = chosen(page, p, batch.size, answer.types[0], rule)
        self.model.quality(batch, answer, last.main)
        choice = self._took("labels", choose(Given(page, p), last.main))
        labels = choice.main
        if not labels.any():
            return
        tree = self._took("main_html", main_tree(page, labels, choice.hidden))
        self._took("main_html", to_html(tree))
        content = self._took("content_list", content_list(tree, page.base_url, page.scripts))
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


def compiled() -> dict[str, Callable[[bytes], object]]:
    """Return the installed extractors that are not written in Python."""
    found: dict[str, Callable[[bytes], object]] = {}
    if rust := _module("rs_trafilatura"):
        found["rs-trafilatura"] = rust.extract_bytes
        found["rs-trafilatura, Markdown"] = lambda html: rust.extract_bytes(html, output_markdown=True)
    if resiliparse := _module("resiliparse.extract.html2text"):
        found["resiliparse"] = lambda html: resiliparse.extract_plain_text(decode_html(html), main_content=True)
    return found


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


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
        PEER: trafilatura.extract,
        FAST: lambda html: trafilatura.extract(html, fast=True),
    }
    contestants |= compiled()
    for page in (rest or pages)[:WARM_UP]:
        html = page.path.read_bytes()
        for contestant in contestants.values():
            contestant(html)

    waiting: list[bytes] = []
    cut_pages: list[Page] = []
    for page in tqdm(pages, unit="page", desc="extract"):
        html = page.path.read_bytes()
        sizes.append(len(html))
        for name in chance.sample(list(contestants), len(contestants)):
            times[name].append(measure(contestants[name], html))
        for step, milliseconds in steps.milliseconds.items():
            times[step].append(milliseconds)
        times[LABELLED].append(steps.milliseconds["features"] + steps.milliseconds["model"])
        cut_pages += [steps.page] if steps.page else []
        waiting.append(html)
        if len(waiting) == batch_size or len(sizes) == len(pages):
            times[BATCHED].append(measure(together, waiting))
            times[LABELLED_TOGETHER].append(measure(steps.label, cut_pages))
            waiting, cut_pages = [], []
    extractor.close()
    return report(arguments, times, outcomes, sizes)


def report(
    arguments: argparse.Namespace, times: dict[str, list[float]], outcomes: Counter[str], sizes: list[int]
) -> str:
    """Return the tables as text."""
    n = len(sizes)
    peer = statistics.mean(times[PEER])
    batched = sum(times[BATCHED]) / n
    rows = [
        [name, *_figures(times[name]), f"{1000 / mean:.1f}", f"{peer / mean:.2f}"]
        for name in (WHOLE, PEER, FAST, *compiled())
        for mean in [statistics.mean(times[name])]
    ]
    rows.insert(1, [BATCHED, f"{batched:.2f}", "", "", f"{1000 / batched:.1f}", f"{peer / batched:.2f}"])
    labelled = sum(times[LABELLED_TOGETHER]) / n
    share = [
        [name, f"{mean:.2f}", median, f"{mean / peer:.2f}"]
        for name, mean, median in (
            (LABELLED, statistics.mean(times[LABELLED]), f"{statistics.median(times[LABELLED]):.2f}"),
            (LABELLED_TOGETHER, labelled, ""),
            (WHOLE, statistics.mean(times[WHOLE]), f"{statistics.median(times[WHOLE]):.2f}"),
            (BATCHED, batched, ""),
        )
    ]
    total = sum(sum(times[step]) for step in STEPS)
    steps = [[step, *_figures(times[step]), f"{100 * sum(times[step]) / total:.0f} %"] for step in STEPS]
    kilobytes = sorted(size / 1000 for size in sizes)
    return "\n\n".join(
        [
            heading("extract.py", ["scrapy-dripper", "trafilatura", "lxml", "numpy", "onnxruntime", "html2text"]),
            f"{n} pages, {statistics.median(kilobytes):.0f} kB in the median and {statistics.mean(kilobytes):.0f} kB "
            f"in the mean, stratified by page type, seed {arguments.seed}; CPU milliseconds per page, one thread.\n"
            f"scrapy-dripper returns Main-HTML, Markdown and text; in batches of {Config().batch_size}, or page by "
            "page. Trafilatura returns text.\n"
            "Its pages by outcome: " + ", ".join(f"{name} {count}" for name, count in outcomes.most_common()) + ".",
            table(["the whole way", "mean", "median", "p95", "pages/s", "speed / trafilatura"], rows),
            table(["part of the way", "mean", "median", "time / trafilatura's whole time, means"], share),
            table(["scrapy-dripper, step by step", "mean", "median", "p95", "share"], steps),
        ]
    )


def _figures(values: list[float]) -> list[str]:
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return [f"{number:.2f}" for number in (statistics.mean(values), statistics.median(values), p95)]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="CPU time per page, step by step and beside Trafilatura.")
    parser.add_argument("--data", type=Path, default=DEFAULT, help="folder of *.html; default: .cache/wcxb-dev/html")
    parser.add_argument("--pages", type=int, default=300, help="default: 300")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "extract.txt", help="where the report goes"
    )
    arguments = parser.parse_args()
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    publish(run(arguments), arguments.output)


if __name__ == "__main__":
    main()
