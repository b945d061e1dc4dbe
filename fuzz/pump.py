"""Repeat parts of an input: if a small input is a little too slow, a large one is far too slow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

SIZES = (25_000, 50_000, 100_000)
"""Sizes to which an input is enlarged, in bytes."""
RUNS = 3
"""Number of runs of an input that are lengthened, the longest first, each by itself, before the whole document is."""

_run = re.compile(rb"(.{1,64}?)\1{4,}", re.S).finditer


def pumped(body: bytes, size: int) -> Iterator[bytes]:
    """Yield the document enlarged to ``size`` bytes: with each of its longest runs lengthened, and then repeated."""
    runs = sorted(_run(body), key=lambda run: run.start() - run.end())
    for run in islice(runs, RUNS):
        missing = max(0, size - len(body)) // len(run[1])
        yield body[: run.end()] + run[1] * missing + body[run.end() :]
    if body:
        yield body * max(1, size // len(body))
