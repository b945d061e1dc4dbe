"""Which blocks another extractor kept, found from its text."""

from __future__ import annotations

import pytest

from scrapy_dripper.inspection.compare import kept

TEXT = """Tides

Most coasts see two high waters and two low waters in a little more than a day.
潮汐は海面の昇り降りである。"""


@pytest.mark.parametrize(
    ("block", "is_kept"),
    [
        ("Most coasts see two high waters, and two low waters in a little more than a day!", True),
        ("Most coasts see two high waters and two low waters in what people there call one round", True),
        ("Most people see no waters in a little more or less than a day of the coasts", False),
        ("TIDES", True),
        ("day", False),
        ("low waters", False),
        ("潮汐は海面の昇り降りである", True),
        ("海面", False),
    ],
)
def test_a_block_is_kept_if_most_of_it_is_there(block: str, is_kept: bool) -> None:
    """Case and punctuation do not matter. A block of few words must be there as a whole line."""
    assert kept([block], TEXT) == [is_kept]


def test_nothing_is_kept_by_an_empty_text() -> None:
    assert kept(["Tides", "Most coasts see two high waters"], "") == [False, False]
