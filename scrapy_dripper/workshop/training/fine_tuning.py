"""Fine-tune all parameters of a Qwen3 model to label blocks.

The loss only covers the positions at which labels are chosen, which are all that the engine reads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from scrapy_dripper.workshop.export.checkpoint import Recipe
from scrapy_dripper.workshop.training.token_sequences import Encoder, LabelledPage, TokenSequence, batches, collate

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
