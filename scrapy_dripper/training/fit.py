"""Examples to a booster, and a booster to a model folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from onnxmltools import convert_lightgbm
from onnxmltools.convert.common.data_types import FloatTensorType

from scrapy_dripper.engines.tagger.decode import Decoding
from scrapy_dripper.engines.tagger.features import schema_hash
from scrapy_dripper.engines.tagger.model import FORMAT, WEIGHTS, Manifest, Model
from scrapy_dripper.training.prepare import Example

ROUNDS = 200
PARAMETERS: dict[str, Any] = {
    "objective": "binary",
    "learning_rate": 0.08,
    "num_leaves": 48,
    "min_data_in_leaf": 60,
    "feature_fraction": 0.3,
    "data_sample_strategy": "goss",
    "top_rate": 0.12,
    "other_rate": 0.08,
    "lambda_l2": 5.0,
    "max_bin": 63,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}
TOLERANCE = 0.02
"""Most that the exported model may differ: a float32 threshold can send a row down another branch of a tree."""


def fit(examples: Sequence[Example], *, seed: int = 0, threads: int = 2) -> lightgbm.Booster:
    """Return gradient-boosted trees fitted on examples; the same seed and data give the same trees."""
    data = lightgbm.Dataset(
        np.concatenate([e.matrix for e in examples]),
        np.concatenate([e.main for e in examples]),
        weight=np.concatenate([e.weight for e in examples]),
        feature_name=[name.replace(":", "__") for name in examples[0].names],  # LightGBM refuses JSON's characters
    )
    return lightgbm.train({**PARAMETERS, "seed": seed, "num_threads": threads}, data, ROUNDS)


def export(
    booster: lightgbm.Booster, names: Sequence[str], folder: Path, decoding: Decoding, probe: Example, **notes: Any
) -> None:
    """Write a booster as a model folder, and check on a page that the ONNX model answers as the booster does.

    Raise RuntimeError if it does not.
    """
    graph = convert_lightgbm(
        booster,
        name="tagger",
        initial_types=[("features", FloatTensorType([None, len(names)]))],
        zipmap=False,
        target_opset=15,
    )
    weights = graph.SerializeToString()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WEIGHTS).write_bytes(weights)
    manifest = Manifest(
        format=FORMAT,
        engine="tagger",
        feature_schema=schema_hash(names),
        weights_sha256=hashlib.sha256(weights).hexdigest(),
        decoding=decoding,
    )
    manifest.write(folder, **notes)
    expected = np.asarray(booster.predict(probe.matrix))
    difference = float(np.abs(Model(folder)(probe.matrix) - expected).max())
    if difference > TOLERANCE:
        raise RuntimeError(f"the exported model differs from the trained one by {difference:.4f} on page {probe.id}")
