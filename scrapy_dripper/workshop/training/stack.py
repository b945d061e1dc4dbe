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

from scrapy_dripper.workshop.training.fit import (
    Fitted,
    Floats,
    Stage,
    fit_calibration,
    fit_context,
    fit_quality,
    fit_teacher,
    fit_trees,
    fit_types,
    predict,
    predict_types,
)
from scrapy_dripper.workshop.training.prepare import Example, completed, without_declarations


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
    the other folds. The labels of pages with a partial truth are completed by trees that have not seen the page's fold.
    """
    teachers, stages = _first_stages(examples, [*folds, whole], networks, seed, jobs)
    examples = {
        name: taught(examples[name], teacher)
        for split, teacher in zip(folds, teachers, strict=False)
        for name in split.held
    }
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


def taught(example: Example, teacher: lightgbm.Booster | None) -> Example:
    """Return an example with labels for all of its blocks."""
    if teacher is None or not example.partial:
        return example
    return completed(example, np.asarray(teacher.predict(without_declarations(example.features).matrix, num_threads=1)))


def _first_stages(
    examples: Mapping[str, Example], splits: Sequence[Split], networks: int, seed: int, jobs: int
) -> tuple[list[lightgbm.Booster | None], list[Stage]]:
    """Fit the teachers and then the first stages in several processes. Each part of each stage is a separate task.

    Without pages with a partial truth, there are no teachers.
    """
    parts: dict[tuple[int, int], Any] = {}
    teachers: dict[int, str] = {}
    partial = any(e.partial for e in examples.values())
    with TemporaryDirectory() as folder:
        store = Path(folder) / "examples.pickle"
        with store.open("wb") as file:
            pickle.dump(examples, file, protocol=5)
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the workers: one thread per task, for reproducible sums
        with ProcessPoolExecutor(jobs, get_context("spawn"), _load, (store,)) as pool:
            if partial:
                of_teachers = {pool.submit(_fit_teacher, split.seen, seed): i for i, split in enumerate(splits)}
                for done in tqdm(as_completed(of_teachers), total=len(splits), desc="teachers", unit="part"):
                    teachers[of_teachers[done]] = done.result()
            running = {
                pool.submit(_fit, splits[i].seen, teachers.get(i), part, seed, networks): (i, part)
                for i in range(len(splits))
                for part in range(-1, networks)
            }
            for done in tqdm(as_completed(running), total=len(running), desc="fitting", unit="part"):
                parts[running[done]] = done.result()
    return [lightgbm.Booster(model_str=teachers[i]) if partial else None for i in range(len(splits))], [
        Stage(lightgbm.Booster(model_str=parts[i, -1]), tuple(parts[i, j] for j in range(networks)))
        for i in range(len(splits))
    ]


_examples: dict[str, Example] = {}


def _load(store: Path) -> None:
    _examples.update(pickle.loads(store.read_bytes()))


def _fit_teacher(seen: Sequence[str], seed: int) -> str:
    text: str = fit_teacher([_examples[name] for name in seen], seed).model_to_string()
    return text


def _fit(seen: Sequence[str], teacher: str | None, part: int, seed: int, networks: int) -> Any:
    """Fit a part: for -1, return a booster as text; otherwise, return the network with that number."""
    booster = lightgbm.Booster(model_str=teacher) if teacher else None
    some = [taught(_examples[name], booster) for name in seen]
    if part < 0:
        return fit_trees(some, seed).model_to_string()
    from scrapy_dripper.workshop.training.network import fit_network

    return fit_network(some, seed=seed * max(networks, 1) + part)
