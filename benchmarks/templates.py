"""Measure which pages templates answer, and how well, compared with the model alone.

The pages of each host are processed one after the other, in a fixed random order including pages
without ground truth (indexes, archives). The engine labels each page once. With templates, its labels are only used if
no template answers. So results only differ on pages that a template answers. Sites are divided into two halves by a
hash of their names: thresholds were chosen on the first, and the second was looked at afterwards.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from hosts import SEED, Once, hosts, loaded, models
from report import heading, publish, table
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.base import EngineError, Labels
from scrapy_dripper.engines.tagger.model import bundled
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.sites import Outcome, Templates
from scrapy_dripper.workshop.dataset.bootstrap import paired_interval
from scrapy_dripper.workshop.dataset.pages import DataError, Sample
from scrapy_dripper.workshop.evaluation.measure import scored

SETS = [str(Path(__file__).parents[1] / ".cache" / "sites")]
OUTPUT = Path(__file__).parent / "results" / "templates.txt"
LEAST = 20
"""Minimum number of pages with ground truth of a site that counts as large."""
WORSE = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """A page with and without templates."""

    part: str
    host: str
    number: int
    """Number of earlier pages of the host."""
    outcome: str
    alone: float
    """Word F1 of the model alone."""
    found: float
    """Word F1 with templates."""


def half(host: str) -> str:
    """Return the half to which a site belongs."""
    return ("first", "second")[blake2b(host.encode(), digest_size=1).digest()[0] & 1]


class Crawl:
    """Reads the pages of hosts one after the other, by a model alone and with templates. Labels each page once."""

    def __init__(self, model: Path) -> None:
        self._engine = Once(model)
        self._alone = Extractor(Config(processes=0), self._engine)
        self._both = Extractor(Config(sites="templates", processes=0), self._engine)
        self._known: dict[str, tuple[Labels | EngineError | None, float]] = {}

    def measured(self, pages: Sequence[Sample]) -> Iterator[Row]:
        """Yield the scores of the pages of a host, in their order."""
        self._both.templates = Templates()
        for number, sample in enumerate(pages):
            html = sample.path.read_bytes()
            document = Document(html, sample.url)
            self._engine.answer, before = self._known.get(sample.id, (None, 0.0))
            if sample.id not in self._known:
                before = self._score(sample, html, self._alone)
                self._known[sample.id] = self._engine.answer, before
            (found,) = self._both.extract([document])
            if sample.measure and found.template is not None:
                after = scored(sample, found.text or "", html).neutral.f1
                yield Row(sample.part, sample.host, number, found.template, before, after)

    def _score(self, sample: Sample, html: bytes, extractor: Extractor) -> float:
        (found,) = extractor.extract([Document(html, sample.url)])
        return scored(sample, found.text or "", html).neutral.f1 if sample.measure else 0.0


def report(rows: Sequence[Row]) -> str:
    """Return a table of all sets, and of the halves of the sites with many pages."""
    many = {host for host, n in Counter(row.host for row in rows).items() if n >= LEAST}
    groups: dict[str, list[Row]] = {}
    for part in dict.fromkeys(row.part for row in rows):
        own = [row for row in rows if row.part == part]
        large = [row for row in own if row.host in many]
        groups[f"{part}, all"] = own
        groups[f"{part}, {LEAST} pages or more"] = large
        for name in ("first", "second"):
            groups[f"... {name} half"] = [row for row in large if half(row.host) == name]
        groups["... after 100 pages"] = [row for row in large if row.number >= 100]
    lines = []
    for name, some in groups.items():
        answered = [row for row in some if row.outcome == Outcome.ANSWERED.value]
        if not answered:
            continue
        deltas = [row.found - row.alone for row in answered]
        change = paired_interval(deltas)
        lines.append(
            [
                name,
                str(len({row.host for row in some})),
                str(len(some)),
                f"{len(answered) / len(some):.3f}",
                f"{sum(row.alone for row in answered) / len(answered):.4f}",
                f"{sum(row.found for row in answered) / len(answered):.4f}",
                f"{change.mean:+.4f}",
                f"{change.low:+.4f} to {change.high:+.4f}",
                f"+{sum(delta > WORSE for delta in deltas)} -{sum(delta < -WORSE for delta in deltas)}",
                f"{min(deltas):+.3f}",
            ]
        )
    head = ["pages", "sites", "n", "answered", "F1 alone", "template", "difference", "95 %", "changed", "worst"]
    outcomes = Counter(row.outcome for row in rows)
    said = ", ".join(f"{name} {outcomes[name]}" for name in (one.value for one in Outcome))
    return f"{table(head, lines)}\n\nall pages by outcome: {said}"


def cost(pages: Sequence[Sample], model: Path) -> str:
    """Return the CPU time of pages that a template answers, measured in this process, with and without templates in
    turn.
    """
    names = ("off", "templates")
    extractors = {name: Extractor(Config(model=str(model), sites=name, processes=0)) for name in names}
    taken, count = dict.fromkeys(names, 0.0), 0
    for i, sample in enumerate(tqdm(pages, desc="CPU time", unit="page", disable=None)):
        document = Document(sample.path.read_bytes(), sample.url)
        own, answered = {}, False
        for name in names if i % 2 else reversed(names):
            start = time.process_time()
            (found,) = extractors[name].extract([document])
            own[name] = time.process_time() - start
            answered |= found.template == Outcome.ANSWERED.value
        if answered:
            count += 1
            taken = {name: taken[name] + own[name] for name in names}
    off, on = (1_000 * taken[name] / count for name in names)
    return f"CPU ms a page, means over {count} pages that a template answered: off {off:.1f}, on {on:.1f}"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="[NAME=]FOLDER", default=SETS, help="annotated pages")
    parser.add_argument("--model", type=Path, default=bundled(), help="folder of a tagger (the bundled one)")
    parser.add_argument(
        "--folds", type=Path, metavar="FOLDER", help='models of folds (`make train ARGS="--fold-models FOLDER"`)'
    )
    parser.add_argument("--orders", type=int, default=1, metavar="N", help="random orders of pages (%(default)s)")
    parser.add_argument("--hosts", type=int, default=0, metavar="N", help="the first hosts only, 0 for all")
    parser.add_argument("--cost", action="store_true", help="measure the CPU time instead")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the report (%(default)s)")
    options = parser.parse_args()
    try:
        samples = loaded(options.sets)
        model_of = models(options.folds, options.model, samples)
    except (DataError, OSError, ValueError) as error:
        parser.error(str(error))
    head = heading("templates.py", ["scrapy-dripper", "lxml", "numpy", "onnxruntime"])
    groups = list(hosts(samples))
    groups = sorted(groups[: options.hosts or len(groups)], key=lambda pages: str(model_of[pages[0].id]))
    if options.cost:
        publish(f"{head}\n\n{cost([page for pages in groups for page in pages], options.model)}", options.output)
        return
    rows: list[Row] = []
    crawl, last = None, None
    bar = tqdm(total=sum(map(len, groups)) * options.orders, unit="page", disable=None)
    for pages in groups:
        if crawl is None or model_of[pages[0].id] != last:
            last = model_of[pages[0].id]
            crawl = Crawl(last)
        for order in range(options.orders):
            if order:
                random.Random(f"{SEED} {order}").shuffle(pages)
            rows += crawl.measured(pages)
            bar.update(len(pages))
    bar.close()
    note = (
        "answered: share of the pages with ground truth that a template labelled. What is to its right is of these:\n"
        "difference: word F1 with templates less that of the model alone. "
        f"changed: pages whose word F1 rises and falls by more than {WORSE}. worst: the greatest fall."
    )
    publish(f"{head}\n\n{note}\n\n{report(rows)}", options.output)


if __name__ == "__main__":
    main()
