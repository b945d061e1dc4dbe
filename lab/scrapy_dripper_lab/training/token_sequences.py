"""Convert annotated pages to token sequences, with the positions at which labels are chosen. This needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids, Prompt
from scrapy_dripper.engines.qwen3.profile import PROFILES, simplify
from scrapy_dripper.learning import block_weights
from scrapy_dripper.page import PageError
from scrapy_dripper_lab.alignment import align, tokens
from scrapy_dripper_lab.sets import AnnotatedPage, DataError
from scrapy_dripper_lab.training.prepare import in_processes

MAX_BLOCKS = 10_000
"""Later blocks of a page are left out, like in a crawl by default."""


@dataclass(frozen=True, slots=True)
class LabelledPage:
    """The n blocks of one page, ready for any tokenizer."""

    blocks: list[str]
    """Simplified HTML, with ``_item_id`` 1 to n."""
    main: list[bool]
    weights: list[float]
    """Weight of each block in the loss, 1 on average."""


def labelled_page(sample: AnnotatedPage, profile: str, truncate_chars: int | None) -> LabelledPage | None:
    """Return the blocks of a sample and their labels, or None for a page without main content.

    Such pages are not trained on, as in the Dripper paper (section 4.1): a model learns from them to answer other.
    """
    rules = PROFILES[profile]
    try:
        page = rules.cut(rules.parse(sample.read_html()), sample.url)
    except PageError:
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
    pages = [page for page in in_processes(work, samples, jobs, "blocks") if page is not None]
    if not pages:
        raise DataError("no page has main content")
    if left := len(samples) - len(pages):
        print(f"{left} pages without main content are left out")
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
        self.grammar, self._prompt = Grammar(tokenizer, answer), Prompt(tokenizer, template)

    def encode(self, page: LabelledPage, longest: int) -> TokenSequence | None:
        """Return the sequence of a whole page, or None if it has more than ``longest`` tokens."""
        (prompt,) = self._prompt.encode(["".join(page.blocks)])
        answer, main = self.grammar.answer(len(page.blocks)), np.array(page.main, dtype=np.bool_)
        if len(prompt) + len(answer.ids) - 1 > longest:
            return None
        ids = answer.ids.copy()
        ids[answer.places] = np.where(main, self.grammar.main, self.grammar.other)
        return TokenSequence(
            ids=np.concatenate([prompt, ids[:-1]]),
            rows=len(prompt) + answer.places - 1,
            main=main,
            weights=np.array(page.weights, dtype=np.float32),
        )
