"""Fine-tune all parameters of a Qwen3 model to label blocks, with the Trainer of transformers.

The loss only covers the positions at which labels are chosen, which are all that the engine reads.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import (
    HfArgumentParser,
    PreTrainedTokenizerFast,
    Qwen3ForCausalLM,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_utils import get_last_checkpoint

from scrapy_dripper_lab.export.checkpoint import Recipe
from scrapy_dripper_lab.sets import DataError
from scrapy_dripper_lab.training.token_sequences import TokenSequence

TOKENIZER = "tokenizer.json"
SAVE_SECONDS = 600.0

SETTINGS: dict[str, Any] = {
    "num_train_epochs": 4,
    "gradient_accumulation_steps": 128,  # pages of a step, as each page is a batch of its own
    "learning_rate": 1e-4,
    "lr_scheduler_type": "cosine",
    "warmup_steps": 0.1,
    "bf16": True,
    # Not in the paper. Without it, the activations of a page of 32,000 tokens take over 80 GB, by arithmetic.
    "activation_checkpointing": True,
    "logging_steps": 1,
    "report_to": "none",
    "save_strategy": "no",  # SaveByTime saves
    "save_total_limit": 1,
}
"""Values of transformers' TrainingArguments: those of the Dripper paper (A.11, table 11), as far as it gives them."""


def arguments_of(given: Mapping[str, str], folder: Path) -> TrainingArguments:
    """Return the arguments of a training. ``given`` are values in place of :data:`SETTINGS`, by name, as text.

    Raise :exc:`DataError` for an unknown name or an invalid value.
    """
    parser = HfArgumentParser(TrainingArguments, exit_on_error=False, allow_abbrev=False)
    fixed = {"per_device_train_batch_size": 1, "remove_unused_columns": False, "output_dir": str(folder)}
    parser.set_defaults(**SETTINGS, **fixed, use_cpu=not torch.cuda.is_available())
    try:
        (arguments,) = parser.parse_args_into_dataclasses([f"--{name}={value}" for name, value in given.items()])
    except (Exception, SystemExit) as error:  # argparse, and checks of transformers
        raise DataError(f"--set: {error}; see TrainingArguments of transformers") from None
    return arguments


def load_model(folder: Path) -> Qwen3ForCausalLM:
    """Return the model of a checkpoint, in single precision."""
    return Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True, use_safetensors=True)


def save_model(model: Qwen3ForCausalLM, tokenizer: Tokenizer, recipe: Recipe, folder: Path) -> None:
    """Write a checkpoint that ``scrapy-dripper export`` accepts."""
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    tokenizer.save(str(folder / TOKENIZER))
    recipe.write(folder)


class LabelTrainer(Trainer):
    """transformers' Trainer, with the loss of labels."""

    def __init__(
        self, model: Qwen3ForCausalLM, arguments: TrainingArguments, pages: Sequence[TokenSequence], labels: list[int]
    ) -> None:
        """``labels`` are the token ids of main and other."""
        super().__init__(model, arguments, data_collator=_tensors, train_dataset=pages, callbacks=[SaveByTime()])
        self._choices = labels

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """Return the weighted cross-entropy between main and other, as a share of the blocks of a whole step."""
        # The full head is only computed at the choices.
        found = model(input_ids=inputs["input_ids"], logits_to_keep=inputs["rows"], use_cache=False)
        logits = found.logits[0][:, self._choices].float()
        losses = torch.nn.functional.cross_entropy(logits, inputs["labels"], reduction="none") * inputs["weights"]
        loss = losses.sum() / (len(losses) if num_items_in_batch is None else num_items_in_batch)
        return (loss, found) if return_outputs else loss

    def resume(self) -> int:
        """Train to the end, from the last saved state if there is one. Return the number of steps."""
        folder = Path(self.args.output_dir)
        last = get_last_checkpoint(str(folder)) if folder.is_dir() else None
        return int(self.train(resume_from_checkpoint=last).global_step)


class SaveByTime(TrainerCallback):
    """Saves every :data:`SAVE_SECONDS`, because a step can take seconds or minutes."""

    def __init__(self) -> None:
        self._saved = time.monotonic()

    def on_step_end(self, _args: TrainingArguments, _state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Ask for a checkpoint."""
        if time.monotonic() - self._saved > SAVE_SECONDS:
            control.should_save, self._saved = True, time.monotonic()


def _tensors(batch: Sequence[TokenSequence]) -> dict[str, Tensor]:
    """Return the inputs of one page: ids [1, S], and rows, labels (0 is main) and weights [N]."""
    (page,) = batch
    columns = {"input_ids": page.ids[None], "rows": page.rows, "weights": page.weights}
    columns["labels"] = (~page.main).astype(np.int64)
    return {name: torch.from_numpy(column) for name, column in columns.items()}
