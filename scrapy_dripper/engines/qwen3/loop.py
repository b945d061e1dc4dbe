"""Constrained decoding in few forward passes, with the same labels as token-by-token decoding.

Greedy decoding under the grammar needs the model's choice for each block, given all labels before it. A causal model
gives the choices for a whole draft of the answer in one pass. They are right up to and including the first one that
differs from the draft, because the text before it is the same. So the loop reads the draft together with the prompt,
corrects the first choice that differs, and takes the model's choices in that pass as the new draft for the rest (Jacobi
iteration, as in Santilli et al., ACL 2023), until nothing differs. A right draft takes one pass, and the worst one
takes a pass per block.

In floating point, the number of tokens in a pass changes the last bits of the logits. If the logits of main and other
are nearly equal, this could change a label. ``benchmarks/gpu.py --prove`` searches for such cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.qwen3.grammar import Answer, Ids

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Tokens that a pass adds to one sequence."""

    sequence: int
    start: int
    """Position of the first token. Earlier tokens of the sequence from there on are forgotten."""
    ids: Ids
    rows: Ids
    """Indices into ``ids`` of the tokens after which a label is chosen."""


class NotFiniteError(ValueError):
    """A logit of the model is NaN or infinite."""


class Model(Protocol):
    """A causal model that caches the tokens of each sequence that it has read."""

    def forward(self, chunks: Sequence[Chunk]) -> list[Floats]:
        """Read chunks of different sequences. Return float32 logits [rows, 2] of main and other for each."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One page to decode: its prompt, the tokens of its answer, and a draft of its n labels (True for main)."""

    prompt: Ids
    answer: Answer
    draft: Bools
    main: int
    other: int

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

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """Probability that each block is main: the softmax over the two logits."""
        p: npt.NDArray[np.float64] = np.exp(-np.logaddexp(0, -self.margins.astype(np.float64)))
        return p


def decode(model: Model, tasks: Sequence[Task], start: int = 0, lookahead: int | None = None) -> list[Decoded]:
    """Return the labels of each page. Task i is sequence i of the model.

    The first ``start`` tokens of the prompts have already been read. ``lookahead`` limits how many labels of the draft
    a pass reads beyond the next one to choose; 0 means decoding without a draft, with one pass per block. Raise
    :exc:`NotFiniteError` if a logit is not finite.
    """
    states = [_State(task, start) for task in tasks]
    while pending := [i for i, state in enumerate(states) if not state.done]:
        chunks = [states[i].chunk(i, lookahead) for i in pending]
        for i, logits in zip(pending, model.forward(chunks), strict=True):
            states[i].read(logits)
    return [state.decoded() for state in states]


class _State:
    """The progress of one page: ``fixed`` labels are final, and the tokens before ``start`` have been read."""

    def __init__(self, task: Task, start: int) -> None:
        self.task, self.start = task, start
        self.labels = task.draft.copy()
        self.margins = np.zeros(len(task.answer), dtype=np.float32)
        self.fixed = self.end = self.passes = self.positions = 0

    @property
    def done(self) -> bool:
        return self.fixed == len(self.task.answer)

    def chunk(self, sequence: int, lookahead: int | None) -> Chunk:
        """Return the tokens up to the last choice to read."""
        task, answer = self.task, self.task.answer
        self.end = len(answer) if lookahead is None else min(self.fixed + lookahead + 1, len(answer))
        ids = np.concatenate([task.prompt, answer.ids[: answer.places[self.end - 1]]])
        places = len(task.prompt) + answer.places[: self.end]
        ids[places[:-1]] = np.where(self.labels[: self.end - 1], task.main, task.other)
        self.passes += 1
        self.positions += len(ids) - self.start
        return Chunk(sequence, self.start, ids[self.start :], places[self.fixed :] - 1 - self.start)

    def read(self, logits: Floats) -> None:
        """Process the choices of a pass. Up to the first one that differs from the draft, they are final. The others
        become the new draft."""
        if not np.isfinite(logits).all():
            raise NotFiniteError("the model's logits are not finite")
        read = slice(self.fixed, self.end)
        self.margins[read] = logits[:, 0] - logits[:, 1]
        choices = logits[:, 0] > logits[:, 1]
        different = np.flatnonzero(choices != self.labels[read])
        self.labels[read] = choices
        self.fixed = self.fixed + int(different[0]) + 1 if len(different) else self.end
        self.start = len(self.task.prompt) + int(self.task.answer.places[self.fixed - 1])

    def decoded(self) -> Decoded:
        kept = int((self.labels == self.task.draft).sum())
        return Decoded(self.labels, self.margins, self.passes, self.positions, kept)
