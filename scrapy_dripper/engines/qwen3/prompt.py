"""Prompts, which consist of the instructions that all pages share and of the blocks of one page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.grammar import Ids

HTML = "{html}"
"""The placeholder for the blocks, which a template must have exactly once."""


class Prompt:
    """A template in the tokens of a tokenizer. Raise :exc:`ModelError` unless it has exactly one placeholder for the
    blocks.
    """

    def __init__(self, tokenizer: Tokenizer, template: str) -> None:
        if template.count(HTML) != 1:
            raise ModelError(f"The prompt must contain {HTML} exactly once (got {template.count(HTML)} times)")
        self._tokenizer, self._template = tokenizer, template
        before = template.split(HTML)[0]
        probes = self._encode([before + start for start in ("", "<p>", '<div class="a">')])
        same = [len({int(probe[i]) for probe in probes}) == 1 for i in range(min(map(len, probes)))]
        self.shared: Ids = probes[0][: (*same, False).index(False)]
        """The tokens with which nearly every prompt begins: see :meth:`shares`."""

    def encode(self, pages: Sequence[str]) -> list[Ids]:
        """Return the tokens, int64 of shape (length,), of the prompt of each page's blocks."""
        return self._encode([self._template.replace(HTML, html) for html in pages])

    def shares(self, prompt: Ids) -> bool:
        """Return True if a prompt begins with all :attr:`shared` tokens, and has more tokens after them.

        Tokens depend on the text that follows them. So the beginning of a page can change the last shared tokens.
        """
        n = len(self.shared)
        return 0 < n < len(prompt) and np.array_equal(prompt[:n], self.shared)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text by itself."""
        return [len(one.ids) for one in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def beginning(self, text: str, tokens: int) -> str:
        """Return the first tokens of a text, as text."""
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return text if len(offsets) <= tokens else text[: offsets[tokens][0]]

    def _encode(self, texts: Sequence[str]) -> list[Ids]:
        return [np.array(one.ids, dtype=np.int64) for one in self._tokenizer.encode_batch_fast(list(texts))]
