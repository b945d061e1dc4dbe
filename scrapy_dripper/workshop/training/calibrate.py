"""Calibrate probabilities: 70 % of the blocks with a probability of 0.7 should be main."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


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
        line = line - step
        if np.abs(step).max() < 1e-9:
            break
    return Calibration(slope=float(line[0]), intercept=float(line[1]))
