"""Engines that a rank imports by dotted path; a page can make its process crash, hang or use all memory."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from scrapy_dripper.engines.base import EngineError, Labels
from scrapy_dripper.page import Page
from scrapy_dripper.testing import FakeEngine


class AllMain(FakeEngine):
    """Labels everything main, after it has done what the page says."""

    name = "all"

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return labels in which every block is main."""
        for page in pages:
            _act("\n".join(page.blocks.text))
        return super().label(pages)


class MainWords(AllMain):
    """Labels blocks main that have the word MAIN."""

    name = "words"

    def probability(self, text: str) -> float:
        """Return the probability that a block is main content."""
        return 0.9 if "MAIN" in text else 0.1


def _act(text: str) -> None:
    if "SEGFAULT-IF " in text and not Path(text.split("SEGFAULT-IF ")[1].split()[0]).exists():
        return
    if "SEGFAULT" in text:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "HANG" in text:
        re.match(r"(a+)+$", "a" * 64 + "b")
    if "MEMORY" in text:
        bytearray(8 << 30)
    if "WAIT-FOR " in text:
        begun, flag = map(Path, text.split("WAIT-FOR ")[1].split()[:2])
        if not begun.exists():
            begun.write_text(str(os.getpid()))
        while not flag.exists():
            time.sleep(0.05)
    if "COUNT " in text:
        with open(text.split("COUNT ")[1].split()[0], "a") as file:
            file.write("x")
