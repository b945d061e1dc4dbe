"""Fit the parts of a tagger in order, on all pages and on the folds that measure the recipe."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from scrapy_dripper.training.fit import (
    Fitted,
    Floats,
    Stage,
    fit_calibration,
    fit_context,
    fit_quality,
    fit_trees,
    fit_types,
    predict,
    predict_types,
)
from scrapy_dripper.training.prepare import Example


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
    examples: Mapping[str, Example], folds: Sequence[Split], whole: Split, *, networks: int, seed: int, jobs: int
) -> Stack:
    """Fit and return the models.

    Each held-out page has probabilities from a first stage that has not seen it. The second stage of a fold is fitted
    on the held-out pages of all other folds. So a fold's pages can only influence its model through the first stages of
    the other folds.
    """
    stages = _first_stages(examples, [*folds, whole], networks, seed, jobs)
    first: dict[str, Floats] = {
        name: stage(examples[name]) for split, stage in zip(folds, stages, strict=False) for name in split.held
    }

    def others(k: int) -> list[Example]:
        return [examples[name] for i, split in enumerate(folds) if i != k for name in split.held]

    kinds = [fit_types(others(k), first, seed) for k in range(len(folds))]
    types: dict[str, Floats] = {
        name: predict_types(booster, examples[name], first[name])
        for split, booster in zip(folds, kinds, strict=True)
        for name in split.held
    }
    contexts = [fit_context(others(k), first, types, seed) for k in range(len(folds))]
    second: dict[str, npt.NDArray[np.float64]] = {
        name: predict(boosters, examples[name], first[name], types[name])
        for split, boosters in zip(folds, contexts, strict=True)
        for name in split.held
    }
    lines = [fit_calibration(others(k), second) for k in range(len(folds))]
    held = {name: line(second[name]) for split, line in zip(folds, lines, strict=True) for name in split.held}
    fitted = tuple(
        Fitted(stages[k], kinds[k], contexts[k], lines[k], fit_quality(others(k), held, types, seed))
        for k in range(len(folds))
    )
    every = others(-1)
    final = Fitted(
        stages[-1],
        fit_types(every, first, seed),
        fit_context(every, first, types, seed),
        fit_calibration(every, second),
        fit_quality(every, held, types, seed),
    )
    return Stack(folds=fitted, whole=final)


def _first_stages(
    examples: Mapping[str, Example], splits: Sequence[Split], networks: int, seed: int, jobs: int
) -> list[Stage]:
    """Fit the first stages in several processes. Each part of each stage is a separate task."""
    tasks = [(i, part) for i in range(len(splits)) for part in range(-1, networks)]
    parts: dict[tuple[int, int], Any] = {}
    with TemporaryDirectory() as folder:
        store = Path(folder) / "examples.pickle"
        with store.open("wb") as file:
            pickle.dump(examples, file, protocol=5)
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the workers: one thread per task, for reproducible sums
        with ProcessPoolExecutor(jobs, get_context("spawn"), _load, (store,)) as pool:
            running = {pool.submit(_fit, splits[i].seen, part, seed, networks): (i, part) for i, part in tasks}
            for done in tqdm(as_completed(running), total=len(tasks), desc="fitting", unit="part"):
                parts[running[done]] = done.result()
    return [
        Stage(lightgbm.Booster(model_str=parts[i, -1]), tuple(parts[i, j] for j in range(networks)))
        for i in range(len(splits))
    ]


_examples: dict[str, Example] = {}


def _load(store: Path) -> None:
    _examples.update(pickle.loads(store.read_bytes()))


def _fit(seen: Sequence[str], part: int, seed: int, networks: int) -> Any:
    """Fit a part: for -1, return a booster as text; otherwise, return the network with that number."""
    some = [_examples[name] for name in seen]
    if part < 0:
        return fit_trees(some, seed).model_to_string()
    from scrapy_dripper.training.network import fit_network

    return fit_network(some, seed=seed * max(networks, 1) + part)
