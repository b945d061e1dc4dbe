"""Convert labelled pages to token sequences, with the positions at which labels are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from scrapy_dripper.engines.qwen3.grammar import Grammar
from scrapy_dripper.engines.qwen3.prompt import HTML
from scrapy_dripper.engines.qwen3.windows import furthest, window_html
from scrapy_dripper.workshop.training.qwen3.pages import LabelledPage

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TokenSequence:
    """The prompt of n blocks and its right answer, and columns over the blocks."""

    ids: Ids
    """Shape (length,), up to the token before the last label."""
    rows: Ids
    """Positions whose next token is the block's label."""
    ends: Ids
    """Positions of the block's last token in the prompt."""
    main: npt.NDArray[np.bool_]
    weights: npt.NDArray[np.float32]


class Encoder:
    """Encodes pages like the engine, with a template, an answer format and a tokenizer."""

    def __init__(self, tokenizer: Tokenizer, template: str, answer: str) -> None:
        self.tokenizer, self.template, self.grammar = tokenizer, template, Grammar(tokenizer, answer)
        self._before = template.index(HTML)
        self.around = len(tokenizer.encode(template.replace(HTML, "")).ids)

    def encode(self, page: LabelledPage, start: int = 0, end: int | None = None) -> TokenSequence:
        """Return the sequence of some blocks of a page, by default all, numbered from 1."""
        end = len(page.blocks) if end is None else end
        html = window_html(page.blocks, start, end)
        prompt = self.tokenizer.encode(self.template.replace(HTML, html))
        answer = self.grammar.answer(end - start)
        main = np.array(page.main[start:end], dtype=np.bool_)
        ids = answer.ids.copy()
        ids[answer.places] = np.where(main, self.grammar.main, self.grammar.other)
        starts = np.array([offset[0] for offset in prompt.offsets])
        lengths = [len(page.blocks[k]) - len(str(k + 1)) + len(str(k + 1 - start)) for k in range(start, end)]
        return TokenSequence(
            ids=np.concatenate([np.array(prompt.ids, dtype=np.int64), ids[:-1]]),
            rows=len(prompt.ids) + answer.places - 1,
            ends=np.searchsorted(starts, self._before + np.cumsum(lengths)) - 1,
            main=main,
            weights=np.array(page.weights[start:end], dtype=np.float32),
        )

    def sample(self, page: LabelledPage, longest: int, rng: np.random.Generator) -> TokenSequence | None:
        """Return the sequence of a page or, if it has over ``longest`` tokens, of a window at a random place.

        Return None if not even one block fits.
        """
        costs = self.costs(page)
        budget = longest - self.around
        start = 0 if sum(costs) <= budget else int(rng.integers(len(costs)))
        end = furthest(costs, start, budget)
        while start > 0 and sum(costs[start - 1 : end]) <= budget:  # near the end of the page, add earlier blocks
            start -= 1
        while end > start:
            sequence = self.encode(page, start, end)
            if len(sequence.ids) <= longest:
                return sequence
            end -= max(1, (end - start) // 16)
        return None

    def with_noise(self, sequence: TokenSequence, share: float, rng: np.random.Generator) -> TokenSequence:
        """Return a sequence in which a share of the earlier labels that the model reads are random.

        The target labels do not change. Adjacent blocks mostly have the same label, so a model that always reads the
        right ones learns to repeat the last label instead of reading the block.
        """
        places = sequence.rows[:-1] + 1
        drawn = places[rng.random(len(places)) < share]
        ids = sequence.ids.copy()
        ids[drawn] = rng.choice([self.grammar.main, self.grammar.other], len(drawn))
        return replace(sequence, ids=ids)

    def costs(self, page: LabelledPage) -> list[int]:
        """Return the approximate number of tokens that each block adds to prompt and answer."""
        label = len(self.grammar.answer(100).ids) // 100 + 1
        encoded = self.tokenizer.encode_batch_fast(page.blocks, add_special_tokens=False)
        return [len(one.ids) + label for one in encoded]


def batches(sequences: Sequence[TokenSequence], tokens: int) -> Iterator[list[TokenSequence]]:
    """Yield batches of sequences of similar length. A batch has at most ``tokens`` tokens with padding, or one
    sequence."""
    batch: list[TokenSequence] = []
    for sequence in sorted(sequences, key=lambda one: len(one.ids)):
        if batch and (len(batch) + 1) * len(sequence.ids) > tokens:
            yield batch
            batch = []
        batch.append(sequence)
    if batch:
        yield batch


def collate(batch: Sequence[TokenSequence], pad: int = 0) -> tuple[Ids, Ids, Ids]:
    """Return the ids [B, S], padded on the right, and the rows and ends as indices into the flattened [B * S].

    No mask is needed, because a causal model does not attend to later tokens.
    """
    longest = max(len(one.ids) for one in batch)
    ids = np.full((len(batch), longest), pad, dtype=np.int64)
    for i, one in enumerate(batch):
        ids[i, : len(one.ids)] = one.ids
    rows = np.concatenate([i * longest + one.rows for i, one in enumerate(batch)])
    ends = np.concatenate([i * longest + one.ends for i, one in enumerate(batch)])
    return ids, rows, ends
