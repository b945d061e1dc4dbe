"""Scores of labels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.learning.metrics import count_prf


def test_nothing_to_find_and_nothing_found() -> None:
    assert count_prf(0, 0, 0) == (1, 1, 1)
    assert count_prf(0, 2, 0) == count_prf(0, 0, 2) == (0, 0, 0)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_appendix_a_8_f1_is_the_harmonic_mean(hits: int, wrong: int, missed: int) -> None:
    """Of precision and recall."""
    precision, recall, f1 = count_prf(hits, hits + wrong, hits + missed)
    assert f1 == pytest.approx(2 * precision * recall / (precision + recall) if hits else f1)
    assert (f1 == 1) == (wrong + missed == 0)
