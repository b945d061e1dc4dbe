"""The model: an existing checkpoint, or a small model of the same architecture with random weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from scrapy_dripper.workshop.export.recipe import Recipe
from scrapy_dripper.workshop.training.qwen3.sequences import TokenSequence, collate
from scrapy_dripper.workshop.training.qwen3.tokenizer import END, PAD

CONFIG, TOKENIZER = "config.json", "tokenizer.json"


@dataclass(frozen=True, slots=True)
class Size:
    """Dimensions of a small model. The defaults have 3.4 million parameters with 4,096 tokens."""

    hidden: int = 192
    layers: int = 6
    heads: int = 3
    kv_heads: int = 1
    head_dim: int = 64
    """A multiple of 16, as onnxruntime's GroupQueryAttention requires."""
    inner: int = 576
    context: int = 4096


def new_model(tokenizer: Tokenizer, size: Size, seed: int, spread: float = 0.02) -> Qwen3ForCausalLM:
    """Return a model with random weights of the given standard deviation."""
    torch.manual_seed(seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=tokenizer.get_vocab_size(),
            hidden_size=size.hidden,
            intermediate_size=size.inner,
            num_hidden_layers=size.layers,
            num_attention_heads=size.heads,
            num_key_value_heads=size.kv_heads,
            head_dim=size.head_dim,
            max_position_embeddings=size.context,
            tie_word_embeddings=True,
            initializer_range=spread,
            pad_token_id=tokenizer.token_to_id(PAD),
            bos_token_id=None,
            eos_token_id=tokenizer.token_to_id(END),
        )
    )


def load_model(folder: Path) -> Qwen3ForCausalLM:
    """Return the model of a checkpoint, in single precision."""
    return Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)


def save_model(model: Qwen3ForCausalLM, tokenizer: Tokenizer, recipe: Recipe, folder: Path) -> None:
    """Write a checkpoint that ``scrapy-dripper export`` accepts."""
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    tokenizer.save(str(folder / TOKENIZER))
    recipe.write(folder)


def choice_logits(
    model: Qwen3ForCausalLM, batch: list[TokenSequence], labels: tuple[int, int], *, ends: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the logits [N, 2] of main and other at the choices of a batch and, with ``ends``, at the ends of blocks.

    ``labels`` are the token ids of main and other. The full head is never computed.
    """
    ids, rows, last = collate(batch)
    device = model.device
    hidden = model.model(input_ids=torch.from_numpy(ids).to(device), use_cache=False).last_hidden_state.flatten(0, 1)
    head = model.lm_head.weight[list(labels)]
    chosen = hidden[torch.from_numpy(rows).to(device)] @ head.T
    return chosen, hidden[torch.from_numpy(last).to(device)] @ head.T if ends else None


@torch.no_grad()
def decode(model: Qwen3ForCausalLM, sequence: TokenSequence, labels: tuple[int, int]) -> np.ndarray:
    """Return p(main) of each block under constrained greedy decoding. The labels in ``sequence`` are the first draft.

    All choices are read in one pass. The first one that differs from the draft is corrected, and the choices after it
    become the new draft, until nothing changes.
    """
    guess = torch.from_numpy(sequence.main.copy())
    ids = sequence.ids.copy()
    places = sequence.rows[:-1] + 1  # the last label is not part of the ids
    while True:
        ids[places] = np.where(guess[:-1].numpy(), *labels)
        one = TokenSequence(ids, sequence.rows, sequence.ends, sequence.main, sequence.weights)
        logits = choice_logits(model, [one], labels)[0].float().cpu()
        chosen = logits[:, 0] > logits[:, 1]
        if bool((chosen == guess).all()):
            return logits.softmax(1)[:, 0].numpy()
        guess = chosen
