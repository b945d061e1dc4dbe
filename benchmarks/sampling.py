"""Measure how much `corpus sample` helps: the tagger's trees, trained on chosen pages and on as many random ones.

In each of five folds grouped by host, pages are chosen from those that may be used for training, and the trees of the
first stage are trained on them, without copies and without networks. They label the held-out pages block by block,
without rules. A page is only chosen by its HTML: its language is what py3langid says, and its format what the bundled
model says. The interval is that of the mean over the draws, over held-out pages.
"""

from __future__ import annotations

import argparse
import pickle
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ablation import DATA, Lab
from py3langid import classify
from report import heading, publish, table
from scipy.sparse import csr_matrix
from tqdm import tqdm

from scrapy_dripper import Document, Extractor
from scrapy_dripper.corpus.sampling import balanced, layout, representatives
from scrapy_dripper.dataset.bootstrap import paired_interval
from scrapy_dripper.dataset.neutral import neutral_prf
from scrapy_dripper.dataset.pages import Sample
from scrapy_dripper.dataset.sets import SetChoice, load_sets
from scrapy_dripper.engines.tagger.decision import DecisionRule, decide
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.parse import parse
from scrapy_dripper.training.fit import fit_trees
from scrapy_dripper.training.prepare import Example

RANDOM = "random"


class Known(NamedTuple):
    """The properties of a page that are known without its ground truth."""

    host: str
    format: str
    """The page type, empty without main content."""
    language: str
    layout: csr_matrix


def known(samples: Sequence[Sample], path: Path) -> dict[str, Known]:
    """Return these properties by page id. They are stored in a file."""
    if path.exists():
        found: dict[str, Known] = pickle.loads(path.read_bytes())
        return found
    found, extractor = {}, Extractor()
    for start in tqdm(range(0, len(samples), 16), desc="pages", unit="batch"):
        some = samples[start : start + 16]
        documents = [Document(sample.path.read_bytes(), sample.url) for sample in some]
        for sample, document, extraction in zip(some, documents, extractor.extract(documents), strict=True):
            text = extraction.text or ""
            tree = parse(decode_html(bytes(document.html), None))
            kind = (extraction.page_type or "") if text else ""
            found[sample.id] = Known(sample.host, kind, str(classify(text[:10_000])[0]), layout(tree))
    path.write_bytes(pickle.dumps(found))
    return found


def choices(
    pages: Mapping[str, Known], names: Sequence[str], n: int, draws: int, seeds: int
) -> dict[str, list[list[str]]]:
    """Return the pages that each way chooses, once for each draw."""
    found = {RANDOM: [random.Random(f"random {seed}").sample(names, n) for seed in range(draws)]}
    some = [pages[name] for name in names]
    chosen = [one.page for one in representatives([page.host for page in some], [page.layout for page in some])]
    layouts = [names[page] for page in chosen if some[page].format]
    languages = [pages[name].language for name in layouts]
    kinds, hosts = ([getattr(pages[name], field) for name in layouts] for field in ("format", "host"))
    as_they_are = Counter(languages)
    alike = [""] * len(layouts)
    ways = {
        "layouts": (alike, alike, None),
        "layouts, formats": (languages, kinds, as_they_are),
        "layouts, formats, languages": (languages, kinds, None),
    }
    for way, (by_language, by_format, weights) in ways.items():
        found[way] = [
            [layouts[i] for i in balanced(by_language, by_format, hosts, n, weights, seed)] for seed in range(seeds)
        ]
    return found


def scores(learnt: Sequence[Example], held: Sequence[Example], seed: int) -> list[float]:
    """Return the word F1 of each held-out page by trees trained on the learnt pages."""
    trees, rule = fit_trees(learnt, seed), DecisionRule()
    found = []
    for one in held:
        p = np.asarray(trees.predict(one.matrix, num_threads=1), dtype=np.float32)
        main = decide(p, one.features.size, 0.5, rule.min_words)
        text = "\n".join(block for block, chosen in zip(one.texts, main, strict=True) if chosen)
        found.append(neutral_prf(text, one.truth, [one.title]).f1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", type=SetChoice.parse, help="annotated sets; default: those in .cache")
    parser.add_argument(
        "--extra", type=SetChoice.parse, action="append", help="a set to choose from, never to measure on"
    )
    parser.add_argument("--pages", type=int, default=300, help="pages to train on (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=3, help="random draws (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="choices of each other way (default: %(default)s)")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--work", type=Path, default=DATA / "ablation", help="folder of the examples, as in ablation.py"
    )
    parser.add_argument("--known", type=Path, default=DATA / "sampling.pkl", help="file of what is known of the pages")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "sampling.txt")
    arguments = parser.parse_args()
    default = [SetChoice(DATA / name) for name in ("wcxb-dev", "elsewhere", "sites") if (DATA / name).is_dir()]
    data = arguments.data or default
    extra = arguments.extra or ([] if arguments.data else [SetChoice(DATA / "read-labels")])
    lab = Lab(data, extra, arguments.folds, arguments.jobs, arguments.work)
    samples = [sample for one in load_sets(data, extra) for sample in one.learnt]
    pages = known(samples, arguments.known)
    part = {sample.id: sample.part for sample in samples}
    facts = heading("sampling.py", ("scrapy-dripper", "lightgbm", "scikit-learn"))
    f1: dict[str, dict[str, list[float]]] = {}
    kinds: dict[str, Counter[str]] = {}
    counts: dict[str, Counter[str]] = {}
    for k, fold in enumerate(tqdm(lab.folds, desc="folds", unit="fold")):
        names = [name for name in fold.seen if not lab.examples[name].copy]
        held = [lab.examples[name] for name in fold.held if not lab.examples[name].copy]
        for way, draws in choices(pages, names, arguments.pages, arguments.draws, arguments.seeds).items():
            for draw in draws:
                learnt = [lab.examples[name] for name in draw]
                for one, score in zip(held, scores(learnt, held, k), strict=True):
                    f1.setdefault(way, {}).setdefault(one.id, []).append(score)
                kinds.setdefault(way, Counter()).update(pages[name].format or "nothing" for name in draw)
                counts.setdefault(way, Counter()).update(_language(pages[name].language) for name in draw)
                counts[way]["hosts"] += len({pages[name].host for name in draw})
                counts[way]["draws"] += 1
        publish(f"{facts}\n\n{k + 1} folds, {_report(f1, part, kinds, counts)}", arguments.output)


def _language(name: str) -> str:
    return name if name in ("en", "zh", "de") else "other"


def _report(
    f1: Mapping[str, Mapping[str, Sequence[float]]],
    part: Mapping[str, str],
    kinds: Mapping[str, Counter[str]],
    counts: Mapping[str, Counter[str]],
) -> str:
    ids = list(f1[RANDOM])
    parts = list(dict.fromkeys(part[name] for name in ids))
    rows = []
    for way, by_page in f1.items():
        means = [np.mean([np.mean(by_page[name]) for name in ids if part[name] == one]) for one in parts]
        draws = np.mean([by_page[name] for name in ids], axis=0)
        row = [
            way,
            *(f"{mean:.4f}" for mean in means),
            f"{draws.mean():.4f}",
            f"{draws.min():.4f} to {draws.max():.4f}",
        ]
        if way != RANDOM:
            d = paired_interval([float(np.mean(by_page[name]) - np.mean(f1[RANDOM][name])) for name in ids])
            row.append(f"{d.mean:+.4f} ({d.low:+.4f} to {d.high:+.4f})")
        rows.append([*row, ""][: len(parts) + 4])
    first = table(["trained on", *parts, "all pages", "draws", "less random, 95 %"], rows)
    formats = sorted(set().union(*kinds.values()))
    names = ["hosts", "en", "zh", "de", "other"]
    body = [
        [way, *(f"{counts[way][name] / counts[way]['draws']:.0f}" for name in names)]
        + [f"{kinds[way][name] / counts[way]['draws']:.0f}" for name in formats]
        for way in f1
    ]
    second = table(["pages of a draw", *names, *formats], body)
    return f"word F1 on {len(ids):,} held-out pages:\n\n{first}\n\n{second}"


if __name__ == "__main__":
    main()
