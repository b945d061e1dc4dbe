"""A prepared folder of a Qwen3 model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short
from typing import ClassVar

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.prepared import EXPORT, MANIFEST, PreparedFolder, load_folder, no_object
from scrapy_dripper.engines.qwen3.cost import Shape
from scrapy_dripper.engines.qwen3.grammar import MAIN, OTHER, Grammar
from scrapy_dripper.engines.qwen3.prompt import HTML

LEAST_LIKELIHOOD = -1.0
"""Minimum log-likelihood of an answer, per block, at which a model counts as trained for its format. It corresponds to
a probability of about a third for the five or six tokens of a block. Models that were trained for a format give it more
than that, and give any other format less.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(PreparedFolder):
    """The manifest of a prepared folder, and the path of the folder.

    The keys and values have the same data type as the weights. The context is the maximum length of prompt and answer
    together.
    """

    ENGINE: ClassVar[str] = "qwen3"
    ONE_OF: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "exporter": ("genai", "optimum"),
        "attention": ("gqa", "plain"),
    }
    MOST: ClassVar[Mapping[str, int]] = {
        "layers": 1_000,
        "hidden": 1_000_000,
        "inner": 1_000_000,
        "heads": 1_000,
        "kv_heads": 1_000,
        "head_dim": 10_000,
    }

    exporter: str
    attention: str
    """``gqa``: the graph has GroupQueryAttention; ``plain``: matrix products, with score matrices in memory."""
    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int
    prompt: str
    """The prompt template, with ``{html}`` in place of the blocks."""
    answer: str
    likelihood: float | None
    """Log-likelihood per block that the checkpoint gives to answers in this format; None if it was not measured."""
    labels: Mapping[str, int]
    """Token ids of ``main`` and ``other``."""

    @property
    def cache_names(self) -> list[str]:
        """Names of the keys and values in the graph, without the prefixes ``past_key_values.`` and ``present.``."""
        return [f"{layer}.{part}" for layer in range(self.layers) for part in ("key", "value")]

    @property
    def shape(self) -> Shape:
        """The dimensions of the model."""
        return Shape(self.layers, self.hidden, self.inner, self.heads, self.kv_heads, self.head_dim)

    @property
    def token_bytes(self) -> int:
        """Bytes of the keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.number_bytes

    def own_problem(self) -> str | None:
        """Return what is wrong with the labels, the prompt or the answer format, or None if they are valid."""
        if problem := no_object("labels", self.labels, int):
            return problem
        if self.dtype == "bfloat16" and self.attention != "gqa":
            return "bfloat16 goes with the attention gqa only"
        likelihood = self.likelihood
        if likelihood is not None and not (isinstance(likelihood, float) and likelihood >= LEAST_LIKELIHOOD):
            least = LEAST_LIKELIHOOD
            return f"the likelihood of its answers must be null or at least {least} (got {short(likelihood)})"
        if not isinstance(self.answer, str):
            return "answer must be a string"
        if not isinstance(self.prompt, str) or self.prompt.count(HTML) != 1:
            return f"the prompt must contain {HTML} exactly once"
        return None


def load_prepared(folder: str | Path) -> Prepared:
    """Return the manifest and the tokenizer of a prepared folder, after checking its files and the tokens of the
    labels.

    Raise :exc:`ModelError`, which says what to do, if a check fails.
    """
    prepared, tokenizer = load_folder(Prepared, folder)
    grammar = Grammar(tokenizer, prepared.answer)
    found = {MAIN: grammar.main, OTHER: grammar.other}
    if found != dict(prepared.labels):
        raise ModelError(
            f"The labels of {prepared.folder / MANIFEST} are the tokens {dict(prepared.labels)}, but its tokenizer "
            f"writes them as {found}: {EXPORT}"
        )
    return prepared
