"""Find out whether a regular expression takes steps that grow faster than the length of its text."""

from __future__ import annotations

import re
from typing import Any

from tests.linear.attacks import Attack, attacks
from tests.linear.matcher import Matcher, TooManyStepsError

FIRST, LONG = 32, 200
"""Minimum length of an attack in the first round, which only raises a suspicion, and in the second round, which
confirms or rejects it.
"""

BOUND = 10
"""Bounds of repeats above this number are lowered to it, because a bounded repeat is only a constant factor."""

HIGHEST_BOUND = 1_000
"""Repeats with a higher bound do not count as bounded."""

STEPS = 500
"""Maximum number of steps per character, in addition to one for each instruction of the pattern. More counts as
exponential.
"""


def superlinear(pattern: re.Pattern[Any], method: str) -> str | None:
    """Return a description of an attack for which a method of a pattern takes more than linear time; None if there is
    none.
    """
    matcher = Matcher(pattern, BOUND)
    if matcher.largest_bound > HIGHEST_BOUND:
        return f"a repeat of up to {matcher.largest_bound} times"
    for attack in attacks(pattern, matcher):
        if _is_suspicious(matcher, method, attack):
            # Below the bounds of repeats, steps may grow quadratically, so try longer texts.
            times = attack.times(LONG)
            steps = _steps(matcher, method, attack, (times, 2 * times, 4 * times))
            if _grows(steps):
                return f"{attack}: once, twice and four times as long takes {steps} steps"
    return None


def _is_suspicious(matcher: Matcher, method: str, attack: Attack) -> bool:
    """Return True unless the second half of a short attack takes as many steps as the first one, which is what nearly
    all do.
    """
    times = attack.times(FIRST)
    steps = _steps(matcher, method, attack, (1, times, 2 * times))
    return len(steps) < 3 or steps[2] - steps[1] > 1.25 * (steps[1] - steps[0]) + FIRST


def _grows(steps: list[int]) -> bool:
    """Return True if the steps for one, two and four times a length grow faster than linearly, or if one is missing."""
    return len(steps) < 3 or steps[2] - steps[1] > 2.5 * (steps[1] - steps[0]) + 4 * FIRST


def _steps(matcher: Matcher, method: str, attack: Attack, lengths: tuple[int, ...]) -> list[int]:
    """Return the steps of an attack with so many pumps, up to the first that is exponential."""
    steps: list[int] = []
    for times in lengths:
        text = attack.of(times)
        try:
            matcher.spans(method, text, (STEPS + matcher.size) * (len(text) + 1))
        except TooManyStepsError:
            break
        steps.append(matcher.steps)
    return steps
