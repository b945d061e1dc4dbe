"""Records of cost: inputs are also kept if they take more time, or make more output, for their size.

As in PerfFuzz (Lemieux, Padhye, Sen and Song, ISSTA 2018), an input that sets a record is kept and mutated further.
PerfFuzz counts how often each branch is run. Here, the measures are CPU time and characters of each form of the output,
per character of the input and by class of size. A bad regular expression spends most of its time within one call, where
no branches or lines of Python can be counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log2

FORMS = ("main_html", "markdown", "text", "content")
MEASURES = ("seconds", *FORMS)
LEAST = 1_000
"""Minimum size that an input counts as. Otherwise, the constant cost of a page would make small inputs the slowest."""
CLASSES = 10
"""Number of classes of size: up to 2,000 characters, up to 4,000, and so on."""
LEVELS = 40
"""Number of levels of a measure. Each is 1.4 times the previous one, because smaller differences in time are noise."""
_LOWEST = {"seconds": 1e-6, **dict.fromkeys(FORMS, 0.25)}
NUMBERS = len(MEASURES) * CLASSES * LEVELS
"""Maximum number of records: one for each level of each measure in each class."""


@dataclass(slots=True)
class Cost:
    """The cost of extracting a case, and the size of its output."""

    seconds: float = 0.0
    """CPU seconds."""
    memory: int = 0
    """Bytes by which memory grew."""
    output: dict[str, int] = field(default_factory=dict)
    """Characters of each form."""

    def rate(self, measure: str, size: int) -> float:
        """Return seconds, or characters of a form, per character of an input of ``size`` characters."""
        return (self.seconds if measure == "seconds" else self.output.get(measure, 0)) / max(size, LEAST)


class Records:
    """The highest level of each measure so far, in each class of size."""

    def __init__(self) -> None:
        self._highest: dict[tuple[str, int], int] = {}

    def broken(self, size: int, cost: Cost, again: Callable[[], float]) -> dict[str, int]:
        """Return the measures in which an input exceeds all earlier ones, each with the number of its new record.

        ``again`` measures the seconds once more if they would be a record. The lower value counts, because other
        programs can only make a page slower.
        """
        if "seconds" in self._higher(size, cost):
            cost.seconds = min(cost.seconds, again())
        higher = self._higher(size, cost)
        group = _class(size)
        for measure, level in higher.items():
            self._highest[measure, group] = level
        return {measure: _number(measure, group, level) for measure, level in higher.items()}

    def _higher(self, size: int, cost: Cost) -> dict[str, int]:
        levels = {measure: _level(measure, cost.rate(measure, size)) for measure in MEASURES}
        group = _class(size)
        return {measure: level for measure, level in levels.items() if level > self._highest.get((measure, group), 0)}


def _class(size: int) -> int:
    return min(CLASSES - 1, int(log2(max(size, LEAST) / LEAST)))


def _level(measure: str, rate: float) -> int:
    lowest = _LOWEST[measure]
    return 0 if rate <= lowest else min(LEVELS - 1, round(2 * log2(rate / lowest)))


def _number(measure: str, group: int, level: int) -> int:
    return (MEASURES.index(measure) * CLASSES + group) * LEVELS + level
