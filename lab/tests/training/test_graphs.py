"""The quality stage as an ONNX graph. An export compares the other graphs with what they were made of."""

from __future__ import annotations

import lightgbm
import numpy as np
import onnxruntime

from scrapy_dripper_lab.training.graphs import quality_graph


def test_the_quality_is_that_of_the_booster() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((300, 4), dtype=np.float32)
    parameters = {"num_leaves": 4, "verbose": -1, "num_threads": 1, "objective": "regression"}
    quality = lightgbm.train(parameters, lightgbm.Dataset(x, x[:, 1] * x[:, 2]), 5)

    (f1,) = onnxruntime.InferenceSession(quality_graph(quality, 4)).run(["quality"], {"features": x})

    assert f1.shape == (300,)
    assert np.allclose(f1, quality.predict(x), atol=1e-5)
