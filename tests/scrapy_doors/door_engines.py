"""Engines that workers find by their names, for live crawls: they do what pages ask for."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scrapy_dripper.engines.base import EngineError, Labels, Limits
from scrapy_dripper.page import Page

log = logging.getLogger(__name__)


class Truth:
    """Labels as main each block that contains ``MAIN``; is stuck in a page that contains ``HANG``."""

    name = "truth"
    profile = "native"
    limits = Limits()

    def __init__(self, config: Any) -> None:
        """``config`` is the crawl's."""

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return what is known of each page."""
        return [self._label(page) for page in pages]

    def close(self) -> None:
        """Nothing to give back."""

    def _label(self, page: Page) -> Labels:
        text = "\n".join(page.blocks.text)
        if "HANG" in text:
            log.warning("stuck at %s", page.url)
            hang()
        if "PAUSE" in text:
            time.sleep(0.2)
        main = np.array(["MAIN" in block for block in page.blocks.text], dtype=bool)
        probabilities = np.where(main, 0.9, 0.1).astype(np.float32)
        return Labels(probabilities, main, work={f"by/{os.getpid()}": 1})


def hang() -> None:
    """Be stuck in a regular expression: no other thread of this process runs."""
    re.match(r"(a+)+$", "a" * 64 + "b")


def fallback(html: str, url: str) -> str:
    """Be stuck, too, if the page wants that."""
    if "THEN HANG" in html:
        hang()
    if "WAIT-FOR " in html:
        flag = Path(html.split("WAIT-FOR ")[1].split("<")[0])
        while not flag.exists():
            time.sleep(0.02)
    return "<p>from the fallback</p>"
