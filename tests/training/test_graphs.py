"""The fitted parts of a tagger as ONNX graphs."""

from __future__ import annotations

import lightgbm
import numpy as np
import onnxruntime

from scrapy_dripper.training.calibrate import Calibration
from scrapy_dripper.training.graphs import context_graph


def test_the_second_stage_in_the_mean_with_the_first() -> None:
    """The shares are those that were asked for, the column ``p`` is found by name, and the calibration comes last."""
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
