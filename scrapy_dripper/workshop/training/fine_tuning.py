"""Fine-tune a Qwen3 model to label blocks: convert annotated pages to token sequences, and train all parameters.

The loss only covers the positions at which labels are chosen, which are all that the engine reads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from scrapy_dripper.engines.qwen3.grammar import HTML, Grammar
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.engines.qwen3.simplify import simplify
from scrapy_dripper.page import PageError
from scrapy_dripper.workshop.dataset.alignment import align, tokens
from scrapy_dripper.workshop.dataset.sets import DataError, Sample
from scrapy_dripper.workshop.export.checkpoint import Recipe

BLOCK_WEIGHT = 0.5
"""Weight of every block in addition to its words, so that short blocks and pages without main content count as well."""
MAX_BLOCKS = 10_000
"""Later blocks of a page are left out, like in a crawl by default."""
HEAVIEST = 2.0
"""Maximum weight of a block for its words, in units of its page's main content."""

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LabelledPage:
    """The n blocks of one page, ready for any tokenizer."""

    blocks: list[str]
    """Simplified HTML, with ``_item_id`` 1 to n."""
    main: list[bool]
    weights: list[float]
    """Weight of each block in the loss, 1 on average."""


def labelled_page(sample: Sample, profile: str, truncate_chars: int | None) -> LabelledPage | None:
    """Return the blocks of a sample and their labels, or None for a page without blocks."""
    rules = PROFILES[profile]
    try:
        page = rules.cut(rules.parse(sample.read_html()), sample.url)
    except PageError:
        return None
    if not len(page.blocks):
        return None
    page = page.first_blocks(MAX_BLOCKS)
    alignment = align(page.blocks.text, sample.truth)
    sizes = alignment.words
    true_words, each = max(30, len(tokens(sample.truth))), BLOCK_WEIGHT / max(20, len(sizes))
    weights = [min(HEAVIEST, size / true_words) + each for size in sizes]
    weights = [weight * trust * sample.sure for weight, trust in zip(weights, alignment.weight.tolist(), strict=True)]
    mean = sum(weights) / len(weights) or 1.0
    return LabelledPage(simplify(page, truncate_chars), alignment.main.tolist(), [weight / mean for weight in weights])


def labelled_pages(
    samples: Sequence[Sample], profile: str, truncate_chars: int | None, jobs: int
) -> list[LabelledPage]:
    """Return the labelled pages of samples, using ``jobs`` processes. Raise :exc:`DataError` if there are none."""
    work = partial(labelled_page, profile=profile, truncate_chars=truncate_chars)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        found: Iterable[LabelledPage | None] = pool.map(work, samples, chunksize=8)
        pages = [page for page in tqdm(found, total=len(samples), desc="blocks", unit="page") if page is not None]
    if not pages:
        raise DataError("no page has visible text")
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


STATE = "training.pt"
TOKENIZER = "tokenizer.json"
SAVE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a training. The defaults are those of the Dripper paper (A.11, table 11), as far as it gives
    them."""

    epochs: float = 4.0
    batch: int = 128
    """Number of pages in a step of the optimiser."""
    longest: int = 32_000
    """Maximum number of tokens of a sequence. A longer page is represented by a window at a random place."""
    rate: float = 1e-4
    """Peak of the learning rate, which then decreases as a cosine."""
    warmup: float = 0.1
    """Share of the training in which the learning rate increases."""
    clip: float = 1.0
    """Maximum norm of the gradient."""
    half: bool = True
    """True to compute in bfloat16. The weights stay in single precision."""
    tokens: int = 32_000
    """Maximum number of padded tokens in one pass through the model, which depends on the memory."""
    seed: int = 0


def load_model(folder: Path) -> Qwen3ForCausalLM:
    """Return the model of a checkpoint, in single precision."""
    return Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)


def save_model(model: Qwen3ForCausalLM, tokenizer: Tokenizer, recipe: Recipe, folder: Path) -> None:
    """Write a checkpoint that ``scrapy-dripper export`` accepts."""
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    tokenizer.save(str(folder / TOKENIZER))
    recipe.write(folder)


class Trainer:
    """Trains a model. After an interruption, a new trainer in the same folder resumes from the last saved state.

    It is not the Trainer of transformers, whose loss needs the full output layer, and which needs accelerate.
    """

    def __init__(
        self, model: Qwen3ForCausalLM, encoder: Encoder, pages: Sequence[LabelledPage], settings: Settings, folder: Path
    ) -> None:
        self.model, self.encoder, self.pages, self.settings, self.folder = model, encoder, pages, settings, folder
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=settings.rate, weight_decay=0.0)
        self.steps = max(1, math.ceil(settings.epochs * len(pages) / settings.batch))
        self.step = 0
        self.loss = math.nan
        """The mean over about the last 20 steps."""
        if (path := folder / STATE).is_file():
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.loss = state["step"], state["loss"]

    def train(self) -> None:
        """Train to the end, with a progress bar. Save from time to time, and at the end."""
        self.model.train()
        saved = time.monotonic()
        bar = tqdm(total=self.steps, initial=self.step, desc="training", unit="step", smoothing=0.05)
        while self.step < self.steps:
            rate = self._rate(self.step / self.steps)
            loss = self.make_step(rate)
            self.loss = loss if math.isnan(self.loss) else 0.95 * self.loss + 0.05 * loss
            self.step += 1
            bar.update()
            bar.set_postfix_str(f"loss {self.loss:.4f}, rate {rate:.1e}")
            if time.monotonic() - saved > SAVE_SECONDS:
                self.save()
                saved = time.monotonic()
        bar.close()
        self.save()

    def save(self) -> None:
        """Write the state that is needed to resume."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / (STATE + ".part")
        states = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save({**states, "step": self.step, "loss": self.loss}, part)
        part.replace(self.folder / STATE)

    def make_step(self, rate: float) -> float:
        """Make one step and return the loss before it."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        sequences = list(self._sequences())
        weight = float(sum(one.weights.sum() for one in sequences)) or 1.0
        total = 0.0
        for batch in batches(sequences, self.settings.tokens):
            with torch.autocast(self.model.device.type, torch.bfloat16, enabled=self.settings.half):
                logits = self._choices(batch)
            loss = _loss(logits, batch) / weight
            total += float(loss.detach())
            torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def _rate(self, done: float) -> float:
        warmup = self.settings.warmup
        if done < warmup:
            return self.settings.rate * (done + 1e-3) / warmup
        return self.settings.rate * 0.5 * (1 + math.cos(math.pi * (done - warmup) / (1 - warmup)))

    def _choices(self, batch: list[TokenSequence]) -> Tensor:
        """Return the logits [N, 2] of main and other at the choices of a batch. The full head is never computed."""
        ids, rows = (torch.from_numpy(column).to(self.model.device) for column in collate(batch))
        hidden = self.model.model(input_ids=ids, use_cache=False).last_hidden_state.flatten(0, 1)
        grammar = self.encoder.grammar
        return hidden[rows] @ self.model.lm_head.weight[[grammar.main, grammar.other]].T

    def _sequences(self) -> Iterator[TokenSequence]:
        """Yield the sequences of the next step, which only depend on the seed and the step."""
        settings, n = self.settings, len(self.pages)
        rng = np.random.default_rng([settings.seed, self.step])
        size = min(settings.batch, n)
        for read in range(self.step * size, (self.step + 1) * size):
            epoch, at = divmod(read, n)
            order = np.random.default_rng([settings.seed, 1 << 32, epoch]).permutation(n)
            sequence = self.encoder.sample(self.pages[int(order[at])], settings.longest, rng)
            if sequence is not None:
                yield sequence


def _loss(logits: Tensor, batch: Sequence[TokenSequence]) -> Tensor:
    """Return the sum over the blocks of a batch of weight times cross-entropy between main and other."""
    other = torch.from_numpy(np.concatenate([~one.main for one in batch]).astype(np.int64)).to(logits.device)
    weights = torch.from_numpy(np.concatenate([one.weights for one in batch])).to(logits.device)
    return (torch.nn.functional.cross_entropy(logits.float(), other, reduction="none") * weights).sum()
