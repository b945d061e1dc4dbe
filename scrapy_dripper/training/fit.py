"""How the parts of a tagger are fitted on examples.

The first stage is the mean of gradient-boosted trees and small networks. The second stage are trees over what the
first says of a page as a whole; they are fitted on probabilities of pages that the first stage had not seen, because
those of seen pages are too sure of themselves (stacked generalisation: Wolpert 1992). A line over the log-odds then
makes probabilities of the mean of both stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lightgbm
import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.context import context
from scrapy_dripper.training.calibrate import Calibration, calibrate
from scrapy_dripper.training.prepare import Example

if TYPE_CHECKING:
    from scrapy_dripper.training.network import Network

Floats = npt.NDArray[np.float32]

NETWORK_SHARE = 0.4
"""Weight of the networks beside the trees in the first stage."""
CONTEXT_SEEDS = 3
"""Boosters of the second stage."""
CONTEXT_SHARE = 0.5
"""Weight of the second stage beside the first in the answer: their mean is better than either."""

_COMMON: dict[str, Any] = {
    "objective": "binary",
    "feature_fraction": 0.3,
    "data_sample_strategy": "goss",
    "top_rate": 0.12,
    "other_rate": 0.08,
    "min_data_in_leaf": 60,
    "lambda_l2": 5.0,
    "max_bin": 63,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbose": -1,
}
TREES: dict[str, Any] = {**_COMMON, "learning_rate": 0.08, "num_leaves": 48, "num_iterations": 200}
CONTEXT: dict[str, Any] = {**_COMMON, "learning_rate": 0.05, "num_leaves": 24, "num_iterations": 150}


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A fitted first stage."""

    trees: lightgbm.Booster
    networks: tuple[Network, ...]

    def __call__(self, example: Example) -> Floats:
        """Return the probability of main of each block."""
        p = np.asarray(self.trees.predict(example.matrix, num_threads=1))
        if self.networks:
            q = np.mean([predict_network(network, example) for network in self.networks], axis=0)
            p = (1 - NETWORK_SHARE) * p + NETWORK_SHARE * q
        return p.astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """All the parts of a tagger."""

    stage: Stage
    context: tuple[lightgbm.Booster, ...]
    calibration: Calibration

    def __call__(self, example: Example) -> npt.NDArray[np.float64]:
        """Return the probability of main of each block, as the exported model does."""
        return self.calibration(predict(self.context, example, self.stage(example)))


def fit_trees(examples: Sequence[Example], seed: int = 0) -> lightgbm.Booster:
    """Return gradient-boosted trees fitted on examples; the same seed and data give the same trees."""
    data = lightgbm.Dataset(
        np.concatenate([e.matrix for e in examples]),
        np.concatenate([e.main for e in examples]),
        weight=np.concatenate([e.weight for e in examples]),
    )
    return lightgbm.train({**TREES, "seed": seed}, data)


def predict_network(network: Network, example: Example) -> Floats:
    """Return a network's probabilities."""
    import torch

    n = len(example.matrix)
    with torch.no_grad():
        logits = network(*network.split(example.matrix), torch.zeros(n, dtype=torch.long), torch.full((n,), n))
        result: Floats = torch.sigmoid(logits).numpy()
    return result


def fit_context(
    examples: Sequence[Example], probabilities: Mapping[str, Floats], seed: int = 0
) -> tuple[lightgbm.Booster, ...]:
    """Return the second stage; the probabilities, by the examples' ids, come from stages that had not seen them."""
    data = lightgbm.Dataset(
        np.concatenate([context(e.features, probabilities[e.id]).matrix() for e in examples]),
        np.concatenate([e.main for e in examples]),
        weight=np.concatenate([e.weight for e in examples]),
        free_raw_data=False,
        params={"max_bin": CONTEXT["max_bin"]},
    )
    seeds = range(seed * CONTEXT_SEEDS, (seed + 1) * CONTEXT_SEEDS)
    return tuple(lightgbm.train({**CONTEXT, "seed": one}, data) for one in seeds)


def predict(boosters: Sequence[lightgbm.Booster], example: Example, probabilities: Floats) -> npt.NDArray[np.float64]:
    """Return the mean of the second stage's probabilities and the first's, before calibration."""
    matrix = context(example.features, probabilities).matrix()
    second = np.mean([b.predict(matrix, num_threads=1) for b in boosters], axis=0)
    mean: npt.NDArray[np.float64] = CONTEXT_SHARE * second + (1 - CONTEXT_SHARE) * probabilities
    return mean


def fit_calibration(examples: Sequence[Example], probabilities: Mapping[str, npt.NDArray[np.float64]]) -> Calibration:
    """Return the calibration of held-out probabilities of both stages; each block counts the same."""
    p = np.concatenate([probabilities[e.id] for e in examples])
    return calibrate(p, np.concatenate([e.main for e in examples]))
