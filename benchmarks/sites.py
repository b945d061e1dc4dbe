"""Measure the effect of the site memory on the pages of a host.

Each page is measured after 1, 3, 10 and all other pages of its host in a fixed random order, so the same pages are
compared. Pages without ground truth (indexes, archives) are among the other pages. The engine labels each page once,
and the memory changes its labels afterwards, as in a crawl.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from report import heading, publish, table
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.dataset.bootstrap import paired_interval
from scrapy_dripper.dataset.neutral import page_title, words
from scrapy_dripper.dataset.pages import DataError, Sample, related_hosts
from scrapy_dripper.dataset.prf import PRF
from scrapy_dripper.dataset.sets import PAGES, SetChoice, load_sets
from scrapy_dripper.engines.base import EngineError, Labels, Limits
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.engines.tagger.model import bundled
from scrapy_dripper.evaluation.measure import scored
from scrapy_dripper.extraction import Document
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.page import Page
from scrapy_dripper.sites import SiteMemory, hashes, parts_of

SEEN = (1, 3, 10, 0)
"""Numbers of other pages; 0 for all."""
DATA = Path(__file__).parents[1] / ".cache"
SETS = [str(DATA / name) for name in ("sites", "elsewhere", "wcxb-dev")]
OUTPUT = Path(__file__).parent / "results" / "sites.txt"
SEED = 20261123


class Once:
    """Labels a page with a tagger, and caches the answer."""

    name, profile, limits = Tagger.name, Tagger.profile, Limits()

    def __init__(self, model: Path) -> None:
        self._tagger = Tagger.load(Config(model=str(model), threads=1))
        self.answer: Labels | EngineError | None = None
        self.page: Page | None = None
        """The page that was labelled last."""
        self.seconds = 0.0
        """The CPU time of its labels."""
        self.asked = False
        """True after a call."""

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of the only page of a call."""
        self.asked = True
        if self.answer is None:
            start = time.process_time()
            (self.answer,) = self._tagger.label(pages)
            self.seconds = time.process_time() - start
            (self.page,) = pages
        return [self.answer]

    def close(self) -> None:
        """Release the model."""
        self._tagger.close()


class Truth:
    """Labels a page by its ground truth."""

    name, profile, limits = Tagger.name, Tagger.profile, Limits()

    def __init__(self, labels: Callable[[Page, str], npt.NDArray[np.bool_]]) -> None:
        self._labels = labels
        self.text = ""
        """The ground truth of the page."""

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return which blocks are in the ground truth."""
        found = [self._labels(page, self.text) for page in pages]
        return [Labels(main.astype(np.float32), main) for main in found]

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class One:
    """A page, the engine's answer for it, and its score without memory."""

    sample: Sample
    answer: Labels | EngineError | None
    digest: bytes
    alone: Score | None


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a text, and the number of its words that are not in the truth."""

    prf: PRF
    junk: int
    """Those that are not in the title of the page either."""
    headline: int
    """Those that are."""


@dataclass(frozen=True, slots=True)
class Row:
    """The scores of a page without and with memory, after a number of other pages of its host."""

    part: str
    seen: int
    before: Score
    after: Score


def hosts(samples: Sequence[Sample]) -> Iterator[list[Sample]]:
    """Yield the pages of each host that has more than one, in a fixed random order."""
    groups: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.host:
            groups[sample.part, sample.host].append(sample)
    for (_, name), pages in sorted(groups.items()):
        if len(pages) > 1:
            pages.sort(key=lambda sample: sample.id)
            random.Random(f"{SEED} {name}").shuffle(pages)
            yield pages


def loaded(choices: Sequence[str]) -> list[Sample]:
    """Return the pages of sets, including those without ground truth, which are only seen."""
    samples = []
    for one in load_sets(map(SetChoice.parse, choices)):
        samples += [replace(sample, part=one.name) for sample in one.samples if sample.measure]
        listed = one.folder / PAGES
        if listed.is_file():
            with listed.open(encoding="utf-8") as lines:
                records = [json.loads(line) for line in lines if line.strip()]
            of_id = {record["id"]: record for record in records if "site" in record}
            samples = [replace(s, host=of_id[s.id]["site"]) if s.id in of_id else s for s in samples]
            sites = {s.host: s for s in samples if s.part == one.name}
            for record in records:
                if record.get("kind") == "other" and record.get("site") in sites:
                    path = one.folder / "html" / f"{record['id']}.html"
                    like = sites[record["site"]]
                    samples.append(replace(like, id=record["id"], url=record["url"], path=path, measure=False))
    return samples


def models(folds: Path | None, model: Path, samples: Sequence[Sample]) -> Mapping[str, Path]:
    """Return the model for each page, by its id: one that was not trained on its host."""
    if folds is None:
        return dict.fromkeys((sample.id for sample in samples), model)
    of_page: dict[str, int] = json.loads((folds / "folds.json").read_text(encoding="utf-8"))
    names = dict(zip((s.id for s in samples), related_hosts([s.host for s in samples]), strict=True))
    of_host = {names[sample.id]: of_page[sample.id] for sample in samples if sample.id in of_page}
    return {name: folds / str(of_page.get(name, of_host.get(host, 0))) for name, host in names.items()}


def measured(pages: Sequence[Sample], engine: Once, extractor: Extractor) -> Iterator[Row]:
    """Yield the scores of the pages of a host."""
    ones = []
    for sample in tqdm(pages, desc=pages[0].host[:30], unit="page", leave=False, disable=None):
        engine.answer = None
        ones.append(_extracted(sample, engine, extractor, b""))
    for one in ones:
        if one.alone is None or not one.digest:
            continue
        others = [other for other in ones if other is not one and other.digest]
        for seen in SEEN:
            if len(others) < max(seen, 1):
                continue
            memory = SiteMemory()
            for other in others[: seen or len(others)]:
                memory.learn(other.sample.url, other.digest)
            known = memory.known(one.sample.url)
            after = one.alone
            if np.isin(parts_of(one.digest)[0], hashes(known)).any():  # else it changes nothing
                engine.answer = one.answer
                after = _extracted(one.sample, engine, extractor, known).alone or one.alone
            yield Row(one.sample.part, seen, one.alone, after)


def _extracted(sample: Sample, engine: Once, extractor: Extractor, known: bytes) -> One:
    html = sample.path.read_bytes()
    (found,) = extractor.extract([Document(html, sample.url, known=known)])
    score = None
    if sample.measure:
        text = found.text or ""
        wrong = Counter(words(text)) - Counter(words(sample.truth))
        titles = ("", sample.title, page_title(html))
        junk = min((wrong - Counter(words(title))).total() for title in titles)
        score = Score(scored(sample, text, html).neutral, junk, wrong.total() - junk)
    return One(sample, engine.answer, found.digest, score)


def perfect(groups: Sequence[Sequence[Sample]]) -> str:
    """Return a table of the F1 that the true labels of blocks have: what no memory can exceed."""
    from roundtrip import true_labels

    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    engine = Truth(true_labels)
    extractor = Extractor(Config(processes=0), engine)
    for pages in tqdm(groups, unit="host", disable=None):
        for sample in pages:
            if not sample.measure:
                continue
            engine.text, html = sample.truth, sample.path.read_bytes()
            (one,) = extractor.extract([Document(html, sample.url)])
            score = scored(sample, one.text or "", html).neutral.f1
            for seen in SEEN:
                if len(pages) > max(seen, 1):
                    found[sample.part, seen].append(score)
    head = ["pages", "with others", "n", "F1 of true labels"]
    rows = [[part, str(seen or "all"), str(len(f1)), f"{_mean(f1):.4f}"] for (part, seen), f1 in found.items()]
    return table(head, rows)


def report(rows: Sequence[Row]) -> str:
    """Return a table of all sets."""
    head = [
        "pages",
        "seen",
        "n",
        "F1 without",
        "with",
        "difference",
        "95 %",
        "P",
        "R",
        "junk",
        "with",
        "headline",
        "changed",
    ]
    lines = []
    for part in dict.fromkeys(row.part for row in rows):
        for seen in SEEN:
            some = [row for row in rows if row.part == part and row.seen == seen]
            if not some:
                continue
            deltas = [[b - a for a, b in zip(row.before.prf, row.after.prf, strict=True)] for row in some]
            precision, recall, f1 = (paired_interval(column) for column in zip(*deltas, strict=True))
            lines.append(
                [
                    part,
                    str(seen or "all"),
                    str(len(some)),
                    f"{_mean([row.before.prf.f1 for row in some]):.4f}",
                    f"{_mean([row.after.prf.f1 for row in some]):.4f}",
                    f"{f1.mean:+.4f}",
                    f"{f1.low:+.4f} to {f1.high:+.4f}",
                    f"{precision.mean:+.4f}",
                    f"{recall.mean:+.4f}",
                    f"{_mean([row.before.junk for row in some]):.1f}",
                    f"{_mean([row.after.junk for row in some]):.1f}",
                    f"{_mean([row.after.headline for row in some]):.1f}",
                    f"+{sum(delta[2] > 0.002 for delta in deltas)} -{sum(delta[2] < -0.002 for delta in deltas)}",
                ]
            )
    return table(head, lines)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def cost(pages: Sequence[Sample], model: Path) -> str:
    """Return the CPU time of pages of one host, without and with memory in turns, in this process."""
    taken = {"off": 0.0, "on": 0.0}
    extractors = {name: Extractor(Config(model=str(model), site_memory=name, processes=0)) for name in taken}
    for i, sample in enumerate(tqdm(pages, desc="CPU time", unit="page", disable=None)):
        # Under an address of its own each page counts as a new one, so the memory fills up.
        document = Document(sample.path.read_bytes(), f"https://example.org/{i}")
        for name in taken if i % 2 else reversed(taken):
            start = time.process_time()
            extractors[name].extract([document])
            taken[name] += time.process_time() - start
    off, on = (1_000 * seconds / len(pages) for seconds in taken.values())
    memory = extractors["on"].memory
    assert memory is not None
    texts = sum(len(host.texts) for _, host in memory)
    return (
        f"CPU ms a page, means over {len(pages)} pages, each as one more of a host with up to {texts:,} texts:\n"
        f"off {off:.1f}, on {on:.1f}, ratio of pages/s {off / on:.3f}"
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="[NAME=]FOLDER", default=SETS, help="annotated pages")
    parser.add_argument("--model", type=Path, default=bundled(), help="folder of a tagger (the bundled one)")
    parser.add_argument(
        "--folds",
        type=Path,
        metavar="FOLDER",
        help="what --fold-models of the training has written: each page is measured by the model that was not trained "
        "on its host",
    )
    parser.add_argument("--hosts", type=int, default=0, metavar="N", help="the first hosts only, 0 for all")
    parser.add_argument("--cost", type=int, metavar="N", help="measure the CPU time of N random pages instead")
    parser.add_argument("--perfect", action="store_true", help="measure the true labels of blocks instead")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the report (%(default)s)")
    options = parser.parse_args()
    try:
        samples = loaded(options.sets)
        model_of = models(options.folds, options.model, samples)
    except (DataError, OSError, ValueError) as error:
        parser.error(str(error))
    head = heading("sites.py", ["scrapy-dripper", "lxml", "numpy", "onnxruntime"])
    if options.cost:
        drawn = random.Random(SEED).sample(samples, min(options.cost, len(samples)))
        publish(f"{head}\n\n{cost(drawn, options.model)}", options.output)
        return
    groups = list(hosts(samples))
    if options.perfect:
        publish(f"{head}\n\n{perfect(groups[: options.hosts or len(groups)])}", options.output)
        return
    groups = sorted(groups[: options.hosts or len(groups)], key=lambda pages: str(model_of[pages[0].id]))
    rows: list[Row] = []
    bar = tqdm(total=sum(map(len, groups)), unit="page", disable=None)
    engine, extractor, last = None, None, None
    for pages in groups:
        if model_of[pages[0].id] != last:
            last = model_of[pages[0].id]
            engine = Once(last)
            extractor = Extractor(Config(site_memory="on", processes=0), engine)
        assert engine is not None
        assert extractor is not None
        rows += measured(pages, engine, extractor)
        bar.update(len(pages))
    bar.close()
    order = list(dict.fromkeys(sample.part for sample in samples))
    rows.sort(key=lambda row: order.index(row.part))
    note = (
        "seen: so many other pages of the host, in a fixed random order, before this one.\n"
        "Words as in scrapy_dripper/dataset/neutral.py; means over pages of hosts that have as many others.\n"
        "junk: words of the text that are neither in the truth nor in the title, per page, without and with memory.\n"
        "headline: words of the title that are in the text and not in the truth, which leaves out some headlines.\n"
        "changed: pages whose F1 rises and falls by more than .002."
    )
    publish(f"{head}\n\n{note}\n\n{report(rows)}", options.output)


if __name__ == "__main__":
    main()
