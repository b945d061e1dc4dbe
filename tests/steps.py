"""How much a call does, whatever the machine: a check for linear time that reads no clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any


def lines_of(run: Callable[[], Any]) -> int:
    """Return how many lines of Python a call runs."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def is_linear(run: Callable[[Any], Any], made: Callable[[int], Any], n: int) -> bool:
    """Return True if a call runs little more than twice as many lines for what is made twice as large."""
    one, two = (lines_of(partial(run, made(size))) for size in (n, 2 * n))
    return two <= 2.5 * one
