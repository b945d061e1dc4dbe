"""Windows over the blocks of a long page."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.engines.qwen3.windows import average, even, furthest, sizes, windows

COSTS = st.lists(st.integers(1, 120), min_size=1, max_size=150)


@given(costs=COSTS, room=st.integers(20, 400), short=st.floats(0.5, 1.3))
def test_windows_cover_all_blocks_and_fit(costs: list[int], room: int, short: float) -> None:
    """This holds even if the estimate is so small that only half of it really fits."""

    def fits(start: int, end: int) -> bool:
        return sum(costs[start:end]) <= room * short

    found = windows(costs, room, fits)

    assert found[0].start == 0
    assert found[-1].stop == len(costs)
    for one, following in pairwise(found):
        assert one.start < following.start <= one.stop < following.stop
    assert all(fits(one.start, one.stop) and sum(costs[i] for i in one) <= room for one in found if len(one) > 1)


def test_windows_share_about_an_eighth() -> None:
    found = windows([10] * 100, 400, lambda *_: True)

    assert found == [range(40), range(35, 75), range(70, 100)]


def test_a_huge_block_is_alone_and_its_neighbours_are_not_read_often() -> None:
    found = windows([10] * 20 + [390] + [10] * 20, 400, lambda *_: True)

    assert found == [range(20), range(19, 21), range(21, 41)]
    assert windows([10] * 5 + [1000] + [10] * 5, 100, lambda *_: True) == [range(5), range(5, 6), range(6, 11)]


@given(costs=COSTS, budget=st.integers(20, 400))
def test_even_windows_are_as_few_and_no_longer(costs: list[int], budget: int) -> None:
    """A budget that is one smaller takes more of them, unless it is 1."""
    smaller = even(costs, budget)

    assert 1 <= smaller <= budget
    assert len(sizes(costs, smaller, 0)) <= len(sizes(costs, budget, 0))
    assert max(sizes(costs, smaller, 0)) <= max(*costs, budget)
    assert smaller == 1 or len(sizes(costs, smaller - 1, 0)) > len(sizes(costs, budget, 0))


def test_the_last_of_even_windows_is_about_as_long() -> None:
    costs = [10] * 82

    assert sizes(costs, 400, 7) == [407, 407, 127]
    assert sizes(costs, even(costs, 400), 7) == [307, 307, 287]


def test_linear_in_the_number_of_blocks() -> None:
    """Each block is in a few windows at most, however large blocks are."""
    for costs in ([1] * 20_000, [1, 1, 99] * 7_000, [60] * 20_000):
        assert sum(map(len, windows(costs, 100, lambda *_: True))) <= 3 * len(costs)


def test_furthest_takes_one_block_at_least() -> None:
    assert furthest([500, 1], 0, 100) == 1
    assert furthest([50, 50, 1], 0, 100) == 2


def test_the_mean_where_windows_overlap() -> None:
    parts = [range(3), range(2, 4)]
    p = average(parts, [np.array([0.1, 0.2, 0.9]), np.array([0.3, 0.4])], 4)

    assert p.tolist() == pytest.approx([0.1, 0.2, 0.6, 0.4])
