"""The order in which the parts of a tagger are fitted, on all the pages and on the folds that measure the recipe."""

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
    """What one model may see, and what it is then asked about, by the ids of the pages."""

    seen: tuple[str, ...]
    """What it is fitted on."""
    held: tuple[str, ...]
    """Examples that it has not seen: the second stages of others are fitted on what it says of them."""
    measured: tuple[str, ...] = ()
    """Pages that it is measured on: those held, and those that nothing may be fitted on."""


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """The models of the folds, and the model of all the pages."""

    folds: tuple[Fitted, ...]
    whole: Fitted


def fit_stack(
    examples: Mapping[str, Example], folds: Sequence[Split], whole: Split, *, networks: int, seed: int, jobs: int
) -> Stack:
    """Return the fitted models.

    The held pages of the folds have a probability from a first stage that has not seen them. On those of all folds
    but one, the second stage of that fold is fitted, so that nothing of a fold's pages is in its model but through the
    first stages of the other folds.
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
    """Fit the first stages in processes; each part of each stage is a task of its own."""
    tasks = [(i, part) for i in range(len(splits)) for part in range(-1, networks)]
    parts: dict[tuple[int, int], Any] = {}
    with TemporaryDirectory() as folder:
        store = Path(folder) / "examples.pickle"
        with store.open("wb") as file:
            pickle.dump(examples, file, protocol=5)
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the workers: one thread a task, and the same sums each time
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
    """Return a booster as text for part -1, else the network of that number."""
    some = [_examples[name] for name in seen]
    if part < 0:
        return fit_trees(some, seed).model_to_string()
    from scrapy_dripper.training.network import fit_network

    return fit_network(some, seed=seed * max(networks, 1) + part)
