"""A model, a tokenizer and a tagger that need no weights."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from scrapy_dripper.engines.base import EngineError, Labels, Limits
from scrapy_dripper.engines.qwen3.grammar import Ids
from scrapy_dripper.engines.qwen3.loop import Floats
from scrapy_dripper.page.page import Page

PREPARED = Path(__file__).parent / "prepared"


class FakeModel:
    """A causal model. Its choice after some tokens is a hash of all of them, so it depends on every token.

    ``ties`` is the share of choices that are ties. Like a real one it keeps what it has read.
    """

    def __init__(self, seed: int = 0, ties: float = 0.0) -> None:
        self.seed, self.ties = seed, ties
        self.read: list[int] = []
        self.passes = 0

    def forward(self, start: int, ids: Ids, rows: Ids) -> Floats:
        """Return the logits of main and other after some of the tokens."""
        self.passes += 1
        assert start <= len(self.read), "a gap in the sequence"
        self.read[start:] = ids.tolist()
        ends = (start + rows + 1).tolist()
        return np.array([self._logits(self.read[:end]) for end in ends], dtype=np.float32).reshape(-1, 2)

    def _logits(self, ids: list[int]) -> tuple[float, float]:
        digest = hashlib.sha256(repr((self.seed, ids)).encode()).digest()
        main = digest[0] / 16
        return main, main if digest[1] < 256 * self.ties else digest[2] / 16


class FakeTagger:
    """Labels each block main whose text has the word, with a probability of 0.9."""

    name = "tagger"
    profile = "native"

    limits = Limits()

    def __init__(self, word: str = "main") -> None:
        self.word = word
        self.seen: list[Page] = []

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return labels for each page, or an error for a page with the word 'untaggable'."""
        answers: list[Labels | EngineError] = []
        self.seen += pages
        for page in pages:
            if any("untaggable" in text for text in page.blocks.text):
                answers.append(EngineError("untaggable"))
                continue
            main = np.array([self.word in text for text in page.blocks.text], dtype=np.bool_)
            answers.append(Labels(np.where(main, 0.9, 0.1).astype(np.float32), main))
        return answers

    def close(self) -> None:
        """Do nothing."""
