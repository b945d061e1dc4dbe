"""Divide a page into prompts: the whole page or, if it is too long, overlapping windows of its blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.base import OversizeError
from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids
from scrapy_dripper.engines.qwen3.prompt import Prompt

OVERLAP = 8
"""Adjacent windows share about one part in this many of their tokens, because labels depend on the context."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Blocks of a page that are labelled together, and their prompt."""

    blocks: range
    prompt: Ids


@dataclass(frozen=True, slots=True)
class Splitter:
    """Divides pages into prompts that fit, with their answers, into ``limit`` tokens."""

    prompt: Prompt
    grammar: Grammar
    limit: int
    window_tokens: int | None = None
    """Number of tokens of a prompt above which a page is read in windows of at most that size; None for never."""

    @property
    def room(self) -> int:
        """The approximate number of tokens that the blocks of a window and their answer may have."""
        return min(self.limit, self.window_tokens or self.limit) - self._around()

    def fits(self, prompt: Ids, n: int) -> bool:
        """Return True if a prompt of n blocks and any answer to it are short enough."""
        return len(prompt) + self.grammar.length(n) <= self.limit

    def parts(self, blocks: Sequence[str], prompt: Ids, oversize: str) -> list[Part] | OversizeError:
        """Return the parts of a page, given its blocks and the prompt for all of them.

        If the prompt does not fit, ``oversize`` decides: with ``truncate``, there is one part with the first blocks;
        with ``window``, the parts cover all blocks; with ``fallback``, the answer is an error.
        """
        n = len(blocks)
        if self.fits(prompt, n):
            if n < 2 or self.window_tokens is None or len(prompt) <= self.window_tokens:
                return [Part(range(n), prompt)]
        elif oversize == "fallback":
            return OversizeError(
                f"{len(prompt):,} tokens, and {self.grammar.length(n):,} of the answer, over {self.limit:,}"
            )
        elif oversize == "truncate":
            end = furthest(self._costs(blocks), 0, self.limit - self._around())
            while end > 1 and not self._fit(blocks, 0, end, self.limit):
                end -= max(1, end // 16)
            return [self._part(blocks, range(end))]
        most = min(self.limit, self.window_tokens or self.limit)

        def fit(start: int, end: int) -> bool:
            return self._fit(blocks, start, end, most)

        return [self._part(blocks, window) for window in windows(self._costs(blocks), self.room, fit)]

    def _around(self) -> int:
        """Return the number of tokens of a prompt without blocks."""
        return len(self._encode(""))

    def _costs(self, blocks: Sequence[str]) -> list[int]:
        """Return the number of tokens of each block, including its label: that of the longest block number."""
        label = self.grammar.length(len(blocks)) - self.grammar.length(len(blocks) - 1)
        return [count + label for count in self.prompt.count(blocks)]

    def _fit(self, blocks: Sequence[str], start: int, end: int, most: int) -> bool:
        return len(self._encode(window_html(blocks, start, end))) + self.grammar.length(end - start) <= most

    def _part(self, blocks: Sequence[str], chosen: range) -> Part:
        """Return the part with some blocks. A block that is too long by itself is cut off."""
        html = window_html(blocks, chosen.start, chosen.stop)
        prompt, tokens = self._encode(html), self.limit - self._around() - self.grammar.length(1)
        while tokens > 0 and len(chosen) == 1 and not self.fits(prompt, 1):
            prompt = self._encode(self.prompt.beginning(html, tokens))
            tokens -= max(1, tokens // 16)  # a shortened text can have more tokens than it was cut to
        return Part(chosen, prompt)

    def _encode(self, html: str) -> Ids:
        return self.prompt.encode([html])[0]


def window_html(blocks: Sequence[str], start: int, end: int) -> str:
    """Return some of the blocks, numbered from 1, because the model reads a window like a page."""
    # The number is an attribute of the block's root, which is the first tag. No text of the page can come before it,
    # and quotation marks within attributes are written as &quot;.
    return "".join(
        block.replace(f' _item_id="{k + 1}"', f' _item_id="{k + 1 - start}"', 1)
        for k, block in enumerate(blocks[start:end], start)
    )


def furthest(costs: Sequence[int], start: int, budget: int) -> int:
    """Return one past the last block of the longest window from ``start`` whose costs fit, at least one block."""
    end, left = start + 1, budget - costs[start]
    while end < len(costs) and costs[end] <= left:
        left -= costs[end]
        end += 1
    return end


def windows(costs: Sequence[int], budget: int, fits: Callable[[int, int], bool]) -> list[range]:
    """Return windows that cover all blocks, in order. Adjacent windows share blocks if these fit.

    ``costs`` are the estimated numbers of tokens of the blocks, including the answer. ``budget`` is the number of
    tokens in a window. ``fits`` returns True if the prompt of the blocks from a start to an end really fits. A window
    is shortened until it does, but never below one block.
    """
    found: list[range] = []
    start = covered = 0
    while covered < len(costs):
        end = furthest(costs, start, budget)
        while end - start > 1 and not fits(start, end):
            end -= max(1, (end - start) // 16)
        if end <= covered:  # no new block fits, so leave out the shared blocks
            start = covered
            continue
        found.append(range(start, end))
        covered = end
        start = _overlap(costs, start, end, budget) if end < len(costs) else end
    return found


def _overlap(costs: Sequence[int], start: int, end: int, budget: int) -> int:
    """Return where the window after the one from start to end begins, so that the block at ``end`` fits into it."""
    left = min(budget // OVERLAP, budget - costs[end])
    back = end
    while back - 1 > start and costs[back - 1] <= left:
        back -= 1
        left -= costs[back]
    return back


def average(
    parts: Sequence[range], probabilities: Sequence[npt.NDArray[np.float64]], n: int
) -> npt.NDArray[np.float64]:
    """Return for each of n blocks the mean of its probabilities in all windows that hold it."""
    total, count = np.zeros(n), np.zeros(n)
    for part, p in zip(parts, probabilities, strict=True):
        total[part.start : part.stop] += p
        count[part.start : part.stop] += 1
    return total / count
