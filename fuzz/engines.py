"""The engine of a case: random labels, the bundled model, or none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.engines import load_engine
from scrapy_dripper.engines.base import EngineError, Labels, Limits
from scrapy_dripper.page import Page


class Labeller:
    """Labels pages as the engine of a case does, and keeps the last page.

    Random labels only depend on ``seed`` and the number of blocks: there is either one for each of a few runs of
    blocks, like real labels, or one for each block.
    """

    limits = Limits()

    def __init__(self, name: str) -> None:
        """``name`` is one that :class:`~fuzz.cases.Case` allows."""
        self.name = name
        self.profile = "v1.0" if name == "v1.0" else "native"
        self.seed = 0
        self.page: Page | None = None
        self._tagger = load_engine(Config()) if name == "tagger" else None

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of a page."""
        self.page = pages[-1]
        if self._tagger is not None:
            return self._tagger.label(pages)
        if self.name == "failing":
            return [EngineError("cannot")]
        n = len(self.page.blocks)
        if self.seed % 16 == 0:
            main = np.full(n, self.seed < 192)
        else:
            stretch = (1, 1, 2, 5)[self.seed % 4]
            draws = np.random.default_rng(self.seed).random(n // stretch + 1) < 0.6
            main = np.repeat(draws, stretch)[:n]
        return [Labels(np.where(main, 0.75, 0.25).astype(np.float32), main)]

    def close(self) -> None:
        """Do nothing."""
