"""The engine of ``big_crawl.py``: it answers its first batch when so many pages as it says have come to the callback.

In worker processes it learns that from a file, and notes the sizes of its batches in another, in the folder that
``BIG_CRAWL`` names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import Labels, Limits

PATIENCE = 60


class Engine:
    """Takes everything for main."""

    name = "fake"
    profile = "native"
    limits = Limits()

    def __init__(self, hold: Callable[[], None], note: Callable[[int], None]) -> None:
        """``hold`` returns when the first batch may be answered; ``note`` is told how many pages a batch has."""
        self._hold, self._note = hold, note

    def label(self, pages: Sequence[Any]) -> list[Labels]:
        self._hold()
        self._note(len(pages))
        sizes = [len(page.blocks) for page in pages]
        return [Labels(np.full(n, 0.9, dtype=np.float32), np.ones(n, dtype=bool)) for n in sizes]

    def close(self) -> None:
        pass


def load(config: Config) -> Engine:
    """Return the engine of a worker process."""
    folder = Path(os.environ["BIG_CRAWL"])

    def hold() -> None:
        latest = time.monotonic() + PATIENCE
        while not (folder / "arrived").exists() and time.monotonic() < latest:
            time.sleep(0.01)

    def note(pages: int) -> None:
        with (folder / "batches").open("a", encoding="ascii") as file:
            file.write(f"{pages}\n")

    return Engine(hold, note)
