"""Calibration of probabilities, and the quality stage as an ONNX graph."""

from __future__ import annotations

import lightgbm
import numpy as np
import onnxruntime
import pytest

from scrapy_dripper_lab.training.fit import Calibration, calibrate
from scrapy_dripper_lab.training.graphs import quality_graph


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (2.0, -1.0), (0.5, 0.7)])
def test_the_line_that_made_the_labels_is_found(slope: float, intercept: float) -> None:
    """The fit recovers the line from which the labels were drawn."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 200_000)
    main = rng.random(len(p)) < Calibration(slope, intercept)(p)
    found = calibrate(p, main)

    assert found.slope == pytest.approx(slope, abs=0.05)
    assert found.intercept == pytest.approx(intercept, abs=0.05)


def test_labels_that_are_all_the_same() -> None:
    """A set without main blocks has no best line, but the returned line is finite. Any line keeps the ranking."""
    assert (np.diff(Calibration(1.7, -0.3)(np.linspace(0, 1, 101))) >= 0).all()
    found = calibrate(np.array([0.2, 0.4, 0.9]), np.zeros(3, dtype=np.bool_))

    assert np.isfinite([found.slope, found.intercept]).all()


def test_the_quality_is_that_of_the_booster() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((300, 4), dtype=np.float32)
    parameters = {"num_leaves": 4, "verbose": -1, "num_threads": 1, "objective": "regression"}
    quality = lightgbm.train(parameters, lightgbm.Dataset(x, x[:, 1] * x[:, 2]), 5)

    (f1,) = onnxruntime.InferenceSession(quality_graph(quality, 4)).run(["quality"], {"features": x})

    assert f1.shape == (300,)
    assert np.allclose(f1, quality.predict(x), atol=1e-5)
