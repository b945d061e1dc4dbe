"""What of a page goes into a prompt: all of it, or, where that is too long, what the user wants instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scrapy_dripper.engines.base import OversizeError
from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids
from scrapy_dripper.engines.qwen3.prompt import Prompt, window_html
from scrapy_dripper.engines.qwen3.windows import furthest, windows

SQUARE = 7_680
"""Tokens of a prompt for which Qwen3-0.6B has as much to do in attention as in products with its weights."""


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
    """Tokens of prompt and answer together."""
    max_tokens: int | None = None
    """Tokens of a prompt; None for whatever the answer leaves."""
    window: int | None = None
    """Tokens of a prompt above which a page is read in windows of so many, if that is less work; None for never."""

    @property
    def budget(self) -> int:
        """Tokens that the blocks of a part and their answer may have together, about."""
        return min(self.limit, self.max_tokens or self.limit) - len(self.prompt.encode([""])[0])

    def fits(self, prompt: Ids, n: int) -> bool:
        """Return True if a prompt of n blocks is short enough, whatever labels they get."""
        size = len(prompt)
        return size + self.grammar.length(n) <= self.limit and (self.max_tokens is None or size <= self.max_tokens)

    def parts(self, blocks: Sequence[str], prompt: Ids, oversize: str) -> list[Part]:
        """Return the parts of a page, given its blocks, the prompt of all of them and what to do if that is too long.

        Raise :exc:`OversizeError` if it is and ``oversize`` is ``fallback``. With ``truncate`` there is one part, of
        the first blocks; with ``window`` the parts cover all of them.
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

        # The last block has the longest number, in the answer too.
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
        """Return the operations of a pass over a prompt behind its shared tokens, in those of a token by itself."""
        size, shared = len(prompt), len(self.prompt.shared)
        return size - shared + (size**2 - shared**2) / SQUARE

    def _part(self, blocks: Sequence[str], chosen: range, budget: int) -> Part:
        """Return the part of some blocks. A block that is too long by itself is cut."""
        html = window_html(blocks, chosen.start, chosen.stop)
        prompt, tokens = self._encode(html), budget - self.grammar.length(1)
        while tokens > 0 and len(chosen) == 1 and not self.fits(prompt, 1):
            prompt = self._encode(self.prompt.beginning(html, tokens))
            tokens -= max(1, tokens // 16)  # the tokens of a cut text can be others than those it was cut at
        return Part(chosen, prompt)

    def _encode(self, html: str) -> Ids:
        return self.prompt.encode([html])[0]
