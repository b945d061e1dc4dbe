"""The engine of ``big_crawl.py``. It answers its first batch after a given number of pages have reached the callback.

In worker processes it learns that from a file, and notes the sizes of its batches in another, in the folder that
``BIG_CRAWL`` names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scrapy_dripper.config import Config
from scrapy_dripper.testing import FakeEngine

PATIENCE = 60


class Engine(FakeEngine):
    """Labels everything main."""

    def __init__(self, hold: Callable[[], None], note: Callable[[int], None]) -> None:
        """``hold`` returns when the first batch may be answered. ``note`` is called with the number of pages of each
        batch.
        """
        super().__init__()
        self._hold, self._note = hold, note

    def label(self, pages: Sequence[Any]) -> Any:
        self._hold()
        self._note(len(pages))
        return super().label(pages)


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
