"""An engine for worker processes that takes a second, and notes in a file that it has begun."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scrapy_dripper.testing import FakeEngine

SECONDS = 1.0


class Engine(FakeEngine):
    """Labels everything main."""

    name = "slow"

    def label(self, pages: Sequence[Any]) -> Any:
        begun = Path(os.environ["SLOW_ENGINE_BEGUN"])
        begun.with_suffix(".new").write_text(str(os.getpid()), encoding="ascii")
        begun.with_suffix(".new").rename(begun)
        time.sleep(SECONDS)
        return super().label(pages)
