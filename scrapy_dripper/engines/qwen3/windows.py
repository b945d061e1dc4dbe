"""Divide a page that is too long for one prompt into overlapping windows of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

OVERLAP = 8
"""Adjacent windows share about one part in this many of their tokens, because labels depend on the context."""


def furthest(costs: Sequence[int], start: int, budget: int) -> int:
    """Return one past the last block of the longest window from ``start`` whose costs fit, at least one block."""
    end, left = start + 1, budget - costs[start]
    while end < len(costs) and costs[end] <= left:
        left -= costs[end]
        end += 1
    return end


def windows(costs: Sequence[int], budget: int, fits: Callable[[int, int], bool]) -> list[range]:
    """Return windows that cover all blocks, in order. Adjacent windows share blocks if these fit.

    ``costs`` are the estimated numbers of tokens of the blocks, including the answer. ``budget`` is the number of
    tokens in a window. ``fits`` returns True if the prompt of the blocks from a start to an end really fits. A window
    is shortened until it does, but never below one block.
    """
    found: list[range] = []
    start = covered = 0
    while covered < len(costs):
        end = furthest(costs, start, budget)
        while end - start > 1 and not fits(start, end):
            end -= max(1, (end - start) // 16)
        if end <= covered:  # no new block fits, so leave out the shared blocks
            start = covered
            continue
        found.append(range(start, end))
        covered = end
        start = _overlap(costs, start, end, budget) if end < len(costs) else end
    return found


def even(costs: Sequence[int], budget: int) -> int:
    """Return the smallest budget with as many windows as this one, so that they are about equally long.

    Otherwise, the last window would only have the few remaining blocks, with little context.
    """
    most = len(windows(costs, budget, _any))
    low, high = 1, max(1, budget)
    while low < high:
        middle = (low + high) // 2
        if len(windows(costs, middle, _any)) <= most:
            high = middle
        else:
            low = middle + 1
    return high


def sizes(costs: Sequence[int], budget: int, around: int) -> list[int]:
    """Return the number of tokens of each window: those of its blocks, plus ``around`` for the rest of the prompt."""
    return [around + sum(costs[i] for i in window) for window in windows(costs, budget, _any)]


def _any(start: int, end: int) -> bool:  # noqa: ARG001 (interface)
    return True


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
    """Return for each of n blocks the mean of its probabilities in all windows that hold it."""
    total, count = np.zeros(n), np.zeros(n)
    for part, p in zip(parts, probabilities, strict=True):
        total[part.start : part.stop] += p
        count[part.start : part.stop] += 1
    return total / count
