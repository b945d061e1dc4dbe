"""The fitted parts of a tagger as ONNX graphs."""

from __future__ import annotations

import lightgbm
import numpy as np
import onnxruntime

from scrapy_dripper.workshop.training.fit import Calibration
from scrapy_dripper.workshop.training.graphs import context_graph, pages_graph, quality_graph


def test_the_second_stage_in_the_mean_with_the_first() -> None:
    """The stages have the given shares, the column ``p`` is found by its name, and calibration comes last."""
    rng = np.random.default_rng(0)
    x = rng.random((500, 3), dtype=np.float32)
    y = (x[:, 0] + rng.random(500) > 1).astype(int)
    parameters = {"objective": "binary", "num_leaves": 4, "verbose": -1, "num_threads": 1}
    trees = [lightgbm.train({**parameters, "seed": seed}, lightgbm.Dataset(x, y), 5) for seed in (0, 1)]
    calibration = Calibration(slope=1.5, intercept=-0.2)

    session = onnxruntime.InferenceSession(context_graph(trees, 0.25, calibration, ["a", "b", "p"]))
    (found,) = session.run(None, {"features": x})

    mean = 0.25 * np.mean([booster.predict(x) for booster in trees], axis=0) + 0.75 * x[:, 2]
    assert np.allclose(found, calibration(mean), atol=1e-5)


def test_the_page_stage_and_the_quality() -> None:
    """They give a probability per type and a number per page, equal to those of the boosters."""
    rng = np.random.default_rng(0)
    x = rng.random((300, 4), dtype=np.float32)
    common = {"num_leaves": 4, "verbose": -1, "num_threads": 1}
    kinds = lightgbm.train(
        {**common, "objective": "multiclass", "num_class": 3}, lightgbm.Dataset(x, (x[:, 0] * 3).astype(int)), 5
    )
    quality = lightgbm.train({**common, "objective": "regression"}, lightgbm.Dataset(x, x[:, 1] * x[:, 2]), 5)

    (types,) = onnxruntime.InferenceSession(pages_graph(kinds, 4)).run(["probabilities"], {"features": x})
    (f1,) = onnxruntime.InferenceSession(quality_graph(quality, 4)).run(["quality"], {"features": x})

    assert types.shape == (300, 3)
    assert np.allclose(types, kinds.predict(x), atol=1e-5)
    assert f1.shape == (300,)
    assert np.allclose(f1, quality.predict(x), atol=1e-5)
