"""Work on pages in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")
R = TypeVar("R")


def in_processes(work: Callable[[T], R], items: Sequence[T], jobs: int, what: str) -> Iterator[R]:
    """Yield the result for each item, in order, with a progress bar. For a single job, no process is started."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        found = map(work, items) if jobs <= 1 else pool.map(work, items, chunksize=8)
        yield from tqdm(found, total=len(items), desc=what, unit="page")
