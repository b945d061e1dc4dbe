"""Constrained decoding in as few forward passes as possible, with the labels that one token at a time would give.

Greedy decoding under the grammar needs, for each block, the model's choice given all labels before. A causal model
gives the choices of a whole guessed answer in one pass; they are right up to and including the first that differs from
the guess, because so far the guess and the truth are the same text. So: put a draft into the prefill, read all choices,
correct the first that differs, take the model's own choices of that pass as the draft of the rest (Jacobi iteration, as
in Santilli et al., ACL 2023), and go on until nothing differs. The right draft costs one pass, the worst one a pass
per block.

In floating point, how many tokens a pass reads changes the last bits of the logits, so where those of main and other
are nearly equal a label could depend on it. ``benchmarks/decode.py --prove`` looks for that.
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
    """Position of the first token. What the sequence had from there on is forgotten."""
    ids: Ids
    rows: Ids
    """Indices into ``ids``: after these tokens a label is chosen."""


class NotFiniteError(ValueError):
    """A logit of the model is NaN or infinite."""


class Model(Protocol):
    """A causal model that keeps what it has read of each sequence."""

    def forward(self, chunks: Sequence[Chunk]) -> list[Floats]:
        """Read chunks of different sequences; return, for each, float32 logits [rows, 2] of main and other."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One page to decode: its prompt, the answer's tokens, and a guess of its n labels (True is main)."""

    prompt: Ids
    answer: Answer
    draft: Bools
    main: int
    other: int

    def __len__(self) -> int:
        """Return the most tokens that the model reads of this page: all but the last label."""
        return len(self.prompt) + len(self.answer.ids) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The labels of one page and what they cost."""

    main: Bools
    """Main if its logit is the greater one; a tie is other."""
    margins: Floats
    """Logit of main less logit of other, for each block."""
    passes: int
    positions: int
    """Tokens that the model read, in all passes."""
    kept: int
    """Labels of the draft that stayed as they were."""

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """Probability of main of each block: the softmax over the two logits."""
        p: npt.NDArray[np.float64] = np.exp(-np.logaddexp(0, -self.margins.astype(np.float64)))
        return p


def decode(model: Model, tasks: Sequence[Task], start: int = 0, lookahead: int | None = None) -> list[Decoded]:
    """Return the labels of each page; task i is the model's sequence i.

    The first ``start`` tokens of the prompts have been read already. ``lookahead`` bounds how many labels of the draft
    a pass reads beyond the one to choose; 0 is decoding without a draft, one pass per block. Raise
    :exc:`NotFiniteError` if a logit is none.
    """
    states = [_State(task, start) for task in tasks]
    while pending := [i for i, state in enumerate(states) if not state.done]:
        chunks = [states[i].chunk(i, lookahead) for i in pending]
        for i, logits in zip(pending, model.forward(chunks), strict=True):
            states[i].read(logits)
    return [state.decoded() for state in states]


class _State:
    """How far one page has come: ``fixed`` labels are final, tokens before ``start`` are read and right."""

    def __init__(self, task: Task, start: int) -> None:
        self.task, self.start = task, start
        self.labels = task.draft.copy()
        self.margins = np.zeros(len(task.answer), dtype=np.float32)
        self.fixed = self.end = self.passes = self.positions = 0

    @property
    def done(self) -> bool:
        return self.fixed == len(self.task.answer)

    def chunk(self, sequence: int, lookahead: int | None) -> Chunk:
        """Return the tokens up to the last choice that is to be read."""
        task, answer = self.task, self.task.answer
        self.end = len(answer) if lookahead is None else min(self.fixed + lookahead + 1, len(answer))
        ids = np.concatenate([task.prompt, answer.ids[: answer.places[self.end - 1]]])
        places = len(task.prompt) + answer.places[: self.end]
        ids[places[:-1]] = np.where(self.labels[: self.end - 1], task.main, task.other)
        self.passes += 1
        self.positions += len(ids) - self.start
        return Chunk(sequence, self.start, ids[self.start :], places[self.fixed :] - 1 - self.start)

    def read(self, logits: Floats) -> None:
        """Take the choices of a pass: final up to the first that differs from the draft, a new draft behind it."""
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
