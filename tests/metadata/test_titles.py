"""The choice of a page's title."""

from __future__ import annotations

import pytest

from scrapy_dripper.metadata.titles import best_title


@pytest.mark.parametrize(
    ("headings", "below", "names", "site", "expected"),
    [
        (["Tides"], [], ["Tides | Sand"], "Sand", "Tides"),
        (["Sand", "Tides"], [], ["Tides | Sand"], "Sand", "Tides"),
        (["Sand"], ["Tides", "More"], ["Tides - Sand"], "Sand", "Tides"),
        (["Sand"], [], ["Tides - Sand"], "Sand", "Tides"),
        (["Sand Daily"], [], ["Tides - Sand Daily"], "", "Tides"),
        ([], [], ["Tides: a story | The Sand Daily"], "The Sand Daily", "Tides: a story"),
        ([], [], ["Sand Daily » Tides"], "sand daily", "Tides"),
        ([], [], ["Tides - and their moon"], "Sand", "Tides - and their moon"),
        (["The tide comes in twice a day"], [], ["Tide comes in twice a day"], "", "The tide comes in twice a day"),
        (["Subscribe", "Tides of the year"], [], ["Tides of the year"], "", "Tides of the year"),
        (["Subscribe", "Follow"], [], ["Tides of the year"], "", "Tides of the year"),
        (["Sea and sand"], [], ["Tides"], "", "Sea and sand"),
        (["Sand"], [], [], "Sand", "Sand"),
        (["x" * 1_000], [], ["Tides"], "", "Tides"),
        ([], [], [], "", ""),
    ],
)
def test_title(headings: list[str], below: list[str], names: list[str], site: str, expected: str) -> None:
    assert best_title(headings, below, names, site, "www.sanddaily.example") == expected
