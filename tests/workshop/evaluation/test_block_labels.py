"""Scores of block labels and the calibration of their probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.workshop.evaluation.blocks import BlockResult, block_prf, pooled, reliability

probabilities = st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.integers(1, 50)), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("main", "truth", "copies", "expected"),
    [
        ("", "", "", (1, 1, 1)),
        ("00", "00", "00", (1, 1, 1)),
        ("11", "00", "00", (0, 0, 0)),
        ("00", "11", "00", (0, 0, 0)),
        ("110", "011", "000", (0.5, 0.5, 0.5)),
        ("1110", "1001", "0110", (1, 0.5, 2 / 3)),
    ],
)
def test_block_labels(main: str, truth: str, copies: str, expected: tuple[float, float, float]) -> None:
    """Main is the positive class; a copy of a main block counts neither way."""
    masks = [tuple(mark == "1" for mark in marks) for marks in (main, truth, copies)]
    assert BlockResult(*masks, words=(1,) * len(main)).prf() == pytest.approx(expected)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_block_f1_is_the_harmonic_mean(hits: int, wrong: int, missed: int) -> None:
    """F1 is the harmonic mean of precision and recall."""
    precision, recall, f1 = block_prf(hits, wrong, missed)
    assert f1 == pytest.approx(2 * precision * recall / (precision + recall) if hits else f1)
    assert (f1 == 1) == (wrong + missed == 0)


def test_reliability_by_hand() -> None:
    """Two bins: 0.2 and 0.4 are right half the time, 1.0 always; the gaps 0.2 and 0 weigh two thirds and one third."""
    found = reliability(np.array([0.2, 0.4, 1.0]), np.array([True, False, True]), bins=2)

    assert found.weight == (2, 1)
    assert found.probability == pytest.approx((0.3, 1.0))
    assert found.share == pytest.approx((0.5, 1.0))
    assert found.error == pytest.approx(0.4 / 3)


def test_words_weigh() -> None:
    """A block of nine words counts nine times as much as a block of one word."""
    found = reliability(np.array([0.5, 0.5]), np.array([True, False]), np.array([9.0, 1.0]))

    assert found.error == pytest.approx(0.4)
    assert sum(found.weight) == 10


def test_empty_bins_have_no_mean_and_do_not_count() -> None:
    """Their means are NaN, and the error ignores them."""
    found = reliability(np.array([0.95]), np.array([True]))

    assert math.isnan(found.share[0])
    assert found.error == pytest.approx(0.05)
    assert math.isnan(reliability(np.array([]), np.array([], dtype=bool)).error)


@given(probabilities)
def test_the_error_is_bounded_and_weights_are_repetitions(rows: list[tuple[float, bool, int]]) -> None:
    """The error is from 0 to 1, and a block of weight n equals n blocks."""
    p, truth, weight = (np.array(column) for column in zip(*rows, strict=True))
    weighted = reliability(p, truth, weight.astype(float))
    repeated = reliability(np.repeat(p, weight), np.repeat(truth, weight))

    assert 0 <= weighted.error <= 1
    assert weighted.error == pytest.approx(repeated.error)
    assert sum(weighted.weight) == sum(weight)


@given(st.lists(st.integers(0, 20), min_size=2, max_size=10))
def test_what_is_as_often_right_as_it_says_has_no_error(hits: list[int]) -> None:
    """20 blocks at k / 20, of which k are main, for any choice of k."""
    p = np.concatenate([np.full(20, k / 20) for k in hits])
    truth = np.concatenate([np.arange(20) < k for k in hits])

    assert reliability(p, truth).error == pytest.approx(0, abs=1e-12)


def test_only_blocks_that_count_are_pooled() -> None:
    """Copies and pages without probabilities are left out."""
    with_p = BlockResult((True, True, False), (True, False, False), (False, True, False), (3, 4, 5), (0.9, 0.8, 0.1))
    without = BlockResult((True,), (True,), (False,), (7,))

    p, truth, words = pooled([with_p, without])

    assert (p.tolist(), truth.tolist(), words.tolist()) == ([0.9, 0.1], [True, False], [3, 5])
    assert [len(column) for column in pooled([without])] == [0, 0, 0]
