"""Compare extracted text with the ground truth, and give means over pages their confidence intervals.

There are two measures. The *word F1* is for sets with different conventions and languages: some ground truths begin
with the headline and some leave it out, so a headline is neutral, and each Han character or kana is a word. The other
is that of WCXB's own evaluation, where words are ``\\w+`` and titles count as the ground truth has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_dripper.characters import on_one_line, words_of

TITLE_LINES = 3
"""Number of lines at the beginning of a text in which to search for the title."""
TITLE_SHARE = 0.6
"""A line with at least this share of the title's words, and no others, is the title. Sites add their name to titles."""

T = TypeVar("T")


class PRF(NamedTuple):
    """Precision, recall and their harmonic mean, each 0 to 1."""

    precision: float
    recall: float
    f1: float


def count_prf(hits: int, predicted: int, wanted: int) -> PRF:
    """Return precision, recall and F1 from counts. All are 1 if there is nothing to find and nothing was found, and 0
    if only one of these is true.
    """
    if not predicted or not wanted:
        same = float(not predicted and not wanted)
        return PRF(same, same, same)
    precision, recall = hits / predicted, hits / wanted
    return PRF(precision, recall, 2 * precision * recall / (precision + recall) if hits else 0.0)


def bag_prf(predicted: Counter[T], wanted: Counter[T]) -> PRF:
    """Compare two bags of words. All three values are 1 if both are empty, and 0 if one of them is."""
    return count_prf((predicted & wanted).total(), predicted.total(), wanted.total())


def words(text: str) -> list[str]:
    """Return the lower-case words of a text."""
    return words_of(text.lower())


def neutral_prf(prediction: str, truth: str, titles: Iterable[str] = ()) -> PRF:
    """Compare the bags of words, and return the best score over the prediction with and without a title.

    ``titles`` are those of the annotation and of the page itself. The truth is also tried with the first title in
    front. If the truth has a headline, a prediction without it loses recall. All three values are 1 if both texts are
    empty, and 0 if one of them is.
    """
    names = [title for title in titles if title]
    predictions = {prediction, *(without_title(prediction, name) for name in names)}
    truths = [truth, *(f"{name}\n{truth}" for name in names[:1])]
    bags = [Counter(words(text)) for text in truths]
    return max((bag_prf(Counter(words(text)), bag) for text in predictions for bag in bags), key=lambda prf: prf.f1)


def without_title(text: str, title: str) -> str:
    """Return a text without the first of its leading lines that is the title, or most of it."""
    lines, want = text.split("\n"), Counter(words(title))
    for i, line in enumerate(lines[:TITLE_LINES]):
        if is_title(Counter(words(line)), want):
            return "\n".join(lines[:i] + lines[i + 1 :])
    return text


def is_title(have: Counter[str], want: Counter[str], share: float = TITLE_SHARE) -> bool:
    """Return True if words are those of the title, or at least a share of them, and no others."""
    return bool(have) and have.total() >= share * want.total() and have <= want


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


def mean_interval(values: Sequence[float] | npt.NDArray[np.float64], n: int = 10_000) -> Interval:
    """Return the mean of one number per page, of which there is at least one, and its interval from n resamples."""
    data = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(0)
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


def aligned(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a table with the first column left-aligned and the others right-aligned, without control characters."""
    lines = [list(map(on_one_line, line)) for line in (head, *body)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines
    )
