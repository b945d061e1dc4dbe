"""Group pages that share a pass."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.engines.qwen3.packing import pack

SIZES = st.lists(st.integers(1, 5000), max_size=40)


@given(sizes=SIZES, shared=st.integers(0, 800), full=st.integers(1, 2000), most=st.integers(1, 20_000))
def test_every_page_is_in_one_group_that_fits(sizes: list[int], shared: int, full: int, most: int) -> None:
    """No grouping is slower than one pass per page."""
    groups = pack(sizes, shared, full, most)

    assert sorted(i for group in groups for i in group) == list(range(len(sizes)))
    for group in groups:
        padded = len(group) * (shared + max(sizes[i] for i in group))
        assert len(group) == 1 or padded <= most
        if len(group) > 1:
            assert max(full, padded) <= sum(max(full, sizes[i]) for i in group)


def test_short_pages_go_together_and_long_ones_alone() -> None:
    assert pack([3000, 200, 150, 2500, 180], 0, 1000, 16_000) == [[2, 4, 1], [3], [0]]


def test_a_long_prefix_is_better_read_once() -> None:
    """Pages in the same pass each read the prefix again."""
    assert pack([600, 600], 0, 1000, 16_000) == [[0, 1]]
    assert pack([600, 600], 700, 1000, 16_000) == [[0], [1]]


def test_memory_divides_groups() -> None:
    assert [len(group) for group in pack([100] * 10, 0, 1000, 450)] == [4, 4, 2]
