"""Convert annotated pages to token sequences, with the positions at which labels are chosen. This needs no torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer
from tqdm import tqdm

from scrapy_dripper.engines.qwen3.grammar import HTML, Grammar
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.engines.qwen3.simplify import simplify
from scrapy_dripper.page import PageError
from scrapy_dripper.workshop.dataset.alignment import align, block_weights, tokens
from scrapy_dripper.workshop.dataset.sets import AnnotatedPage, DataError

MAX_BLOCKS = 10_000
"""Later blocks of a page are left out, like in a crawl by default."""

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LabelledPage:
    """The n blocks of one page, ready for any tokenizer."""

    blocks: list[str]
    """Simplified HTML, with ``_item_id`` 1 to n."""
    main: list[bool]
    weights: list[float]
    """Weight of each block in the loss, 1 on average."""


def labelled_page(sample: AnnotatedPage, profile: str, truncate_chars: int | None) -> LabelledPage | None:
    """Return the blocks of a sample and their labels, or None for a page without main blocks (Dripper paper, 4.1)."""
    rules = PROFILES[profile]
    try:
        page = rules.cut(rules.parse(sample.read_html()), sample.url)
    except PageError:
        return None
    if not len(page.blocks):
        return None
    page = page.first_blocks(MAX_BLOCKS)
    alignment = align(page.blocks.text, sample.truth)
    if not alignment.main.any():
        return None
    words = alignment.words / max(30, len(tokens(sample.truth)))
    weights = block_weights(words) * alignment.weight * sample.sure
    mean = float(weights.mean()) or 1.0
    return LabelledPage(simplify(page, truncate_chars), alignment.main.tolist(), (weights / mean).tolist())


def labelled_pages(
    samples: Sequence[AnnotatedPage], profile: str, truncate_chars: int | None, jobs: int
) -> list[LabelledPage]:
    """Return the labelled pages of samples, using ``jobs`` processes. Raise :exc:`DataError` if there are none."""
    work = partial(labelled_page, profile=profile, truncate_chars=truncate_chars)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        # For a single process, none is started.
        found: Iterable[LabelledPage | None] = (map if jobs <= 1 else partial(pool.map, chunksize=8))(work, samples)
        pages = [page for page in tqdm(found, total=len(samples), desc="blocks", unit="page") if page is not None]
    if not pages:
        raise DataError("no page has visible main content")
    return pages


@dataclass(frozen=True, slots=True, eq=False)
class TokenSequence:
    """The prompt of n blocks and its right answer, and columns over the blocks."""

    ids: Ids
    """Shape (length,), up to the token before the last label."""
    rows: Ids
    """Positions whose next token is the block's label."""
    main: npt.NDArray[np.bool_]
    weights: npt.NDArray[np.float32]


class Encoder:
    """Encodes pages like the engine, with a template, an answer format and a tokenizer."""

    def __init__(self, tokenizer: Tokenizer, template: str, answer: str) -> None:
        self.tokenizer, self.template, self.grammar = tokenizer, template, Grammar(tokenizer, answer)
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
        return TokenSequence(
            ids=np.concatenate([np.array(prompt.ids, dtype=np.int64), ids[:-1]]),
            rows=len(prompt.ids) + answer.places - 1,
            main=main,
            weights=np.array(page.weights[start:end], dtype=np.float32),
        )

    def sample(self, page: LabelledPage, longest: int, rng: np.random.Generator) -> TokenSequence | None:
        """Return the sequence of a page or, if it has over ``longest`` tokens, of a window at a random place.

        Return None if not even one block fits.
        """
        label = len(self.grammar.answer(100).ids) // 100 + 1
        encoded = self.tokenizer.encode_batch_fast(page.blocks, add_special_tokens=False)
        costs = [len(one.ids) + label for one in encoded]
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


def batches(sequences: Sequence[TokenSequence], most: int) -> Iterator[list[TokenSequence]]:
    """Yield batches of sequences of similar length. A batch has at most ``most`` tokens with padding, or one
    sequence."""
    batch: list[TokenSequence] = []
    for sequence in sorted(sequences, key=lambda one: len(one.ids)):
        if batch and (len(batch) + 1) * len(sequence.ids) > most:
            yield batch
            batch = []
        batch.append(sequence)
    if batch:
        yield batch


def collate(batch: Sequence[TokenSequence]) -> tuple[Ids, Ids]:
    """Return the ids [B, S], padded on the right, and the rows as indices into the flattened [B * S].

    No mask is needed, because a causal model does not attend to later tokens.
    """
    longest = max(len(one.ids) for one in batch)
    ids = np.zeros((len(batch), longest), dtype=np.int64)
    for i, one in enumerate(batch):
        ids[i, : len(one.ids)] = one.ids
    return ids, np.concatenate([i * longest + one.rows for i, one in enumerate(batch)])
