"""A page that is too long for one prompt, as overlapping windows of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

OVERLAP = 8
"""Neighbouring windows share about one part in so many of a window's tokens: labels depend on what stands around."""


def furthest(costs: Sequence[int], start: int, budget: int) -> int:
    """Return one past the last block of the longest window from ``start`` on whose costs fit; at least one block."""
    end, left = start + 1, budget - costs[start]
    while end < len(costs) and costs[end] <= left:
        left -= costs[end]
        end += 1
    return end


def windows(costs: Sequence[int], budget: int, fits: Callable[[int, int], bool]) -> list[range]:
    """Return windows that cover all blocks, in order; neighbours share blocks where there is room for that.

    ``costs`` estimates the tokens of each block, its place in the answer included; ``budget`` is how many a window
    takes. ``fits`` tells whether the prompt of the blocks from a start to an end really fits; a window is shortened
    until it does, but never to less than one block.
    """
    found: list[range] = []
    start = covered = 0
    while covered < len(costs):
        end = furthest(costs, start, budget)
        while end - start > 1 and not fits(start, end):
            end -= max(1, (end - start) // 16)
        if end <= covered:  # nothing new in it: without the shared blocks there is more room
            start = covered
            continue
        found.append(range(start, end))
        covered = end
        start = _overlap(costs, start, end, budget) if end < len(costs) else end
    return found


def _overlap(costs: Sequence[int], start: int, end: int, budget: int) -> int:
    """Return where the window after the one from start to end begins, so that the block at ``end`` fits into it."""
    left = min(budget // OVERLAP, budget - costs[end])
    back = end
    while back - 1 > start and costs[back - 1] <= left:
        back -= 1
        left -= costs[back]
    return back


def average(
    parts: Sequence[range], probabilities: Sequence[npt.NDArray[np.float64]], n: int
) -> npt.NDArray[np.float64]:
    """Return, for each of n blocks, the mean of the probabilities that the windows with this block give it."""
    total, count = np.zeros(n), np.zeros(n)
    for part, p in zip(parts, probabilities, strict=True):
        total[part.start : part.stop] += p
        count[part.start : part.stop] += 1
    return total / count
