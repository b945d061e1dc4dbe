"""Measure the value of each part of the tagger: ``make train`` with parts left out, and without each rule.

All figures are from folds grouped by host, with neutral titles. The first table decides block by block, from the
probabilities of a part of the model, without any rules. The second table uses the complete model, and leaves out one
rule in each row. Differences are relative to the row of the complete model, with intervals over pages. Slow
intermediate results (the examples and the parts of the first stage) are stored in a folder, so that a run that was
stopped can be resumed.
"""

from __future__ import annotations

import argparse
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import lightgbm
import numpy as np
import numpy.typing as npt
from common import heading, output_option, publish, table
from tqdm import tqdm

from scrapy_dripper.choose import steps
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.tagger import engine
from scrapy_dripper.engines.tagger.expected_f1 import DecisionRule, decide
from scrapy_dripper.page import PageError, read
from scrapy_dripper.workshop.dataset.metrics import mean_interval, neutral_prf
from scrapy_dripper.workshop.dataset.sets import AnnotatedPage, SetChoice, load_sets
from scrapy_dripper.workshop.training import fit
from scrapy_dripper.workshop.training.augment import make_copies
from scrapy_dripper.workshop.training.fit import calibrate
from scrapy_dripper.workshop.training.measure import splits
from scrapy_dripper.workshop.training.prepare import Example, prepare

DATA = Path(__file__).parents[1] / ".cache"
FOLDS, NETWORKS, JOBS = 5, 2, 2
RULES = {
    "holes": "holes between main blocks filled",
    "short_page": "short pages",
    "structures": "structures whole",
    "alike": "blocks alike",
    "continued": "runs of paragraphs to their end",
    "headings": "headings with their text",
    "parts": "parts of lists",
    "titles": "titles of panels",
    "footnotes": "footnotes with their marks",
    "duplicates": "duplicates dropped",
}
"""The names of the tagger's steps in :data:`scrapy_dripper.choose.steps.STEPS`, and what they are for."""
Probabilities = Mapping[str, npt.NDArray[np.float32]]
Scores = Mapping[str, float]
"""Word F1 by the page's id."""


class Lab:
    """The examples, the folds, and the parts of the model."""

    def __init__(self, choices: Sequence[SetChoice], extra: Sequence[SetChoice], kept: Path):
        self.kept = kept
        kept.mkdir(parents=True, exist_ok=True)
        sets = load_sets(choices, extra)
        samples = {sample.id: sample for one in sets for sample in one.samples}
        self.samples: dict[str, AnnotatedPage] = {name: sample for name, sample in samples.items() if sample.measure}
        learnt = [sample for one in sets for sample in one.learnt]
        self.store = kept / "examples.pkl"
        self.examples, self.folds = self._keep(self.store, partial(self._prepare, samples, learnt))

    def _keep(self, path: Path, make: Callable[[], Any]) -> Any:
        """Return the object in a file, which is made if it does not exist."""
        if not path.exists():
            made = pickle.dumps(make(), protocol=5)
            path.with_suffix(".part").write_bytes(made)
            path.with_suffix(".part").replace(path)
        return pickle.loads(path.read_bytes())

    def _prepare(self, samples: dict[str, AnnotatedPage], learnt: list[AnnotatedPage]) -> Any:
        split, _ = splits(list(samples.values()), (), FOLDS)
        with TemporaryDirectory() as folder:
            groups = [[samples[name] for name in one.measured if samples[name].learn] for one in split]
            copies = make_copies(groups, Path(folder), JOBS)
            examples = prepare([*learnt, *copies], JOBS)
        split, _ = splits([*samples.values(), *copies], examples, FOLDS)
        return examples, split

    def first(self, seed: int, parts: Sequence[int]) -> list[Probabilities]:
        """Return the probabilities of some parts of the first stage for held-out pages: trees (-1) or networks."""
        tasks = {(k, part): self.kept / f"{seed}-{k}-{part}.pkl" for part in parts for k in range(len(self.folds))}
        missing = {task: path for task, path in tasks.items() if not path.exists()}
        if missing:
            os.environ.setdefault("OMP_NUM_THREADS", "1")
            with ProcessPoolExecutor(JOBS, get_context("spawn"), _load, (self.store,)) as pool:
                running = {
                    pool.submit(fit._fit, self.folds[k].seen, None, part, seed, NETWORKS): path
                    for (k, part), path in missing.items()
                }
                for done in tqdm(as_completed(running), total=len(running), desc="fitting", unit="part"):
                    running[done].write_bytes(pickle.dumps(done.result()))
        found: list[dict[str, npt.NDArray[np.float32]]] = [{} for _ in parts]
        for (k, part), path in tqdm(tasks.items(), desc="predicting", unit="part", leave=False):
            model = pickle.loads(path.read_bytes())
            answer = partial(_by_trees, lightgbm.Booster(model_str=model)) if part < 0 else partial(_by_network, model)
            for name in self.folds[k].held:
                found[parts.index(part)][name] = answer(self.examples[name])
        return list(found)

    def others(self, k: int) -> list[Example]:
        """Return the held-out pages of all folds but one."""
        return [self.examples[name] for i, fold in enumerate(self.folds) if i != k for name in fold.held]

    def second(self, seed: int, first: Probabilities, *, typed: bool) -> tuple[Probabilities, Probabilities]:
        """Return the probabilities of the second stage alone, and those of the page types."""
        kinds = [fit.fit_types(self.others(k), first, seed) for k in range(len(self.folds))]
        types = {
            name: fit.predict_types(booster, self.examples[name], first[name])
            for fold, booster in zip(self.folds, kinds, strict=True)
            for name in fold.held
        }
        told = types if typed else {name: np.full_like(found, 1 / found.size) for name, found in types.items()}
        found = {}
        for k, fold in enumerate(tqdm(self.folds, desc="second stage", unit="fold", leave=False)):
            boosters = fit.fit_context(self.others(k), first, told, seed)
            with patch.object(fit, "CONTEXT_SHARE", 1.0):
                for name in fold.held:
                    found[name] = fit.predict(boosters, self.examples[name], first[name], told[name]).astype(np.float32)
        return found, types

    def calibrated(self, p: Probabilities) -> Probabilities:
        """Return calibrated probabilities. For speed, all folds share one calibration, which has two parameters."""
        names = list(p)
        line = calibrate(
            np.concatenate([p[name] for name in names]).astype(np.float64),
            np.concatenate([self.examples[name].main for name in names]),
        )
        return {name: line(p[name].astype(np.float64)).astype(np.float32) for name in names}

    def score(self, p: Probabilities, types: Probabilities | None) -> Scores:
        """Return word F1 by page, block by block. Without types, all pages have the weight of recall of articles."""
        rule, found = DecisionRule(), {}
        for name, own in self.calibrated(p).items():
            if name in self.samples:
                one = self.examples[name]
                weight = rule.recall_weights["article"] if types is None else rule.recall_of(types[name][0])
                main = decide(own, one.features.size, weight, rule.min_words)
                found[name] = _f1(self.samples[name], one.texts, main)
        return found

    def rules(self, p: Probabilities, types: Probabilities) -> dict[str, Scores]:
        """Return word F1 by page with all rules, and without each of them."""
        own = self.calibrated(p)
        tasks = [(sample, own[name], types[name][0]) for name, sample in self.samples.items() if name in own]
        with get_context("spawn").Pool(JOBS) as pool:
            found = list(
                tqdm(pool.imap(_without_each, tasks, chunksize=16), total=len(tasks), desc="rules", unit="page")
            )
        rows = {sample.id: row for (sample, _, _), row in zip(tasks, found, strict=True) if row}
        return {what: {name: row[what] for name, row in rows.items()} for what in ("", *RULES)}


def _by_trees(booster: lightgbm.Booster, example: Example) -> npt.NDArray[np.float32]:
    return np.asarray(booster.predict(example.matrix, num_threads=1), np.float32)


def _by_network(network: Any, example: Example) -> npt.NDArray[np.float32]:
    from scrapy_dripper.workshop.training.network import predict_network

    return predict_network(network, example)


def _load(store: Path) -> None:
    fit._examples.update(pickle.loads(store.read_bytes())[0])


def _f1(sample: AnnotatedPage, texts: Sequence[str], main: npt.NDArray[np.bool_]) -> float:
    text = "\n".join(block for block, chosen in zip(texts, main, strict=True) if chosen)
    return neutral_prf(text, sample.truth, [sample.title]).f1


def _without_each(task: tuple[AnnotatedPage, npt.NDArray[np.float32], npt.NDArray[np.float32]]) -> dict[str, float]:
    sample, p, types = task
    try:
        page = read(Document(sample.path.read_bytes(), sample.url), Config())
    except PageError:
        return {}
    size = engine.features([page]).size
    found = {}
    for what in ("", *RULES):
        with patch.object(steps, "STEPS", [step for step in steps.STEPS if step.name != what]):
            *_, last = engine.chosen(page, p, size, types, DecisionRule())
        found[what] = _f1(sample, page.blocks.text, last.main)
    return found


def rows(lab: Lab, named: Mapping[str, Scores], whole: str) -> str:
    """Return a table: the means of each set and of all sets, and the difference of the latter from a row."""
    parts = list(dict.fromkeys(sample.part for sample in lab.samples.values() if sample.id in named[whole]))
    of = {part: [name for name in named[whole] if lab.samples[name].part == part] for part in parts}
    found = []
    for what, scores in named.items():
        means = [float(np.mean([scores[name] for name in of[part]])) for part in parts]
        cells = [what, *(f"{one:.4f}" for one in means), f"{np.mean(means):.4f}"]
        # Each set has the same weight, whatever its size.
        deltas = [
            (scores[name] - named[whole][name]) * len(named[whole]) / (len(parts) * len(of[part]))
            for part in parts
            for name in of[part]
        ]
        between = mean_interval(deltas)
        found.append(
            [*cells, "" if what == whole else f"{between.mean:+.4f} ({between.low:+.4f} to {between.high:+.4f})"]
        )
    return table(["", *parts, "mean", "difference, 95 %"], found)


def run(lab: Lab, seed: int) -> str:
    """Return both tables."""
    trees, *networks = lab.first(seed, [-1, *range(NETWORKS)])
    nets = {name: np.mean([one[name] for one in networks], axis=0) for name in trees}
    share = fit.NETWORK_SHARE
    first = {name: (1 - share) * trees[name] + share * nets[name] for name in trees}
    second, types = lab.second(seed, first, typed=True)
    untyped, _ = lab.second(seed, first, typed=False)
    mixed = {name: fit.CONTEXT_SHARE * second[name] + (1 - fit.CONTEXT_SHARE) * first[name] for name in first}
    whole = "complete model"
    parts = {
        whole: lab.score(mixed, types),
        "second stage alone": lab.score(second, types),
        "second stage without page types": lab.score(untyped, types),
        "recall weighs the same on all pages": lab.score(mixed, None),
        "first stage": lab.score(first, types),
        "first stage, trees": lab.score(trees, types),
        "first stage, networks": lab.score(nets, types),
    }
    rules = lab.rules(mixed, types)
    named = {
        "all rules": rules[""],
        "no rule": parts[whole],
        **{f"without: {text}": rules[key] for key, text in RULES.items()},
    }
    common = set.intersection(*(set(one) for one in named.values()))
    named = {what: {name: one[name] for name in sorted(common)} for what, one in named.items()}
    return "\n\n".join(
        [
            f"seed {seed}, parts of the model, no rules:",
            rows(lab, parts, whole),
            "rules:",
            rows(lab, named, "all rules"),
        ]
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="What each part of the tagger is worth.")
    sets = [str(DATA / name) for name in ("wcxb-dev", "elsewhere", "sites")]
    parser.add_argument("data", nargs="*", default=sets, help="sets, as for training; default: all in .cache")
    parser.add_argument("--extra", nargs="*", default=[str(DATA / "read-labels")], help="sets to learn from only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=DATA / "ablation", help="folder for examples and parts")
    output_option(parser, "ablation")
    arguments = parser.parse_args()
    choices, extra = ([SetChoice.parse(text) for text in some] for some in (arguments.data, arguments.extra))
    lab = Lab(choices, extra, arguments.keep)
    text = run(lab, arguments.seed)
    publish("\n\n".join([heading("ablation.py", ["scrapy-dripper", "lightgbm", "torch"]), text]), arguments.output)


if __name__ == "__main__":
    main()
