"""Semantic outlier removal, with vectors of a few words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scrapy_dripper.workshop.evaluation.sore import FAR, Sore, SoreSettings

AXES = {"river": 0, "ferry": 0, "privacy": 1, "policy": 1, "football": 2}


def embed(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return a vector with an axis for each subject."""
    rows = np.zeros((len(texts), 3), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().split():
            if word in AXES:
                row[AXES[word]] += 1
    return rows


def test_outliers_are_removed_with_their_group() -> None:
    """What is near the title stays, a phrase of a group goes, and so does what has nothing to do with the core."""
    segments = ["the ferry over the river", "privacy policy", "football", "river", "ferry river ferry"]
    assert Sore(embed)(segments, "River ferry") == [None, "legal", FAR, None, None]


def test_the_core_stays_and_the_cutoff_can_be_off() -> None:
    """A page about football keeps football; with a cut-off over 2, nothing is too irrelevant."""
    assert Sore(embed, SoreSettings(core=0.5))(["football", "river"], "football") == [None, FAR]
    assert Sore(embed, SoreSettings(cutoff=2.1))(["river", "football"], "river") == [None, None]


def test_without_metadata_everything_stays() -> None:
    assert Sore(embed)(["privacy policy"], " ") == [None]
    assert Sore(embed)([], "river") == []
