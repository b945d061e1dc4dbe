"""SORE's algorithm: the four steps of the paper's section 3.1, on vectors in a plane."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
if TYPE_CHECKING:
    from benchmarks import sore as benchmark
else:
    benchmark = pytest.importorskip("sore", reason="the folder of the benchmarks is not there")

Vectors = npt.NDArray[np.float32]


def unit(*degrees: float) -> Vectors:
    """Return unit vectors in a plane."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


class Exact:
    """An index that compares with everything."""

    def __init__(self, vectors: Vectors, names: list[str]) -> None:
        self.vectors, self.names = vectors, names

    def nearest(self, vectors: Vectors) -> tuple[list[str], npt.NDArray[np.float32]]:
        distances = 1.0 - vectors @ self.vectors.T
        return [self.names[k] for k in distances.argmin(axis=1)], distances.min(axis=1)


def removed(segments: Vectors, *values: float) -> list[str | None]:
    """Remove outliers of a page about 0 degrees, with ads at 80 and disclaimers at 200 degrees."""
    setting = benchmark.Setting(*values, 2.0)
    reasons: list[str | None] = benchmark.sore(segments, unit(0)[0], Exact(unit(80, 200), ["ads", "legal"]), setting)
    return reasons


def test_the_four_steps_of_figure_1() -> None:
    """Of six segments, the two nearest to the metadata are the core. One of the others is like an advertisement, one
    is too far from the core, and two stay."""
    segments = unit(2, 20, -5, 35, 75, 120)
    assert removed(segments, 1 / 3, 0.5, 0.1) == [None, None, None, None, "ads", benchmark.FAR]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1 / 3, 2.0, -1.0), [None] * 6),
        ((1 / 3, 0.1, -1.0), [None, None, None, benchmark.FAR, benchmark.FAR, benchmark.FAR]),
        ((1 / 3, 2.0, 0.3), [None, None, None, None, "ads", "ads"]),
        ((1.0, 0.0, 2.0), [None] * 6),
    ],
)
def test_parameters(values: tuple[float, ...], expected: list[str | None]) -> None:
    """A segment near an outlier stays if the core is nearer; the core always stays."""
    assert removed(unit(2, 20, -5, 35, 75, 120), *values) == expected


@given(st.lists(st.floats(0, 360), max_size=12), st.floats(0.01, 1), st.floats(0, 2), st.floats(-1, 2))
def test_the_core_stays(degrees: list[float], core: float, cutoff: float, outlier: float) -> None:
    """At least the segment that is most similar to the metadata stays, and each removal has a reason."""
    reasons = removed(unit(*degrees), core, cutoff, outlier) if degrees else removed(np.empty((0, 2)), 1, 1, 1)
    assert len(reasons) == len(degrees)
    assert set(reasons) <= {None, "ads", "legal", benchmark.FAR}
    if degrees:
        assert reasons[int(np.argmax(unit(*degrees) @ unit(0)[0]))] is None


def test_the_graph_is_the_mean_of_vectors() -> None:
    """A text with any number of tokens, even none, becomes the unit vector of their mean."""
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    weights = np.array([[3, 0], [0, 4], [1, 1]], dtype=np.float32)
    session: Any = runtime.InferenceSession(benchmark.static_graph(weights), providers=["CPUExecutionProvider"])
    tokens, texts = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 3])
    (found,) = session.run(None, {"tokens": tokens, "texts": texts, "count": np.array([4])})
    assert found == pytest.approx(np.array([[1, 0], [0.6, 0.8], [0, 0], [0.5**0.5, 0.5**0.5]]))


def test_the_groups_are_those_of_the_paper() -> None:
    """13 groups (A.2); a phrase may be in several."""
    assert len(benchmark.GROUPS) == 13
    assert {"21.02.2023", "Home > About", "3425 views", "Affiliate Disclosure", "Thank you for reading"} <= {
        phrase for group in benchmark.GROUPS.values() for phrase in group
    }
