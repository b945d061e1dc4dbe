"""Names of authors in meta elements and bylines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.declared.authors import authors, byline


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Ann Bell", ("Ann Bell",)),
        ("By Ann Bell", ("Ann Bell",)),
        ("Written by: Ann Bell", ("Ann Bell",)),
        ("Von Ada Marsh und Bo Chan", ("Ada Marsh", "Bo Chan")),
        ("Ann Bell, Bo Chan and Cy Dee", ("Ann Bell", "Bo Chan", "Cy Dee")),
        ("Ann Bell, Bo Chan, and Cy Dee", ("Ann Bell", "Bo Chan", "Cy Dee")),
        ("Ann Bell; Bo Chan | Cy Dee", ("Ann Bell", "Bo Chan", "Cy Dee")),
        ("Dylan Bailey, MS, RD, FAND", ("Dylan Bailey, MS, RD, FAND",)),
        ("Center for Drug Evaluation and Research", ("Center for Drug Evaluation and Research",)),
        ("Maria & Katerina", ("Maria & Katerina",)),
        ("山田太郎", ("山田太郎",)),
        ("李明", ("李明",)),
        ("A", ()),
        ("admin", ()),
        ("https://e.org/ann", ()),
        ("ann@e.org", ()),
        ("2024", ()),
        ("", ()),
        ("x" * 500, ()),
    ],
)
def test_authors(written: str, expected: tuple[str, ...]) -> None:
    assert authors([written]) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("By Ann Bell | May 6, 2024", "Ann Bell"),
        ("by Ann Bell on May 6, 2024", "Ann Bell"),
        ("by Ann Bell on Friday May 6", "Ann Bell"),
        ("Ann Bell Published May 6", "Ann Bell"),
        ("Author: Ann Bell 18th Dec", "Ann Bell"),
        ("May 6, 2024", ""),
        ("Byron Marsh", "Byron Marsh"),
        ("Posted on October 3, 2025 by Ann Bell", "Ann Bell"),
        ("Story by Ann Bell Wednesday", "Ann Bell"),
        ("View all posts by Ann Bell →", "Ann Bell"),
        ("Text: Ann Bell Photos: Bo Chan", "Ann Bell"),
        ("بقلم سمير حداد، 4 مارس 2025", "سمير حداد"),
        ("作者：李明 发布时间：2025年3月4日", "李明"),
        ("reed7 Posts: 120 Joined", "reed7"),
        ("reed7 Joined Mar 2010", "reed7"),
        ("reed7 120 posts", "reed7"),
        ("Ann Likes Tides", "Ann Likes Tides"),
    ],
)
def test_bylines(line: str, expected: str) -> None:
    assert byline(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "By Ann Bell, Staff Writer",
        "Veröffentlicht am 3. März 2026 von Ann Bell, Redakteurin",
        "Publié le 3 mars 2026 par Ann Bell, correspondante à Berlin",
        "Escrito por Ann Bell el 3 de marzo de 2026",
        "Publicado por Ann Bell | 3 de março de 2026",
        "Scritto da tempo di Ann Bell, inviata",
        "Geplaatst op 3 maart 2026 door Ann Bell, verslaggeefster",
        "Skrevet av Ann Bell, 3. mars 2026",
        "Af Ann Bell, journalist",
        "Napisane przez Ann Bell, 3 marca 2026",
        "Автор: Ann Bell, корреспондент",
    ],
)
def test_bylines_in_other_languages(line: str) -> None:
    assert authors([byline(line)]) == ("Ann Bell",)


def test_each_name_once() -> None:
    assert authors(["Ann Bell", "ANN BELL", "Bo Chan and Ann Bell"]) == ("Ann Bell", "Bo Chan")


@given(st.lists(st.text(max_size=80), max_size=5))
def test_names_are_clean(written: list[str]) -> None:
    """For any text, no name is empty, repeated or surrounded by white space."""
    found = authors(written)
    assert all(name and name == name.strip() for name in found)
    assert len({name.casefold() for name in found}) == len(found)
