"""Engines for live crawls that workers import by name. Pages tell them what to do."""

from __future__ import annotations

import ctypes
import logging
import os
import time
from dataclasses import replace
from pathlib import Path

from scrapy_dripper.engines.base import Labels
from scrapy_dripper.page import Page
from scrapy_dripper.testing import FakeEngine

log = logging.getLogger(__name__)


class Truth(FakeEngine):
    """Labels each block main that contains ``MAIN``. Hangs on a page that contains ``HANG``."""

    name = "truth"

    def probability(self, text: str) -> float:
        """Return the probability of a block."""
        return 0.9 if "MAIN" in text else 0.1

    def answer(self, page: Page) -> Labels:
        """Return the labels of a page."""
        text = "\n".join(page.blocks.text)
        if "HANG" in text:
            log.warning("stuck at %s", page.url)
            hang()
        if "PAUSE" in text:
            time.sleep(0.2)
        labels = super().answer(page)
        assert isinstance(labels, Labels)
        return replace(labels, work={f"by/{os.getpid()}": 1})


def hang() -> None:
    """Stop all threads of this process, as a stuck regular expression does, but leave the CPU to other tests.

    Workers that are stuck in a regular expression are in ``tests/workers`` and ``tests/faults``.
    """
    ctypes.PyDLL(None).sleep(3_600)  # keeps the lock of the interpreter


def fallback(html: str, url: str) -> str:
    """Hang, too, if the page says so."""
    if "THEN HANG" in html:
        hang()
    if "WAIT-FOR " in html:
        flag = Path(html.split("WAIT-FOR ")[1].split("<")[0])
        while not flag.exists():
            time.sleep(0.02)
    return "<p>from the fallback</p>"
