"""Prompts and answers in tokens. An answer is forced runs of tokens, and binary choices between them.

An answer names each block's label, such as ``{"1":"main","2":"other"}``. Everything except the labels is known in
advance, and a label is one of two tokens. So an answer for n blocks is a fixed sequence of tokens with n choices.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.profile import HTML

Ids = npt.NDArray[np.int64]

MAIN, OTHER = "main", "other"


@dataclass(frozen=True, slots=True)
class Format:
    """The text of answers: before the first label, before each following one (``#`` is the block's number), and after
    the last."""

    first: str
    following: str
    last: str
    pieces: str | None = None
    """Regular expression that matches single tokens; None for the usual tokens of the text."""

    def text(self, labels: Sequence[str]) -> str:
        """Return the text of an answer with these labels."""
        before = (self.first, *(self.following.replace("#", str(k)) for k in range(2, len(labels) + 1)))
        return "".join(text + label for text, label in zip(before, labels, strict=False)) + self.last


_PIECES = r'</think>|\n\n|":"|",|"}|[{"0-9]|main|other'

FORMATS = {
    "json": Format('{"1":"', '","#":"', '"}'),
    "json_space": Format('{"1": "', '", "#": "', '"}'),
    "json_colon": Format('{"1": "', '","#": "', '"}'),
    "mineru_v1": Format('{"1":"', '","#":"', '"}', _PIECES),
    "mineru_v2": Format('</think>\n\n{"1":"', '","#":"', '"}', _PIECES),
    "compact": Format("1", "#", ""),
}
"""The answer formats by name.

There is JSON without spaces, as ``json.dumps`` writes it, and with spaces after colons only, as in the example in the
prompt of the published weights. ``mineru_v1`` and ``mineru_v2`` have the tokens that the state machines of MinerU-HTML
1.0 force, which differ from a tokenizer's tokens for the same text. ``compact`` is ``1main2other``. The code of the
published weights does not say which format they have learnt, so an export tests them.
"""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTokens:
    """The tokens of an answer for n blocks, up to its last label.

    ``ids`` is int64 of shape (m,), with main for all labels. ``places``, int64 of shape (n,), are the indices of the
    labels. ``main`` and ``other`` are the token ids of the labels.
    """

    ids: Ids
    places: Ids
    main: int
    other: int

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self.places)


class Grammar:
    """The answers of one format in the tokens of one tokenizer.

    The ids come from encoding whole answers, or their pieces, and cutting them at the labels. Raise :exc:`ModelError`
    if that is not well defined: if a label is not a single token, if both labels are the same token, or if the tokens
    between two labels depend on them.
    """

    def __init__(self, tokenizer: Tokenizer, answer: str) -> None:
        self._tokenizer, self._name, self._format = tokenizer, answer, FORMATS[answer]
        self._decode = partial(tokenizer.decode, skip_special_tokens=False)
        self._piece_ids: dict[str, int] = {}
        self._answer = self._derive(64)
        self.main, self.other = self._answer.main, self._answer.other
        """Token ids of the labels."""
        self._closing = len(self._label_ids(MAIN, 1)) - int(self._answer.places[0]) - 1

    def answer(self, n: int) -> AnswerTokens:
        """Return the answer for n blocks."""
        while n > len(self._answer):
            self._answer = self._derive(2 * len(self._answer))
        end = int(self._answer.places[n - 1]) + 1 if n else 0
        return replace(self._answer, ids=self._answer.ids[:end], places=self._answer.places[:n])

    def length(self, n: int) -> int:
        """Return the number of tokens of a whole answer for n blocks. It does not depend on the labels."""
        return len(self.answer(n).ids) + self._closing if n else 0

    def _derive(self, n: int) -> AnswerTokens:
        """Return the answer for n blocks, after checking that no pair of adjacent labels changes its tokens."""
        main, other = self._label_ids(MAIN, n), self._label_ids(OTHER, n)
        if len(main) != len(other):
            raise self._error("a label is not a single token")
        places = np.flatnonzero(main != other)
        if len(places) != n or np.ptp(main[places]) or np.ptp(other[places]):
            raise self._error("the labels are not two single tokens that are distinct")
        for odd in (0, 1):
            labels = np.arange(n) % 2 == odd
            expected = main.copy()
            expected[places] = np.where(labels, main[places], other[places])
            found = self._encode(self._format.text([MAIN if label else OTHER for label in labels]))
            if not np.array_equal(found, expected):
                raise self._error("the tokens between two labels depend on the labels")
        return AnswerTokens(main[: places[-1] + 1], places, int(main[places[0]]), int(other[places[0]]))

    def _label_ids(self, label: str, n: int) -> Ids:
        text = self._format.text([label] * n)
        ids = self._encode(text)
        # A tokenizer may lose spaces when it decodes. Other differences mean that it lacks tokens.
        if "".join(self._decode(ids.tolist()).split()) != "".join(text.split()):
            raise self._error("it has no tokens for all of an answer")
        return ids

    def _encode(self, text: str) -> Ids:
        if self._format.pieces is None:
            ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        else:
            ids = [self._piece(piece) for piece in re.findall(self._format.pieces, text)]
        return np.array(ids, dtype=np.int64)

    def _piece(self, piece: str) -> int:
        if piece not in self._piece_ids:
            ids = self._tokenizer.encode(piece, add_special_tokens=False).ids
            if len(ids) != 1:
                raise self._error(f"{piece!r} is not a single token")
            self._piece_ids[piece] = ids[0]
        return self._piece_ids[piece]

    def _error(self, problem: str) -> ModelError:
        others = ", ".join(name for name in FORMATS if name != self._name)
        return ModelError(
            f"The tokenizer does not fit the answer format {self._name!r} ({problem}): try another format ({others}), "
            "or a model whose tokenizer has the words main and other"
        )


def fitting(tokenizer: Tokenizer) -> dict[str, Grammar]:
    """Return the grammar of each format that fits a tokenizer, by name."""
    found = {}
    for name in FORMATS:
        with suppress(ModelError):
            found[name] = Grammar(tokenizer, name)
    return found


class Prompt:
    """A template in the tokens of a tokenizer. Raise :exc:`ModelError` unless it has exactly one placeholder for the
    blocks.
    """

    def __init__(self, tokenizer: Tokenizer, template: str) -> None:
        if template.count(HTML) != 1:
            raise ModelError(f"The prompt must contain {HTML} exactly once (got {template.count(HTML)} times)")
        self._tokenizer, self._template = tokenizer, template

    @property
    def shared(self) -> Ids:
        """The first tokens of the prompts of all pages. A page's first characters may be part of the token after."""
        without, page = self.encode(["", "<p "])
        least = min(len(without), len(page))
        differ = np.flatnonzero(without[:least] != page[:least])
        return page[: differ[0] if len(differ) else least]

    def encode(self, pages: Sequence[str]) -> list[Ids]:
        """Return the tokens, int64 of shape (length,), of the prompt of each page's blocks."""
        texts = [self._template.replace(HTML, html) for html in pages]
        return [np.array(one.ids, dtype=np.int64) for one in self._tokenizer.encode_batch_fast(texts)]
