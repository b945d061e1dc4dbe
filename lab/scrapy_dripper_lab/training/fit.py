"""Fit the parts of a tagger in order, on all pages and on the folds that measure the recipe.

The first stage is the mean of gradient-boosted trees and a small network. The second stage consists of trees over the
first stage's probabilities on the whole page. It is fitted on pages that the first stage has not seen, because
probabilities on seen pages are overconfident (stacked generalisation: Wolpert 1992). Between the two stages, other
trees predict the page type. The mean of both stages is calibrated by a linear function of the log-odds. From the
result, further trees predict the expected word F1 of a page.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import lightgbm
import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from scrapy_dripper.choose.decision import DecisionRule, decide
from scrapy_dripper.engines.tagger.later_stages import PAGE_TYPES, context, page_features, quality_features
from scrapy_dripper.learning.metrics import neutral_prf
from scrapy_dripper.workers import spawned
from scrapy_dripper_lab.training.prepare import Example, completed, estimated_f1, without_declarations

if TYPE_CHECKING:
    from scrapy_dripper_lab.training.network import Network


Floats = npt.NDArray[np.float32]

NETWORK_SHARE = 0.5
"""Weight of the network in the first stage. The rest is that of the trees."""
OTHER_CUTS, OTHER_WEIGHT = (0.25, 0.7), 0.25
"""Cuts of the probabilities for further answers from which the quality stage learns, and the weight of each of them."""
CONTEXT_SHARE = 0.85
"""Weight of the second stage in the answer. The mean of both stages is better than either."""

_COMMON: dict[str, Any] = {
    "lambda_l2": 5.0,
    "max_bin": 63,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbose": -1,
}
_BLOCKS: dict[str, Any] = {
    **_COMMON,
    "objective": "binary",
    "feature_fraction": 0.3,
    "data_sample_strategy": "goss",
    "top_rate": 0.12,
    "other_rate": 0.08,
    "min_data_in_leaf": 60,
}
TREES: dict[str, Any] = {**_BLOCKS, "learning_rate": 0.105, "num_leaves": 48, "num_iterations": 150}
TEACHER: dict[str, Any] = {**TREES, "learning_rate": 0.1, "num_iterations": 100}
CONTEXT: dict[str, Any] = {**_BLOCKS, "learning_rate": 0.05, "num_leaves": 24, "num_iterations": 150}
TYPES: dict[str, Any] = {
    **_COMMON,
    "objective": "multiclass",
    "num_class": len(PAGE_TYPES),
    "feature_fraction": 0.2,
    "min_data_in_leaf": 10,
    "learning_rate": 0.08,
    "num_leaves": 8,
    "num_iterations": 60,
}
QUALITY: dict[str, Any] = {
    **_COMMON,
    "objective": "regression",
    "feature_fraction": 0.4,
    "min_data_in_leaf": 10,
    "learning_rate": 0.05,
    "num_leaves": 8,
    "num_iterations": 120,
}


@dataclass(frozen=True, slots=True)
class Calibration:
    """Platt scaling (Platt 1999): a linear function of the log-odds. It keeps the ranking of the blocks."""

    slope: float = 1.0
    intercept: float = 0.0
    edge: float = 1e-4
    """Probabilities are first clipped to this distance from 0 and 1."""

    def __call__(self, probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the calibrated probabilities."""
        scaled: npt.NDArray[np.float64] = 1 / (1 + np.exp(-(self.slope * self._odds(probabilities) + self.intercept)))
        return scaled

    def _odds(self, probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        p = np.clip(probabilities, self.edge, 1 - self.edge)
        odds: npt.NDArray[np.float64] = np.log(p / (1 - p))
        return odds


def calibrate(probabilities: npt.NDArray[np.float64], main: npt.NDArray[np.bool_]) -> Calibration:
    """Fit the scaling to held-out labels by maximum likelihood, with Newton's method. All arrays have shape (n,)."""
    odds = Calibration()._odds(probabilities)
    x = np.stack([odds, np.ones_like(odds)], axis=1)
    line = np.array([1.0, 0.0])
    for _ in range(50):
        p = 1 / (1 + np.exp(-(x @ line)))
        gradient = x.T @ (p - main) + 1e-6 * line
        hessian = (x * (p * (1 - p) + 1e-12)[:, None]).T @ x + 1e-6 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        largest = np.abs(step).max()
        line = line - step / max(1, largest)  # where nearly all odds are extreme, a whole step leads too far
        if largest < 1e-9:
            break
    return Calibration(slope=float(line[0]), intercept=float(line[1]))


@dataclass(frozen=True, slots=True, eq=False)
class FirstStage:
    """A fitted first stage."""

    trees: lightgbm.Booster
    network: Network | None

    def __call__(self, example: Example) -> Floats:
        """Return the probability of each block to be main."""
        p = np.asarray(self.trees.predict(example.matrix, num_threads=1))
        if self.network is not None:
            from scrapy_dripper_lab.training.network import predict_network

            p = (1 - NETWORK_SHARE) * p + NETWORK_SHARE * predict_network(self.network, example)
        return p.astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """All the parts of a tagger."""

    stage: FirstStage
    types: lightgbm.Booster
    context: lightgbm.Booster
    calibration: Calibration
    quality: lightgbm.Booster

    def __call__(self, example: Example) -> npt.NDArray[np.float64]:
        """Return the probability of each block to be main, as the exported model does."""
        first = self.stage(example)
        return self.calibration(predict(self.context, example, first, predict_types(self.types, example, first)))


def fit_trees(examples: Sequence[Example], seed: int = 0, parameters: Mapping[str, Any] = TREES) -> lightgbm.Booster:
    """Fit gradient-boosted trees on examples. The same seed and data give the same trees."""
    data = lightgbm.Dataset(
        [e.matrix for e in examples],  # one matrix of all would take gigabytes
        np.concatenate([e.main for e in examples]),
        weight=np.concatenate([e.weight for e in examples]),
    )
    return lightgbm.train({**parameters, "seed": seed}, data)


def fit_types(examples: Sequence[Example], probabilities: Mapping[str, Floats], seed: int = 0) -> lightgbm.Booster:
    """Fit the page stage. The probabilities are those of first stages that have not seen the examples.

    Pages of unknown types are left out.
    """
    known = [e for e in examples if e.page_type in PAGE_TYPES]
    data = lightgbm.Dataset(
        np.concatenate([page_features(e.features, probabilities[e.id]).matrix() for e in known]),
        np.array([PAGE_TYPES.index(e.page_type) for e in known]),
        weight=np.array([e.share for e in known]),
    )
    return lightgbm.train({**TYPES, "seed": seed}, data)


def predict_types(booster: lightgbm.Booster, example: Example, probabilities: Floats) -> Floats:
    """Return the probability of each page type, of shape (1, types)."""
    found = booster.predict(page_features(example.features, probabilities).matrix(), num_threads=1)
    return np.asarray(found, dtype=np.float32)


def fit_quality(
    examples: Sequence[Example],
    probabilities: Mapping[str, npt.NDArray[np.float64]],
    types: Mapping[str, Floats],
    seed: int = 0,
) -> lightgbm.Booster:
    """Fit the quality stage on the word F1 of held-out pages. That of pages with a partial truth is estimated.

    Each page has several answers, so that the stage also knows bad ones: in addition to the model's, those of other
    cuts and what a reader view would take. The probabilities are calibrated. Copies are left out, because they are
    not real pages.
    """
    rule, rows, f1, weights = DecisionRule(), [], [], []
    for e in examples:
        if e.copy:
            continue
        p = probabilities[e.id].astype(np.float32)
        chances = dict(zip(PAGE_TYPES, types[e.id][0].tolist(), strict=True))
        answer = decide(e.features.table, p, e.features.size, rule, chances)
        others = [p > cut for cut in OTHER_CUTS] + [e.features.columns("root_prose")[:, 0] > 0]
        for main in (answer, *others):
            if main is not answer and (main == answer).all():
                continue
            rows.append(quality_features(e.features, p, types[e.id], main).matrix())
            f1.append(_f1(e, main))
            weights.append(1.0 if main is answer else OTHER_WEIGHT)
    return lightgbm.train(
        {**QUALITY, "seed": seed}, lightgbm.Dataset(np.concatenate(rows), np.array(f1), weight=weights)
    )


def _f1(e: Example, main: npt.NDArray[np.bool_]) -> float:
    """Return the word F1 of an answer."""
    if e.partial:
        return estimated_f1(e, main)
    text = "\n".join(block for block, chosen in zip(e.texts, main, strict=True) if chosen)
    return neutral_prf(text, e.truth, [e.title]).f1


def fit_context(
    examples: Sequence[Example], probabilities: Mapping[str, Floats], types: Mapping[str, Floats], seed: int = 0
) -> lightgbm.Booster:
    """Fit the second stage. Probabilities and types, by example id, are those of stages that have not seen the
    example."""
    data = lightgbm.Dataset(
        np.concatenate([context(e.features, probabilities[e.id], types[e.id]).matrix() for e in examples]),
        np.concatenate([e.main for e in examples]),
        weight=np.concatenate([e.weight for e in examples]),
    )
    return lightgbm.train({**CONTEXT, "seed": seed}, data)


def predict(
    booster: lightgbm.Booster, example: Example, probabilities: Floats, types: Floats
) -> npt.NDArray[np.float64]:
    """Return the mean of the probabilities of both stages, before calibration."""
    matrix = context(example.features, probabilities, types).matrix()
    second = np.asarray(booster.predict(matrix, num_threads=1))
    mean: npt.NDArray[np.float64] = CONTEXT_SHARE * second + (1 - CONTEXT_SHARE) * probabilities
    return mean


def fit_calibration(examples: Sequence[Example], probabilities: Mapping[str, npt.NDArray[np.float64]]) -> Calibration:
    """Fit the calibration on held-out probabilities of both stages, on pages with a complete truth.

    All blocks have the same weight.
    """
    whole = [e for e in examples if not e.partial]
    p = np.concatenate([probabilities[e.id] for e in whole])
    return calibrate(p, np.concatenate([e.main for e in whole]))


@dataclass(frozen=True, slots=True)
class Split:
    """The ids of the pages for training and testing a model."""

    seen: tuple[str, ...]
    """Pages to train on."""
    held: tuple[str, ...]
    """Held-out pages. The second stages of other folds are fitted on this model's probabilities for them."""
    measured: tuple[str, ...] = ()
    """Pages to measure on: the held-out pages, and those that are never used for training."""


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """The models of the folds, and the model trained on all pages."""

    folds: tuple[Fitted, ...]
    whole: Fitted


def fit_stack(
    examples: Mapping[str, Example],
    folds: Sequence[Split],
    whole: Split,
    *,
    seed: int,
    jobs: int,
    network: bool = True,
) -> Stack:
    """Fit and return the models, with or without a network.

    Each held-out page has probabilities from a first stage that has not seen it. The second stage of a fold is fitted
    on the held-out pages of all other folds. So a fold's pages can only influence its model through the first stages of
    the other folds. The labels of pages with a partial truth are completed by trees that have not seen the page's fold.
    """
    teachers, stages = _first_stages(examples, [*folds, whole], seed, jobs, network=network)
    examples = {
        name: taught(examples[name], teacher)
        for split, teacher in zip(folds, teachers, strict=False)
        for name in split.held
    }
    first: dict[str, Floats] = {
        name: stage(examples[name]) for split, stage in zip(folds, stages, strict=False) for name in split.held
    }

    # For each model, the held-out pages of the other folds. The last model is that of all pages.
    others = [
        [examples[name] for i, split in enumerate(folds) if i != k for name in split.held]
        for k in range(len(folds) + 1)
    ]
    kinds = [fit_types(some, first, seed) for some in others]
    types: dict[str, Floats] = {
        name: predict_types(booster, examples[name], first[name])
        for split, booster in zip(folds, kinds, strict=False)
        for name in split.held
    }
    contexts = [fit_context(some, first, types, seed) for some in others]
    second: dict[str, npt.NDArray[np.float64]] = {
        name: predict(booster, examples[name], first[name], types[name])
        for split, booster in zip(folds, contexts, strict=False)
        for name in split.held
    }
    lines = [fit_calibration(some, second) for some in others]
    held = {name: line(second[name]) for split, line in zip(folds, lines, strict=False) for name in split.held}
    qualities = [fit_quality(some, held, types, seed) for some in others]
    *fitted, whole_fitted = map(Fitted, stages, kinds, contexts, lines, qualities)
    return Stack(tuple(fitted), whole_fitted)


def taught(example: Example, teacher: lightgbm.Booster | None) -> Example:
    """Return an example with labels for all of its blocks."""
    if teacher is None or not example.partial:
        return example
    return completed(example, np.asarray(teacher.predict(without_declarations(example.features).matrix, num_threads=1)))


def _first_stages(
    examples: Mapping[str, Example], splits: Sequence[Split], seed: int, jobs: int, *, network: bool
) -> tuple[list[lightgbm.Booster | None], list[FirstStage]]:
    """Fit the teachers and then the first stages in several processes. Each part of each stage is a separate task.

    Without pages with a partial truth, there are no teachers.
    """
    teachers: list[str | None] = [None] * len(splits)
    with TemporaryDirectory() as folder:
        store = Path(folder) / "examples"
        _save(examples, store)
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the workers: one thread per task, for reproducible sums
        with spawned(jobs, _load, store) as pool:
            if any(e.partial for e in examples.values()):
                found = pool.map(partial(_fit_teacher, seed=seed), [split.seen for split in splits])
                teachers = list(tqdm(found, total=len(splits), desc="teachers", unit="part"))
            known = [(split.seen, teacher, seed) for split, teacher in zip(splits, teachers, strict=True)]
            trees = [pool.submit(_fit_trees, *one) for one in known]
            networks = [pool.submit(_fit_network, *one) for one in known] if network else []
            running: list[Future[Any]] = [*trees, *networks]
            for task in tqdm(running, desc="fitting", unit="part"):
                task.result()
    fitted = [task.result() for task in networks] if networks else [None] * len(splits)
    return [lightgbm.Booster(model_str=text) if text else None for text in teachers], [
        FirstStage(lightgbm.Booster(model_str=text.result()), one) for text, one in zip(trees, fitted, strict=True)
    ]


_examples: dict[str, Example] = {}


def _save(examples: Mapping[str, Example], store: Path) -> None:
    """Write examples for :func:`_load`, with their arrays one after the other."""
    arrays: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(examples, protocol=5, buffer_callback=arrays.append)
    places = []
    with store.open("wb") as file:
        for array in arrays:
            start = file.tell()
            file.write(array.raw())
            places.append((start, file.tell()))
            file.write(bytes(-file.tell() % 64))  # aligned
    store.with_suffix(".pickle").write_bytes(pickle.dumps((places, rest)))


def _load(store: Path) -> None:
    """Read the examples of a worker. All workers share the memory of the arrays."""
    places, rest = pickle.loads(store.with_suffix(".pickle").read_bytes())
    arrays = np.memmap(store, dtype=np.uint8, mode="c")
    _examples.update(pickle.loads(rest, buffers=[arrays[start:end] for start, end in places]))


def _fit_teacher(seen: Sequence[str], seed: int) -> str:
    """Fit a few trees on the pages with a complete truth, to label the rest of the other pages.

    They do not see declarations, because on most pages that declare facts all of the main content is one.
    """
    some = [_examples[name] for name in seen]
    whole = [replace(e, features=without_declarations(e.features)) for e in some if not e.partial]
    text: str = fit_trees(whole, seed, TEACHER).model_to_string()
    return text


def _fit_trees(seen: Sequence[str], teacher: str | None, seed: int) -> str:
    """Fit the trees of a first stage. Return them as text."""
    text: str = fit_trees(_taught(seen, teacher), seed).model_to_string()
    return text


def _fit_network(seen: Sequence[str], teacher: str | None, seed: int) -> Network:
    from scrapy_dripper_lab.training.network import fit_network

    return fit_network(_taught(seen, teacher), seed=seed)


def _taught(seen: Sequence[str], teacher: str | None) -> list[Example]:
    booster = lightgbm.Booster(model_str=teacher) if teacher else None
    return [taught(_examples[name], booster) for name in seen]
