"""Engines for cases: random labels, the bundled model, and failures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.engines import load_engine
from scrapy_dripper.engines.base import EngineError, Labels, Limits, OversizeError
from scrapy_dripper.page import Page


class Drawn:
    """Draws random labels: either one for each of a few runs of blocks, like real labels, or one for each block."""

    name = "drawn"
    limits = Limits()

    def __init__(self, profile: str) -> None:
        self.profile = profile
        self.seed = 0
        self.page: Page | None = None
        """The last page that was labelled."""

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return labels that only depend on ``seed`` and the number of blocks."""
        self.page = pages[-1]
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


class Tagger(Drawn):
    """The bundled model."""

    name = "tagger"

    def __init__(self, profile: str) -> None:
        super().__init__(profile)
        self._engine = load_engine(Config())

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the model's labels."""
        self.page = pages[-1]
        return self._engine.label(pages)


class Failing(Drawn):
    """Fails in a way that ``seed`` selects."""

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return or raise something that an engine should not."""
        n = len(pages[0].blocks)
        answers: list[list[Labels | EngineError]] = [
            [OversizeError("too long")],
            [EngineError("cannot")],
            [],
            [Labels(np.full(n, np.nan, np.float32), np.ones(n, np.bool_))],
            [Labels(np.ones(n + 1, np.float32), np.ones(n + 1, np.bool_))],
            [Labels(np.ones(n, np.float32), np.ones(n, np.int64))],
        ]
        if self.seed % 7 == 6:
            raise RuntimeError("the engine is broken")
        return answers[self.seed % 7]
