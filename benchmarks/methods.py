"""Compare all methods on the development sets: the tagger alone, with site memory, with templates and with SORE, and
Trafilatura, R^4, readability, jusText, and the title with all paragraphs. The measures are those of this project and of
the two papers that compare such methods.

A fixed random sample of each set is measured, in which each part, page type and site has its share. Site memory and
templates are measured after 1, 3, 10 and all other pages of a page's host, in a fixed random order. These other pages
need not be in the sample. The results of each page are stored in a file at once, so that an interrupted run can be
continued.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import sore
from report import heading, publish, table
from sites import SEEN, Once, hosts, loaded, models
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.dataset.bootstrap import mean_interval, paired_interval
from scrapy_dripper.dataset.pages import DataError, Sample
from scrapy_dripper.dataset.sets import SetChoice, load_sets
from scrapy_dripper.engines.base import Labels
from scrapy_dripper.engines.tagger.model import bundled
from scrapy_dripper.evaluation.measure import OURS, Measurer, Result, Setup, Task, from_json, scored, to_json
from scrapy_dripper.evaluation.peers import PeerError, check_peers
from scrapy_dripper.evaluation.study import SCALE
from scrapy_dripper.extraction import Document, Extraction
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.output import write
from scrapy_dripper.page import Page, read
from scrapy_dripper.sites import Outcome, SiteMemory, Templates, is_audited, say, unpack

DATA = Path(__file__).parents[1] / ".cache"
SETS = [str(DATA / name) for name in ("wcxb-dev", "elsewhere", "sites")]
OUTPUT = Path(__file__).parent / "results" / "methods.txt"
PEERS = "trafilatura,r4,r4-paper,readability,justext,title_paragraphs"
SEED = 20261123
PAGES = 300
ON = {
    "memory": Config(site_memory="on", processes=0),
    "templates": Config(templates="on", processes=0),
}
"""Configurations of the methods that use other pages of a host."""
FILTERS = {
    "SORE": sore.Setting(core=0.2, cutoff=0.9, outlier=0.2, protected=0.5),
    "SORE, paper": sore.Setting(core=0.2, cutoff=0.8, outlier=0.2, protected=2.0),
}
"""SORE after the tagger: for blocks with a probability below .5, with the parameters that ``sore.py`` finds, and for
all blocks, as in the paper.
"""

Results = Mapping[str, Mapping[str, Result]]
"""Results by page, and then by method."""


def drawn(samples: Sequence[Sample], n: int) -> list[Sample]:
    """Return n pages, with about the same share of each part, of each page type, and of each host with several
    pages.
    """
    groups: dict[tuple[str, ...], list[Sample]] = defaultdict(list)
    hosts: dict[str, int] = defaultdict(int)
    for sample in samples:
        hosts[sample.host] += 1
    for sample in samples:
        groups[sample.part, sample.page_type, sample.host if hosts[sample.host] > 9 else ""].append(sample)
    order = []
    for name, group in sorted(groups.items()):
        shuffled = random.Random(f"{SEED} {name}").sample(group, len(group))
        order += [((i + 0.5) / len(group), name, sample) for i, sample in enumerate(shuffled)]
    return [sample for _, _, sample in sorted(order, key=lambda one: one[:2])[:n]]


class Cache:
    """The results of pages, in memory and in a file of JSON lines."""

    def __init__(self, path: Path, ids: Iterable[str]) -> None:
        self.found: dict[str, dict[str, Result]] = {name: {} for name in ids}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                for name, values in entry["results"].items():
                    result = from_json(name, values)
                    if entry["id"] in self.found and isinstance(result, Result):
                        self.found[entry["id"]][name] = result
        self._file = path.open("a", encoding="utf-8")

    def add(self, name: str, results: Mapping[str, Result]) -> None:
        """Add the results of a page."""
        self.found[name].update(results)
        values = {method: to_json(replace(one, blocks=None)) for method, one in results.items()}
        self._file.write(json.dumps({"id": name, "results": values}) + "\n")
        self._file.flush()

    def missing(self, samples: Iterable[Sample], methods: Iterable[str]) -> list[Sample]:
        """Return the pages that have no result of one of the methods."""
        return [sample for sample in samples if set(methods) - set(self.found[sample.id])]


def alone(samples: Sequence[Sample], model_of: Mapping[str, Path], peers: Sequence[str], cache: Cache) -> None:
    """Measure the methods that only use the page itself."""
    missing = sorted(cache.missing(samples, (OURS, *peers)), key=lambda sample: str(model_of[sample.id]))
    measurer, last = None, None
    for sample in tqdm(missing, desc="alone", unit="page", disable=None):
        task = Task(sample, (OURS, *peers))
        if measurer is None or model_of[sample.id] != last:
            last = model_of[sample.id]
            config = Config(model=str(last), processes=0, threads=1)
            measurer = Measurer(Setup(config, model=True, nodes=True, study=True))
            measurer(task)  # the first page of a process also pays for imports
        cache.add(sample.id, {name: one for name, one in measurer(task).items() if isinstance(one, Result)})


@dataclass(frozen=True, slots=True)
class Seen:
    """A page of a host, with the engine's labels, their CPU time, and what the site memory learns from the page."""

    sample: Sample
    page: Page
    answer: Labels
    seconds: float
    digest: bytes


def among(
    group: Sequence[Sample], wanted: frozenset[str], engine: Once, extractors: Mapping[str, Extractor]
) -> Iterator[tuple[Sample, Mapping[str, Result]]]:
    """Yield the results of the wanted pages of a host, after learning from its other pages."""
    ones: list[Seen] = []
    for sample in tqdm(group, desc=group[0].host[:30], unit="page", leave=False, disable=None):
        engine.answer = engine.page = None
        (found,) = extractors["memory"].extract([Document(sample.path.read_bytes(), sample.url, known=b"")])
        if found.digest and engine.page is not None and isinstance(engine.answer, Labels):
            ones.append(Seen(sample, engine.page, engine.answer, engine.seconds, found.digest))
    for one in ones:
        if one.sample.id in wanted:
            taught = _taught([other for other in ones if other is not one], one.sample)
            results = {name: _known(name.split()[0], document, one, engine, extractors) for name, document in taught}
            yield one.sample, results


def _taught(others: Sequence[Seen], sample: Sample) -> Iterator[tuple[str, Document]]:
    """Yield the document of a page for each method and each number of other pages."""
    document = Document(sample.path.read_bytes(), sample.url)
    memory, templates = SiteMemory(), Templates()
    for number, other in enumerate(others, 1):
        url = other.sample.url
        memory.learn(url, other.digest)
        said = say(other.page, unpack(templates.known(url)), audit=is_audited(url))
        templates.learn(url, said.lesson(other.answer.main))
        for seen in SEEN:
            if number == (seen or len(others)):
                yield named("memory", seen), replace(document, known=memory.known(sample.url))
                yield named("templates", seen), replace(document, templates=templates.known(sample.url))


def _known(method: str, document: Document, one: Seen, engine: Once, extractors: Mapping[str, Extractor]) -> Result:
    """Return the result of a document with knowledge of its host. The CPU time includes the engine's if it is
    called.
    """
    engine.answer, engine.asked = one.answer, False
    start = time.process_time()
    (found,) = extractors[method].extract([document])
    seconds = time.process_time() - start + one.seconds * engine.asked
    return _result(one.sample, found.text, seconds, found)


def named(method: str, seen: int) -> str:
    """Return the name of a method after a number of other pages; 0 means all."""
    return f"{method} {seen or 'all'}"


def with_others(
    groups: Sequence[list[Sample]], wanted: Sequence[Sample], model_of: Mapping[str, Path], cache: Cache
) -> None:
    """Measure site memory and templates on the wanted pages of hosts."""
    ids = {sample.id for sample in wanted}
    open_groups = []
    for group in groups:
        names = [named(method, seen) for method in ON for seen in SEEN if len(group) > max(seen, 1)]
        missing = cache.missing([sample for sample in group if sample.id in ids], names)
        if missing:
            open_groups.append((group, frozenset(sample.id for sample in missing)))
    open_groups.sort(key=lambda one: str(model_of[one[0][0].id]))
    engine, extractors, last = None, {}, None
    for group, own in tqdm(open_groups, desc="with others", unit="host", disable=None):
        if engine is None or model_of[group[0].id] != last:
            last = model_of[group[0].id]
            engine = Once(last)
            extractors = {name: Extractor(config, engine) for name, config in ON.items()}
        for sample, results in among(group, own, engine, extractors):
            cache.add(sample.id, results)


def filtered(samples: Sequence[Sample], model_of: Mapping[str, Path], cache: Cache) -> None:
    """Measure SORE after the tagger."""
    missing = cache.missing(samples, FILTERS)
    if not missing:
        return
    embed = sore.Embedder()
    index = sore.outliers(embed)
    for case in sore.cases(missing, model_of, embed):
        page = read(Document(case.sample.path.read_bytes(), case.sample.url), Config())
        results = {}
        for name, setting in FILTERS.items():
            start = time.process_time()
            keep, _ = case.kept(index, setting, alone=False)
            seconds = time.process_time() - start + sum(case.milliseconds.values()) / 1_000
            results[name] = _result(case.sample, write(page, keep, Config()).text if keep.any() else "", seconds)
        cache.add(case.sample.id, results)
    for sample in cache.missing(missing, FILTERS):  # without blocks, so there is nothing to filter
        cache.add(sample.id, dict.fromkeys(FILTERS, cache.found[sample.id][OURS]))


def _result(sample: Sample, text: str | None, seconds: float, found: Extraction | None = None) -> Result:
    row = scored(sample, text or "", sample.path.read_bytes())
    return Result(row, seconds=seconds, source=found.template if found else None)


def report(name: str, results: Sequence[Mapping[str, Result]], labels: Mapping[str, str]) -> str:
    """Return the tables of a set."""
    rows, studied = [], []
    for method, label in labels.items():
        pages = [page for page in results if method in page]
        if not pages:
            continue
        some = [page[method] for page in pages]
        f1 = mean_interval([one.row.neutral.f1 for one in some])
        change = paired_interval([page[method].row.neutral.f1 - page[OURS].row.neutral.f1 for page in pages])
        nodes = [one.nodes for one in some if one.nodes]
        study = [one.study for one in some if one.study]
        rows.append(
            [
                label,
                str(len(some)),
                f"{f1.mean:.4f}",
                f"{f1.low:.3f} to {f1.high:.3f}",
                f"{_mean([one.row.neutral.precision for one in some]):.4f}",
                f"{_mean([one.row.neutral.recall for one in some]):.4f}",
                *(
                    "" if method == OURS else cell
                    for cell in (f"{change.mean:+.4f}", f"{change.low:+.4f} to {change.high:+.4f}")
                ),
                f"{_mean([one.source == Outcome.ANSWERED.value for one in some]):.2f}" if "templates" in method else "",
                f"{1000 * _mean([one.seconds or 0 for one in some]):.1f}",
                str(sum(one.error is not None for one in some)),
            ]
        )
        if len(nodes) == len(study) == len(some):
            studied.append(
                [
                    label,
                    *(f"{_mean([getattr(one, name) for one in nodes]):.4f}" for name in ("recall", "precision", "f1")),
                    *(f"{SCALE * _mean(column):.2f}" for column in zip(*study, strict=True)),
                ]
            )
    head = ["method", "pages", "F1", "95 %", "P", "R", "difference", "95 %", "answered", "CPU ms", "errors"]
    more = ["method", "nodes R", "P", "F1", "ROUGE-1", "ROUGE-2", "ROUGE-L", "content-noise", "coherence"]
    return f"{name}: {len(results)} pages\n\n{table(head, rows)}\n\n{table([*more, 'completeness'], studied)}"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


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
    parser.add_argument("--peers", default=PEERS, metavar="NAMES", help="other methods (%(default)s)")
    parser.add_argument("--no-sore", action="store_true", help="leave out SORE, which needs wordllama and voyager")
    parser.add_argument("--pages", type=int, default=PAGES, metavar="N", help="pages of each set (%(default)s)")
    parser.add_argument("--cache", type=Path, default=DATA / "methods.jsonl", help="results of pages (%(default)s)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the report (%(default)s)")
    options = parser.parse_args()
    peers = [name for name in options.peers.split(",") if name]
    try:
        versions = check_peers(peers)
        parts = {one.name: drawn(one.samples, options.pages) for one in load_sets(map(SetChoice.parse, options.sets))}
        all_pages = loaded(options.sets)
        model_of = models(options.folds, options.model, all_pages)
    except (DataError, PeerError, OSError, ValueError) as error:
        parser.error(str(error))
    samples = [sample for part in parts.values() for sample in part]
    cache = Cache(options.cache, (sample.id for sample in samples))
    alone(samples, model_of, peers, cache)
    with_others(list(hosts(all_pages)), samples, model_of, cache)
    filters = {} if options.no_sore else {name: f"+ {name}" for name in FILTERS}
    if filters:
        filtered(samples, model_of, cache)
    after = {named(method, seen): f"+ {method}, {seen or 'all'} seen" for method in ON for seen in SEEN}
    labels = {OURS: "tagger alone", **after, **filters, **{name: name for name in peers}}
    of = (
        "by models that were not trained on the page's host" if options.folds else f"by {options.model.name}, IN-SAMPLE"
    )
    notes = "\n".join(
        [
            f"tagger: {of}. Others: {', '.join(f'{k} {v}' for k, v in versions.items())}.",
            f"Up to {options.pages} pages of each set, a fixed random sample. seen: so many other pages of the host,",
            "in a fixed random order, before this one, on pages of hosts that have as many. Others know one page.",
            "F1, P, R: words as in scrapy_dripper/dataset/neutral.py. difference: F1 less that of the tagger alone,",
            "paired by page. answered: share of pages that a template labelled. CPU ms: with all a method returns;",
            "the tagger, r4 and title_paragraphs also write Main-HTML and Markdown. Second tables: retrieved DOM nodes",
            "(Alarte and Silva), and measures of Yadav's study, 0 to 5.",
        ]
    )
    tables = [report(name, [cache.found[sample.id] for sample in part], labels) for name, part in parts.items()]
    packages = ["scrapy-dripper", "lxml", "numpy", "onnxruntime", *(("wordllama", "voyager") if filters else ())]
    publish("\n\n".join([heading("methods.py", packages), notes, *tables]), options.output)


if __name__ == "__main__":
    main()
