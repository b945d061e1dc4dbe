"""Fine-tune all parameters of a model. The loss only covers the choices, which are all that the engine reads."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm
from transformers import Qwen3ForCausalLM

from scrapy_dripper.workshop.training.qwen3.model import choice_logits
from scrapy_dripper.workshop.training.qwen3.pages import LabelledPage
from scrapy_dripper.workshop.training.qwen3.sequences import Encoder, TokenSequence, batches

STATE = "training.pt"


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
    decay: float = 0.0
    clip: float = 1.0
    """Maximum norm of the gradient."""
    half: bool = True
    """True to compute in bfloat16. The weights stay in single precision."""
    shortest: int | None = None
    """Maximum sequence length at the beginning, which increases to ``longest`` in the first half of the training. None
    for ``longest`` from the start."""
    tokens: int = 32_000
    """Maximum number of padded tokens in one pass through the model, which depends on the memory."""
    ends: float = 0.0
    """Weight of a second loss at each block's last token in the prompt, with the same labels. A model that is trained
    from scratch thus learns to classify a block before it can find the block again by its number."""
    noise: float = 0.0
    """Share of the labels before a choice that are replaced by random ones."""
    minutes: float | None = None
    """Duration of the training in minutes, in place of ``epochs``. The learning rate then follows the clock."""
    save_minutes: float = 10.0
    seed: int = 0


@dataclass
class Progress:
    """The progress of a training, which is saved with the model and the optimiser."""

    step: int = 0
    seconds: float = 0.0
    pages: int = 0
    loss: float = math.nan
    """Mean over about the last 20 steps."""


SMALL = Settings(
    epochs=16, batch=8, longest=1024, shortest=256, rate=3e-3, warmup=0.05, decay=0.01, tokens=8192, ends=0.5, noise=0.5
)
"""The settings for a small model that is trained from scratch. Short sequences come first, because in these it learns
to find blocks by their numbers."""


class Trainer:
    """Trains a model. After an interruption, a new trainer in the same folder resumes from the last saved state."""

    def __init__(
        self, model: Qwen3ForCausalLM, encoder: Encoder, pages: Sequence[LabelledPage], settings: Settings, folder: Path
    ) -> None:
        self.model, self.encoder, self.pages, self.settings, self.folder = model, encoder, pages, settings, folder
        self.labels = (encoder.grammar.main, encoder.grammar.other)
        self.optimizer = torch.optim.AdamW(_groups(model, settings.decay), lr=settings.rate, betas=(0.9, 0.999))
        self.steps = max(1, math.ceil(settings.epochs * len(pages) / settings.batch))
        self.progress = Progress()
        self._epoch, self._order = -1, np.arange(len(pages))
        self._resume()

    def train(self) -> None:
        """Train to the end, with a progress bar. Save from time to time, and at the end."""
        settings, progress = self.settings, self.progress
        self.model.train()
        begun = time.monotonic() - progress.seconds
        saved = time.monotonic()
        total = None if settings.minutes else self.steps
        bar = tqdm(total=total, initial=progress.step, desc="training", unit="step", smoothing=0.05)
        while (done := self._done()) < 1:
            rate = self._rate(done)
            loss = self._step(rate)
            progress.loss = loss if math.isnan(progress.loss) else 0.95 * progress.loss + 0.05 * loss
            progress.step += 1
            progress.seconds = time.monotonic() - begun
            bar.update()
            bar.set_postfix_str(f"loss {progress.loss:.4f}, rate {rate:.1e}, {done:.0%} done")
            if time.monotonic() - saved > 60 * settings.save_minutes:
                self.save()
                saved = time.monotonic()
        bar.close()
        self.save()

    def save(self) -> None:
        """Write the state that is needed to resume."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / (STATE + ".part")
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "progress": vars(self.progress),
            },
            part,
        )
        part.replace(self.folder / STATE)

    def _resume(self) -> None:
        path = self.folder / STATE
        if path.is_file():
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.progress = Progress(**state["progress"])

    def _done(self) -> float:
        if self.settings.minutes:
            return self.progress.seconds / (60 * self.settings.minutes)
        return self.progress.step / self.steps

    def _rate(self, done: float) -> float:
        warmup = self.settings.warmup
        if done < warmup:
            return self.settings.rate * (done + 1e-3) / warmup
        return self.settings.rate * 0.5 * (1 + math.cos(math.pi * (done - warmup) / (1 - warmup)))

    def _step(self, rate: float) -> float:
        """Make one step and return the loss before it."""
        settings = self.settings
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        sequences = list(self._sequences())
        weight = float(sum(one.weights.sum() for one in sequences)) or 1.0
        total = 0.0
        device = self.model.device.type
        for batch in batches(sequences, settings.tokens):
            with torch.autocast(device, torch.bfloat16, enabled=settings.half):
                chosen, at_ends = choice_logits(self.model, batch, self.labels, ends=settings.ends > 0)
            loss = _loss(chosen, batch) / weight
            total += float(loss.detach())
            if at_ends is not None:
                loss = loss + settings.ends * _loss(at_ends, batch) / weight
            torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def _sequences(self) -> Iterator[TokenSequence]:
        """Yield the sequences of the next step, which only depend on the seed and the step."""
        settings, n = self.settings, len(self.pages)
        rng = np.random.default_rng([settings.seed, self.progress.step])
        begin = settings.shortest or settings.longest
        longest = round(begin + (settings.longest - begin) * min(1.0, 2 * self._done()))
        for _ in range(min(settings.batch, n)):
            epoch, at = divmod(self.progress.pages, n)
            if epoch != self._epoch:
                self._epoch = epoch
                self._order = np.random.default_rng([settings.seed, 1 << 32, epoch]).permutation(n)
            sequence = self.encoder.sample(self.pages[int(self._order[at])], longest, rng)
            self.progress.pages += 1
            if sequence is not None:
                yield self.encoder.with_noise(sequence, settings.noise, rng) if settings.noise else sequence


def _loss(logits: Tensor, batch: Sequence[TokenSequence]) -> Tensor:
    """Return the sum over the blocks of a batch of weight times cross-entropy between main and other."""
    other = torch.from_numpy(np.concatenate([~one.main for one in batch]).astype(np.int64)).to(logits.device)
    weights = torch.from_numpy(np.concatenate([one.weights for one in batch])).to(logits.device)
    return (torch.nn.functional.cross_entropy(logits.float(), other, reduction="none") * weights).sum()


def _groups(model: Qwen3ForCausalLM, decay: float) -> list[dict[str, Any]]:
    """Return the parameters, without weight decay for norms."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
