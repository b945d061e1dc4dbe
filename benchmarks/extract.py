"""CPU time per page of each step and of the complete extraction, compared with Trafilatura on the same pages.

All extractors get the same bytes and run on one thread in one process. The order of pages is random, and so is the
order of extractors for each page, so that noise of the machine affects all of them equally. Each extractor sees each
page once, and other pages are used to warm up, so that no cache knows the page.

rs-trafilatura has wheels for one version of Python, and the others are to run on the fastest Python of the machine. So
it runs in a process of another interpreter, in its turn, and measures its own CPU time around the call.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import trafilatura
from common import options, publish, sample, table
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
COMPILED = "resiliparse"
"""Is not written in Python, and measured if it is installed."""
RUST = "rs-trafilatura"
RUST_PEER = Path(__file__).with_name("rust_peer.py")
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


class Rust:
    """rs-trafilatura in a process of another interpreter, which measures itself."""

    def __init__(self, python: str) -> None:
        """Raise SystemExit if the interpreter cannot be started, or does not have rs-trafilatura."""
        command = [python, "-I", str(RUST_PEER)]  # isolated from the packages of this Python
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        except OSError as error:
            raise SystemExit(f"--rust must name a Python interpreter: {error}") from None
        advice = f"run '{python} -m pip install {RUST}', whose wheel is for Python 3.12"
        self.version = self._answer(f"--rust: {advice}")

    def __call__(self, page: Path) -> float:
        """Return the CPU milliseconds of a page."""
        assert self._process.stdin is not None
        print(json.dumps(str(page.resolve())), file=self._process.stdin, flush=True)
        return float(self._answer(f"{RUST} failed on {page}"))

    def _answer(self, failure: str) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(failure)
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def measure(call: Callable[[Any], object], argument: object) -> float:
    """Return the CPU milliseconds of a call, including all threads of this process."""
    start = time.process_time()
    call(argument)
    return 1000 * (time.process_time() - start)


def of_page(call: Callable[[bytes], object]) -> Callable[[Path], float]:
    """Return a function that reads a page, and returns the CPU milliseconds of a call with it."""
    return lambda page: measure(call, page.read_bytes())


def run(arguments: argparse.Namespace) -> list[str]:
    """Measure and return the report."""
    pages, rest = sample(arguments.data, arguments.pages, arguments.seed)
    batch_size = Config().batch_size
    # In its worker process, which gets the largest pages, their time would not be measured.
    extractor, steps = Extractor(Config(processes=0)), Steps()
    rust = Rust(arguments.rust) if arguments.rust else None
    times: dict[str, list[float]] = defaultdict(list)
    outcomes: Counter[str] = Counter()
    sizes: list[int] = []
    chance = random.Random(arguments.seed)

    def whole(html: bytes) -> Extraction:
        return extractor.extract([Document(html)])[0]

    def together(batch: list[bytes]) -> None:
        extractions = extractor.extract(batch)
        outcomes.update(str(extraction.fallback_reason or extraction.source) for extraction in extractions)

    contestants: dict[str, Callable[[Path], float]] = {
        WHOLE: of_page(whole),
        "steps": of_page(steps),
        PEER: of_page(PEERS[PEER].load()),
        FAST: of_page(lambda html: trafilatura.extract(html, fast=True)),
        **{name: of_page(PEERS[name].load()) for name in installed_peers([COMPILED])},
        **({RUST: rust} if rust else {}),
    }
    with TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.html"  # for what is imported for pages without content only
        empty.write_text("<html><body></body></html>")
        for page in [*(rest or pages)[:WARM_UP], empty]:
            for contestant in contestants.values():
                contestant(page)

    waiting: list[bytes] = []
    for page in tqdm(pages, unit="page", desc="extract"):
        for name in chance.sample(list(contestants), len(contestants)):
            times[name].append(contestants[name](page))
        for step, milliseconds in steps.milliseconds.items():
            times[step].append(milliseconds)
        waiting.append(page.read_bytes())
        sizes.append(len(waiting[-1]))
        if len(waiting) == batch_size or len(sizes) == len(pages):
            times[BATCHED].append(measure(together, waiting))
            waiting = []
    extractor.close()
    if rust:
        rust.close()
    about = f"Trafilatura returns text{f', and {RUST} {rust.version} Markdown' if rust else ''}."
    return report(arguments.seed, [name for name in contestants if name != "steps"], times, outcomes, sizes, about)


def report(
    seed: int, names: list[str], times: dict[str, list[float]], outcomes: Counter[str], sizes: list[int], about: str
) -> list[str]:
    """Return the parts of the report. ``about`` says what the peers return."""
    n = len(sizes)
    references = [name for name in (PEER, RUST) if name in names]
    means = {name: sum(times[name]) / n for name in (WHOLE, BATCHED, *names)}
    rows = [
        [
            name,
            *(_figures(times[name]) if name != BATCHED else (f"{mean:.2f}", "", "")),
            f"{1000 / mean:.1f}",
            *(f"{means[reference] / mean:.2f}" for reference in references),
        ]
        for name, mean in means.items()
    ]
    total = sum(sum(times[step]) for step in STEPS)
    steps = [[step, *_figures(times[step]), f"{100 * sum(times[step]) / total:.0f} %"] for step in STEPS]
    kilobytes = [size / 1000 for size in sizes]
    return [
        f"{n} pages, {statistics.median(kilobytes):.0f} kB in the median and {statistics.mean(kilobytes):.0f} kB "
        f"in the mean, stratified by page type, seed {seed}; CPU milliseconds per page, one thread.\n"
        f"scrapy-dripper returns Main-HTML, Markdown and text; in batches of {Config().batch_size}, or page by "
        f"page. {about}\n"
        "Its pages by outcome: " + ", ".join(f"{name} {count}" for name, count in outcomes.most_common()) + ".",
        table(["the whole way", "mean", "median", "p95", "pages/s", *(f"speed / {name}" for name in references)], rows),
        table(["scrapy-dripper, step by step", "mean", "median", "p95", "share"], steps),
    ]


def _figures(values: list[float]) -> list[str]:
    numbers = (statistics.mean(values), statistics.median(values), np.percentile(values, 95))
    return [f"{number:.2f}" for number in numbers]


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__, 300)
    parser.add_argument("--rust", metavar="PYTHON", help=f"an interpreter that has {RUST}, to measure that as well")
    arguments = parser.parse_args()
    quiet()
    packages = ["scrapy-dripper", "trafilatura", "lxml", "numpy", "onnxruntime", "html2text"]
    publish(arguments, packages, *run(arguments))


if __name__ == "__main__":
    main()
