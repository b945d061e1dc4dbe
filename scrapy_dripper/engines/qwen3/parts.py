"""Divide a page into prompts: the whole page or, if it is too long, as configured by ``DRIPPER_OVERSIZE``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scrapy_dripper.engines.base import OversizeError
from scrapy_dripper.engines.qwen3.cost import Shape, rule_of, saved
from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids
from scrapy_dripper.engines.qwen3.prompt import Prompt, window_html
from scrapy_dripper.engines.qwen3.windows import even, furthest, sizes, windows


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
    shape: Shape
    limit: int
    """Maximum number of tokens of a prompt together with its answer."""
    max_tokens: int | None = None
    """Maximum number of tokens of a prompt; None for no further limit."""

    @property
    def budget(self) -> int:
        """The approximate number of tokens that the blocks of a part and their answer may have."""
        return min(self.limit, self.max_tokens or self.limit) - self._around

    def fits(self, prompt: Ids, n: int) -> bool:
        """Return True if a prompt of n blocks is short enough, for any labels."""
        size = len(prompt)
        return size + self.grammar.length(n) <= self.limit and (self.max_tokens is None or size <= self.max_tokens)

    def parts(
        self, blocks: Sequence[str], prompt: Ids, oversize: str, window_tokens: int | str | None = None
    ) -> list[Part]:
        """Return the parts of a page, given its blocks and the prompt for all of them.

        A page is divided into windows if these save as many operations as ``window_tokens``, a value of
        ``DRIPPER_WINDOW_TOKENS``, asks for. Otherwise, if the prompt is too long, ``oversize`` decides: with
        ``truncate``, there is one part with the first blocks; with ``window``, the parts cover all blocks; with
        ``fallback``, raise :exc:`OversizeError`.
        """
        n = len(blocks)
        fits = self.fits(prompt, n)
        if (fits or oversize == "window") and (divided := self._cheaper(blocks, prompt, window_tokens, fits)):
            return divided
        if fits:
            return [Part(range(n), prompt)]
        if oversize == "fallback":
            most = self.max_tokens
            over = f"{self.limit:,}" if most is None or len(prompt) <= most else f"DRIPPER_MAX_TOKENS = {most:,}"
            raise OversizeError(f"{len(prompt):,} tokens, and {self.grammar.length(n):,} of the answer, over {over}")
        return self._divided(blocks, truncate=oversize == "truncate")

    @property
    def _around(self) -> int:
        """Number of tokens of a prompt without blocks."""
        return len(self.prompt.encode([""])[0])

    def _within(self, tokens: int) -> Splitter:
        """Return a splitter into prompts of at most that many tokens."""
        return replace(self, max_tokens=min(tokens, self.max_tokens or tokens))

    def _cheaper(
        self, blocks: Sequence[str], prompt: Ids, window_tokens: int | str | None, fits: bool
    ) -> list[Part] | None:
        """Return windows that save as many operations as their rule asks for, or None."""
        rule = rule_of(window_tokens)
        if rule is None or len(prompt) <= rule.tokens or len(blocks) < 2:
            return None
        finer = self._within(rule.tokens)

        def saves(found: Sequence[int]) -> bool:
            return saved(self.shape, len(self.prompt.shared), whole, found) > rule.least

        # An estimate comes first, because most pages stay whole, and a page must be tokenized again to divide it.
        costs, around = self._estimated(blocks, prompt), self._around
        whole = [len(prompt) + self.grammar.length(len(blocks))] if fits else sizes(costs, self.budget, around)
        if not saves(sizes(costs, even(costs, finer.budget), around)):
            return None
        divided = self._divided(blocks, finer)
        real = [len(part.prompt) + self.grammar.length(len(part.blocks)) for part in divided]
        return divided if not fits or saves(real) else None

    def _estimated(self, blocks: Sequence[str], prompt: Ids) -> list[int]:
        """Return an estimate of the tokens of each block, including its label, given the prompt for all of them."""
        tokens, label = (len(prompt) - self._around) / max(1, sum(map(len, blocks))), self._label(len(blocks))
        return [round(len(block) * tokens) + label for block in blocks]

    def _label(self, n: int) -> int:
        """Return the number of tokens of the last label of n, which has the longest block number."""
        return self.grammar.length(n) - self.grammar.length(n - 1)

    def _divided(self, blocks: Sequence[str], finer: Splitter | None = None, *, truncate: bool = False) -> list[Part]:
        """Return windows that cover all blocks, or with ``truncate`` one part with the first of them.

        With ``finer``, windows fit into that splitter, and are about equally long. A block that is too long for it is a
        window by itself, and is cut only if it is too long for this splitter as well.
        """
        within = finer or self

        def fit(start: int, end: int) -> bool:
            return within.fits(self._encode(window_html(blocks, start, end)), end - start)

        label = self._label(len(blocks))
        costs = [count + label for count in self.prompt.count(blocks)]
        if truncate:
            end = furthest(costs, 0, self.budget)
            while end > 1 and not fit(0, end):
                end -= max(1, end // 16)
            return [self._part(blocks, range(end))]
        budget = self.budget if finer is None else even(costs, finer.budget)
        return [self._part(blocks, window) for window in windows(costs, budget, fit)]

    def _part(self, blocks: Sequence[str], chosen: range) -> Part:
        """Return the part with some blocks. A block that is too long by itself is cut off."""
        html = window_html(blocks, chosen.start, chosen.stop)
        prompt, tokens = self._encode(html), self.budget - self.grammar.length(1)
        while tokens > 0 and len(chosen) == 1 and not self.fits(prompt, 1):
            prompt = self._encode(self.prompt.beginning(html, tokens))
            tokens -= max(1, tokens // 16)  # a shortened text can have more tokens than it was cut to
        return Part(chosen, prompt)

    def _encode(self, html: str) -> Ids:
        return self.prompt.encode([html])[0]
