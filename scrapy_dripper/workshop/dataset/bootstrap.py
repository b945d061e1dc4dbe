"""Confidence intervals for means over pages: percentile bootstrap, resampling pages with replacement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_CHUNK = 4_000_000  # numbers drawn at a time


class Interval(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """True if the whole interval is on one side of zero."""
        return self.low > 0 or self.high < 0


def mean_interval(values: Sequence[float] | npt.NDArray[np.float64], n: int = 10_000, seed: int = 0) -> Interval:
    """Return the mean of one number per page and its interval from n resamples. Raise ValueError without numbers."""
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or not len(data) or n < 1:
        raise ValueError(f"expected numbers and at least one resample (got shape {data.shape} and n={n})")
    rng = np.random.default_rng(seed)
    rows = max(1, _CHUNK // len(data))
    means = np.concatenate(
        [
            data[rng.integers(len(data), size=(min(rows, n - done), len(data)))].mean(axis=1)
            for done in range(0, n, rows)
        ]
    )
    means.sort()
    low, high = means[int(np.floor(0.025 * (n - 1)))], means[int(np.ceil(0.975 * (n - 1)))]
    return Interval(float(data.mean()), float(low), float(high))


def paired_interval(deltas: Sequence[float] | npt.NDArray[np.float64], n: int = 10_000, seed: int = 0) -> Interval:
    """Return the mean difference of two systems and its interval, given the difference on each page."""
    return mean_interval(deltas, n, seed)
