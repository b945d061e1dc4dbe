"""A model, a tokenizer and a tagger that need no weights."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from scrapy_dripper.engines.base import EngineError, Labels
from scrapy_dripper.engines.files import hashes
from scrapy_dripper.engines.qwen3.decoder import Floats
from scrapy_dripper.engines.qwen3.folder import Prepared, load_prepared
from scrapy_dripper.engines.qwen3.grammar import Ids
from scrapy_dripper.page.page import Page
from scrapy_dripper.testing import FakeEngine

PREPARED = Path(__file__).parent / "prepared"


def with_graph(folder: Path, model: Any, **values: Any) -> Prepared:
    """Return the small random model in a folder of its own, with another graph and other values in its manifest."""
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "tokenizer.json").write_bytes((PREPARED / "tokenizer.json").read_bytes())
    manifest = json.loads((PREPARED / "manifest.json").read_text(encoding="utf-8"))
    manifest |= {"files": hashes(folder, ["model.onnx", "tokenizer.json"]), **values}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return load_prepared(folder)


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


class FakeTagger(FakeEngine):
    """Labels each block main whose text has the word. A page with the word 'untaggable' is an error."""

    def __init__(self, word: str = "main") -> None:
        super().__init__(main=lambda text: 0.9 if word in text else 0.1)
        self.seen: list[Page] = []

    def answer(self, page: Page) -> Labels | EngineError:
        """Return the labels or the error of a page."""
        self.seen.append(page)
        return EngineError() if any("untaggable" in text for text in page.blocks.text) else super().answer(page)
