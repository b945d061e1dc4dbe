"""Number of operations of a model, which decides whether a long page is read whole or in windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimensions of a model of the Qwen3 architecture."""

    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int

    @property
    def weights(self) -> int:
        """Number of weights in the matrix products of a pass: all except embedding, output layer and norms."""
        attention = 2 * self.hidden * (self.heads + self.kv_heads) * self.head_dim
        return self.layers * (attention + 3 * self.hidden * self.inner)

    def flops(self, tokens: float, past: float = 0.0) -> float:
        """Return the floating-point operations of a pass over tokens after ``past`` others, with causal attention."""
        attention = 4.0 * self.layers * self.heads * self.head_dim * tokens * (past + tokens / 2)
        return 2.0 * self.weights * tokens + attention


@dataclass(frozen=True, slots=True)
class Rule:
    """When a page that would fit into one prompt is read in windows."""

    tokens: int
    """Largest number of tokens of the prompt of a window. Shorter pages are always read whole."""
    least: float = 0.0
    """Windows must save more than this share of the operations."""


AUTO = Rule(6_000, 0.25)
"""Rule of ``DRIPPER_WINDOW_TOKENS = "auto"``.

Labels can differ if a page is read in windows, so pages are only divided if that costs clearly less. This rule divides
a quarter of the development pages, and saves 28 % of all operations. Dividing 56 % of the pages would save 32 %
(``benchmarks/gpu.py --simulate``).
"""


def rule_of(window_tokens: int | str | None) -> Rule | None:
    """Return the rule for a value of ``DRIPPER_WINDOW_TOKENS``; None if pages that fit are never divided."""
    if window_tokens is None:
        return None
    return AUTO if isinstance(window_tokens, str) else Rule(window_tokens)


def saved(shape: Shape, shared: int, whole: Sequence[int], windows: Sequence[int]) -> float:
    """Return the share of the operations of ``whole`` that ``windows`` save; negative if they need more.

    Each prompt is given by its number of tokens, including its answer. The first ``shared`` of them are not counted,
    because they are read once for all prompts.
    """
    before, after = (sum(shape.flops(size - shared, shared) for size in sizes) for sizes in (whole, windows))
    return 1 - after / before
