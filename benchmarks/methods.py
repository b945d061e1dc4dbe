"""One table of all methods on the development sets: the tagger, Trafilatura, R^4, readability, jusText, and the title
with the paragraphs, by the measures of this project and of the two papers that compare such methods.

A fixed random sample of each set is measured, with every part, page type and site by its share.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from report import heading, publish, table
from sites import models
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.dataset.bootstrap import mean_interval, paired_interval
from scrapy_dripper.dataset.pages import DataError, Sample
from scrapy_dripper.dataset.sets import SetChoice, load_sets
from scrapy_dripper.engines.tagger.model import bundled
from scrapy_dripper.evaluation.measure import OURS, Measurer, Result, Setup, Task, from_json, to_json
from scrapy_dripper.evaluation.peers import PeerError, check_peers
from scrapy_dripper.evaluation.study import SCALE

DATA = Path(__file__).parents[1] / ".cache"
SETS = [str(DATA / name) for name in ("wcxb-dev", "elsewhere", "sites")]
OUTPUT = Path(__file__).parent / "results" / "methods.txt"
PEERS = "trafilatura,r4,r4-paper,readability,justext,title_paragraphs"
SEED = 20261123

Results = Mapping[str, Mapping[str, Result]]
"""Results by page, and then by method."""


def drawn(samples: Sequence[Sample], n: int) -> list[Sample]:
    """Return n pages, about the same share of each part, page type and host with several pages."""
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


def measured(samples: Sequence[Sample], model_of: Mapping[str, Path], peers: Sequence[str], cache: Path) -> Results:
    """Return the results of all methods, those in the cache first."""
    found: dict[str, dict[str, Result]] = {sample.id: {} for sample in samples}
    if cache.is_file():
        for line in cache.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            for name, values in entry["results"].items():
                result = from_json(name, values)
                if entry["id"] in found and isinstance(result, Result):
                    found[entry["id"]][name] = result
    missing = [sample for sample in samples if set(found[sample.id]) < {OURS, *peers}]
    missing.sort(key=lambda sample: str(model_of[sample.id]))
    measurer, last = None, None
    cache.parent.mkdir(parents=True, exist_ok=True)
    with cache.open("a", encoding="utf-8") as file:
        for sample in tqdm(missing, unit="page", disable=None):
            task = Task(sample, (OURS, *peers))
            if measurer is None or model_of[sample.id] != last:
                last = model_of[sample.id]
                config = Config(model=str(last), sandbox="never", threads=1)
                measurer = Measurer(Setup(config, model=True, nodes=True, study=True))
                measurer(task)  # the first page of a process also pays for imports
            results = {name: one for name, one in measurer(task).items() if isinstance(one, Result)}
            found[sample.id].update(results)
            values = {name: to_json(one) for name, one in results.items()}
            file.write(json.dumps({"id": sample.id, "results": values}) + "\n")
            file.flush()
    return found


def report(name: str, results: Sequence[Mapping[str, Result]], labels: Mapping[str, str]) -> str:
    """Return the tables of a set."""
    rows, studied = [], []
    for method, label in labels.items():
        some = [page[method] for page in results]
        f1 = mean_interval([one.row.neutral.f1 for one in some])
        less = paired_interval([p[OURS].row.neutral.f1 - p[method].row.neutral.f1 for p in results])
        nodes = [one.nodes for one in some if one.nodes]
        study = [one.study for one in some if one.study]
        rows.append(
            [
                label,
                f"{f1.mean:.4f}",
                f"{f1.low:.3f} to {f1.high:.3f}",
                f"{_mean([one.row.neutral.precision for one in some]):.4f}",
                f"{_mean([one.row.neutral.recall for one in some]):.4f}",
                *(
                    "" if method == OURS else cell
                    for cell in (f"{less.mean:+.4f}", f"{less.low:+.3f} to {less.high:+.3f}")
                ),
                *(f"{_mean([getattr(one, name) for one in nodes]):.4f}" for name in ("recall", "precision", "f1")),
                f"{1000 * _mean([one.seconds or 0 for one in some]):.1f}",
                str(sum(one.error is not None for one in some)),
            ]
        )
        studied.append([label, *(f"{SCALE * _mean(column):.2f}" for column in zip(*study, strict=True))])
    head = ["method", "F1", "95 %", "P", "R", "ours less", "95 %", "nodes R", "P", "F1", "CPU ms", "errors"]
    more = ["method", "ROUGE-1", "ROUGE-2", "ROUGE-L", "content-noise", "coherence", "completeness"]
    return f"{name}: {len(results)} pages\n\n{table(head, rows)}\n\n{table(more, studied)}"


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
    parser.add_argument("--pages", type=int, default=200, metavar="N", help="pages of each set (%(default)s)")
    parser.add_argument("--cache", type=Path, default=DATA / "methods.jsonl", help="results of pages (%(default)s)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the report (%(default)s)")
    options = parser.parse_args()
    peers = options.peers.split(",")
    try:
        versions = check_peers(peers)
        sets = load_sets(map(SetChoice.parse, options.sets))
        samples = [sample for one in sets for sample in one.samples]
        model_of = models(options.folds, options.model, samples)
    except (DataError, PeerError, OSError, ValueError) as error:
        parser.error(str(error))
    parts = {one.name: drawn(one.samples, options.pages) for one in sets}
    results = measured([sample for part in parts.values() for sample in part], model_of, peers, options.cache)
    labels = {OURS: "scrapy-dripper", **{name: name for name in peers}}
    of = (
        "by models that were not trained on the page's host" if options.folds else f"by {options.model.name}, IN-SAMPLE"
    )
    notes = (
        f"scrapy-dripper: the tagger, {of}. The others: {', '.join(f'{k} {v}' for k, v in versions.items())}.\n"
        "F1, P, R: words as in scrapy_dripper/dataset/neutral.py. ours less: F1 of scrapy-dripper less that of the "
        "method, paired by page.\n"
        "nodes: retrieved DOM nodes (Alarte and Silva). Second tables: measures of Yadav's study, 0 to 5.\n"
        "CPU ms: with all that a method returns; ours, r4 and title_paragraphs also write Main-HTML and Markdown."
    )
    tables = [report(name, [results[sample.id] for sample in part], labels) for name, part in parts.items()]
    head = heading("methods.py", ["scrapy-dripper", "lxml", "numpy", "onnxruntime"])
    publish("\n\n".join([head, notes, *tables]), options.output)


if __name__ == "__main__":
    main()
