"""Divide a page into prompts: the whole page or, if it is too long, as configured by ``DRIPPER_OVERSIZE``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scrapy_dripper.engines.base import OversizeError
from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids
from scrapy_dripper.engines.qwen3.prompt import Prompt, window_html
from scrapy_dripper.engines.qwen3.windows import furthest, windows

SQUARE = 7_680
"""Number of tokens of a prompt for which attention and products with weights take equal work in Qwen3-0.6B."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Blocks of a page that are labelled together, and their prompt."""

    blocks: range
    prompt: Ids


@dataclass(frozen=True, slots=True)
class Splitter:
    """Divides pages into prompts of at most ``max_tokens`` tokens that leave room for the answer within ``limit``."""

    prompt: Prompt
    grammar: Grammar
    limit: int
    """Maximum number of tokens of a prompt together with its answer."""
    max_tokens: int | None = None
    """Maximum number of tokens of a prompt; None for no further limit."""
    window: int | None = None
    """Number of tokens of a prompt above which a page is divided into windows of this size, if that is less work; None
    for never."""

    @property
    def budget(self) -> int:
        """The approximate number of tokens that the blocks of a part and their answer may have."""
        return min(self.limit, self.max_tokens or self.limit) - len(self.prompt.encode([""])[0])

    def fits(self, prompt: Ids, n: int) -> bool:
        """Return True if a prompt of n blocks is short enough, for any labels."""
        size = len(prompt)
        return size + self.grammar.length(n) <= self.limit and (self.max_tokens is None or size <= self.max_tokens)

    def parts(self, blocks: Sequence[str], prompt: Ids, oversize: str) -> list[Part]:
        """Return the parts of a page, given its blocks and the prompt for all of them.

        If the prompt is too long, ``oversize`` decides: with ``truncate``, there is one part with the first blocks;
        with ``window``, the parts cover all blocks; with ``fallback``, raise :exc:`OversizeError`.
        """
        n = len(blocks)
        fits = self.fits(prompt, n)
        if self.window is not None and len(prompt) > self.window and (fits or oversize == "window"):
            smaller = replace(self, max_tokens=min(self.window, self.max_tokens or self.window), window=None)
            divided = smaller.parts(blocks, prompt, "window")
            if not fits or sum(self._work(part.prompt) for part in divided) < self._work(prompt):
                return divided
        if fits:
            return [Part(range(n), prompt)]
        if oversize == "fallback":
            most = self.max_tokens
            over = f"{self.limit:,}" if most is None or len(prompt) <= most else f"DRIPPER_MAX_TOKENS = {most:,}"
            raise OversizeError(f"{len(prompt):,} tokens, and {self.grammar.length(n):,} of the answer, over {over}")

        def fit(start: int, end: int) -> bool:
            return self.fits(self._encode(window_html(blocks, start, end)), end - start)

        # The last block has the longest number, also in the answer.
        label = self.grammar.length(n) - self.grammar.length(n - 1)
        costs = [count + label for count in self.prompt.count(blocks)]
        budget = self.budget
        if oversize == "truncate":
            end = furthest(costs, 0, budget)
            while end > 1 and not fit(0, end):
                end -= max(1, end // 16)
            return [self._part(blocks, range(end), budget)]
        return [self._part(blocks, window, budget) for window in windows(costs, budget, fit)]

    def _work(self, prompt: Ids) -> float:
        """Return the work of a pass over a prompt after its shared tokens, in units of a single token."""
        size, shared = len(prompt), len(self.prompt.shared)
        return size - shared + (size**2 - shared**2) / SQUARE

    def _part(self, blocks: Sequence[str], chosen: range, budget: int) -> Part:
        """Return the part with some blocks. A block that is too long by itself is cut off."""
        html = window_html(blocks, chosen.start, chosen.stop)
        prompt, tokens = self._encode(html), budget - self.grammar.length(1)
        while tokens > 0 and len(chosen) == 1 and not self.fits(prompt, 1):
            prompt = self._encode(self.prompt.beginning(html, tokens))
            tokens -= max(1, tokens // 16)  # a shortened text can have more tokens than it was cut to
        return Part(chosen, prompt)

    def _encode(self, html: str) -> Ids:
        return self.prompt.encode([html])[0]
