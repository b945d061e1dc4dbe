"""An engine of worker processes that takes a second, and says in a file that it has begun."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import Labels, Limits

SECONDS = 1.0


class Engine:
    """Takes everything for main."""

    name = "slow"
    profile = "native"
    limits = Limits()

    def __init__(self, config: Config) -> None:
        pass

    def label(self, pages: Sequence[Any]) -> list[Labels]:
        begun = Path(os.environ["SLOW_ENGINE_BEGUN"])
        begun.with_suffix(".new").write_text(str(os.getpid()), encoding="ascii")
        begun.with_suffix(".new").rename(begun)
        time.sleep(SECONDS)
        sizes = [len(page.blocks) for page in pages]
        return [Labels(np.full(n, 0.9, dtype=np.float32), np.ones(n, dtype=bool)) for n in sizes]

    def close(self) -> None:
        pass
