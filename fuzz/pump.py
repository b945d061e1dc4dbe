"""Repeat parts of an input: if a small input is a little too slow, a large one is far too slow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

SIZES = (25_000, 50_000, 100_000)
"""Bytes of the documents that an input is made into."""
RUNS = 3
"""Runs of an input that are made longer, the longest first; each alone, and after them the document as a whole."""

_run = re.compile(rb"(.{1,64}?)\1{4,}", re.S).finditer


def pumped(body: bytes, size: int) -> Iterator[bytes]:
    """Yield the document with each of its longest runs made longer, and then repeated as a whole, to so many bytes."""
    runs = sorted(_run(body), key=lambda run: run.start() - run.end())
    for run in islice(runs, RUNS):
        missing = max(0, size - len(body)) // len(run[1])
        yield body[: run.end()] + run[1] * missing + body[run.end() :]
    if body:
        yield body * max(1, size // len(body))
