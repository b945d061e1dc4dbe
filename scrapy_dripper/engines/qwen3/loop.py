"""Constrained decoding in few forward passes, with the same labels as token-by-token decoding.

Greedy decoding under the grammar needs the model's choice for each block, given all labels before it. A causal model
gives the choices for a whole draft of the answer in one pass. They are right up to and including the first one that
differs from the draft, because the text before it is the same. So the loop reads the draft together with the prompt,
corrects the first choice that differs, and takes the model's choices in that pass as the new draft for the rest (Jacobi
iteration, as in Santilli et al., ACL 2023), until nothing differs. A right draft takes one pass, and the worst one
takes a pass per block.

In floating point, the number of tokens in a pass changes the last bits of the logits. If the logits of main and other
are nearly equal, this could change a label. ``benchmarks/gpu.py`` searches for such cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.base import PrecisionError
from scrapy_dripper.engines.qwen3.grammar import AnswerTokens, Ids

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]


class CausalModel(Protocol):
    """A causal model that caches the tokens that it has read."""

    def forward(self, start: int, ids: Ids, rows: Ids) -> Floats:
        """Read tokens from position ``start`` on, in place of those that were read there before.

        Return float32 logits [rows, 2] of main and other. ``rows`` are the indices of the tokens after which a label is
        chosen.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DecodeTask:
    """One page to decode: its prompt, the tokens of its answer, and a draft of its n labels (True for main)."""

    prompt: Ids
    answer: AnswerTokens
    draft: Bools

    def __len__(self) -> int:
        """Return the maximum number of tokens that the model reads: all except the last label."""
        return len(self.prompt) + len(self.answer.ids) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The labels of one page, and the work that they took."""

    main: Bools
    """True for each block whose logit of main is the greater one. A tie is other."""
    margins: Floats
    """Logit of main minus logit of other, for each block."""
    passes: int
    positions: int
    """Number of tokens that the model read in all passes."""
    kept: int
    """Number of labels of the draft that were right."""
    prefill: float = 0.0
    """Seconds of the first pass, which reads the prompt with the draft."""
    rest: float = 0.0
    """Seconds of the other passes."""

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """Probability that each block is main: the softmax over the two logits."""
        p: npt.NDArray[np.float64] = np.exp(-np.logaddexp(0, -self.margins.astype(np.float64)))
        return p


def decode(model: CausalModel, task: DecodeTask, lookahead: int | None = None, start: int = 0) -> Decoded:
    """Return the labels of a page, of whose prompt the model has read the first ``start`` tokens.

    ``lookahead`` limits how many labels of the draft a pass reads beyond the next one to choose; 0 means decoding
    without a draft, with one pass per block. Raise :exc:`PrecisionError` if a logit is not finite.
    """
    answer, n, before = task.answer, len(task.answer), len(task.prompt)
    labels, margins = task.draft.copy(), np.zeros(n, dtype=np.float32)
    seconds: list[float] = []
    fixed = passes = positions = 0  # the first ``fixed`` labels are final, the first ``start`` tokens read
    while fixed < n:
        end = n if lookahead is None else min(fixed + lookahead + 1, n)
        ids = np.concatenate([task.prompt, answer.ids[: answer.places[end - 1]]])
        places = before + answer.places[:end]
        ids[places[:-1]] = np.where(labels[: end - 1], answer.main, answer.other)
        begun = perf_counter()
        logits = model.forward(start, ids[start:], places[fixed:] - 1 - start)
        seconds.append(perf_counter() - begun)
        if not np.isfinite(logits).all():
            raise PrecisionError("the model's logits are not finite")
        passes += 1
        positions += len(ids) - start
        choices = logits[:, 0] > logits[:, 1]
        margins[fixed:end] = logits[:, 0] - logits[:, 1]
        # Up to the first choice that differs from the draft, they are final. The others become the new draft.
        different = np.flatnonzero(choices != labels[fixed:end])
        labels[fixed:end] = choices
        fixed = fixed + int(different[0]) + 1 if len(different) else end
        start = before + int(answer.places[fixed - 1])
    kept = int((labels == task.draft).sum())
    return Decoded(labels, margins, passes, positions, kept, sum(seconds[:1]), sum(seconds[1:]))
