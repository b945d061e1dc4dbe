"""Whether the steps of a pattern grow faster than its text."""

from __future__ import annotations

import re
from typing import Any

from tests.linear.attacks import Attack, attacks
from tests.linear.matcher import Matcher, TooManyStepsError

FIRST, LONG = 32, 200
"""Characters of the shortest attack, and of the shortest of those with which a suspicion is looked into."""

BOUND = 10
"""Bounded repeats count as a constant factor, however high: for the growth of steps, they may go on so far only."""

HIGHEST_BOUND = 1_000
"""Repeats that may go on for longer do not count as bounded."""

STEPS = 500
"""Steps that a character may take, and one for each part of the pattern: more is as good as exponential."""


def superlinear(pattern: re.Pattern[Any], method: str) -> str | None:
    """Return an attack that costs a method of a pattern more than linear time, and its steps; None if there is none."""
    matcher = Matcher(pattern, BOUND)
    if matcher.largest_bound > HIGHEST_BOUND:
        return f"a repeat of up to {matcher.largest_bound} times"
    for attack in attacks(pattern, matcher):
        if _grows(_steps(matcher, method, attack, FIRST)):
            # Up to the bounds of repeats, steps grow like a square.
            steps = _steps(matcher, method, attack, LONG)
            if _grows(steps):
                return f"{attack}: once, twice and four times as long takes {steps} steps"
    return None


def _grows(steps: list[int]) -> bool:
    """Return True if four times as long takes more steps than twice as long would let expect, or too many at all."""
    if len(steps) < 3:
        return True
    return steps[2] - steps[1] > 2.5 * (steps[1] - steps[0]) + 4 * FIRST


def _steps(matcher: Matcher, method: str, attack: Attack, length: int) -> list[int]:
    steps: list[int] = []
    times = attack.times(length)
    for factor in (1, 2, 4):
        text = attack.of(times * factor)
        try:
            matcher.spans(method, text, (STEPS + matcher.size) * (len(text) + 1))
        except TooManyStepsError:
            break
        steps.append(matcher.steps)
    return steps
