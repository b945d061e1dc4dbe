"""What is kept beside inputs that reach new code: those that take more time, or make more output, for their size.

As in PerfFuzz (Lemieux, Padhye, Sen and Song, ISSTA 2018) an input is kept if it has the most of something, and damaged
again. There, that is how often each branch is run. Here it is CPU time and characters of each form of the output, by
the character of the input and by class of size: most of the time of a bad regular expression passes within one call,
where no branch of ours and no line of Python can be counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log2

FORMS = ("main_html", "markdown", "text", "content")
MEASURES = ("seconds", *FORMS)
LEAST = 1_000
"""Characters that an input counts as if it has fewer: what every page costs must not make the smallest the slowest."""
CLASSES = 10
"""Classes of size: up to 2,000 characters, up to 4,000, and so on."""
LEVELS = 40
"""Levels of a measure, each 1.4 times the one before: less is noise, where it is time."""
_LOWEST = {"seconds": 1e-6, **dict.fromkeys(FORMS, 0.25)}
NUMBERS = len(MEASURES) * CLASSES * LEVELS
"""How many records there can be: one for each level of each measure in each class."""


@dataclass(slots=True)
class Cost:
    """What the extraction of a case took, and what it made."""

    seconds: float = 0.0
    """CPU seconds."""
    memory: int = 0
    """Bytes by which memory grew."""
    output: dict[str, int] = field(default_factory=dict)
    """Characters of each form."""

    def rate(self, measure: str, size: int) -> float:
        """Return seconds, or characters of a form, by the character of an input of so many."""
        return (self.seconds if measure == "seconds" else self.output.get(measure, 0)) / max(size, LEAST)


class Records:
    """The highest level of each measure so far, in each class of size."""

    def __init__(self) -> None:
        self._highest: dict[tuple[str, int], int] = {}

    def broken(self, size: int, cost: Cost, again: Callable[[], float]) -> dict[str, int]:
        """Return the measures of which an input has more than any before, each with the number of its new record.

        ``again`` measures the seconds once more, if they would be a record: the lower of the two counts, since other
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
