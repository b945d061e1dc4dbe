"""An export finds out how a checkpoint answers from how likely it finds answers. Checkpoints with other answers are
rejected."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids
from scrapy_dripper_lab.export.asking import THOUGHT, ask

TEMPLATE = "Label: {html}\nAnswer: "
CHAT = f"<|im_start|>user\n{TEMPLATE}<|im_end|>\n<|im_start|>assistant\n"
WAYS = {"raw": TEMPLATE, "chat": CHAT, "chat, empty thought": CHAT + THOUGHT}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A tokenizer with the markup tokens of Qwen3."""
    folder = Path(__file__).parents[3] / "tests" / "engines" / "qwen3" / "prepared"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens(["<think>", "</think>", "\n\n"])
    return tokenizer


class Rated:
    """A model that finds one answer format likely, asked in one way."""

    def __init__(self, template: str = TEMPLATE, answer: str = "json", likelihood: float = -0.1) -> None:
        self.template, self.answer, self.likelihood = template, answer, likelihood

    def likelihoods(
        self, tokenizer: Tokenizer, template: str, grammars: Mapping[str, Grammar], context: int
    ) -> dict[str, float]:
        return {
            name: self.likelihood if (template, name) == (self.template, self.answer) else -5.0 for name in grammars
        }

    def write(self, prompt: Ids, tokens: int) -> Ids:
        return np.resize(prompt, tokens)


@pytest.mark.parametrize("answer", ["json", "json_space", "json_colon", "mineru_v1", "mineru_v2", "compact"])
@pytest.mark.parametrize("way", WAYS)
def test_the_likeliest_way_and_format(
    tokenizer: Tokenizer, way: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every way is reported while the export goes on."""
    found = ask(Rated(WAYS[way], answer), tokenizer, WAYS, 4096)

    assert (found.way, found.prompt, found.answer, found.likelihood) == (way, WAYS[way], answer, -0.1)
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(", its ")[0] for line in said] == [f"scrapy-dripper: asked {name}" for name in WAYS]


def test_a_model_that_writes_something_else(tokenizer: Tokenizer) -> None:
    """The message shows its text for each kind of prompt, and gives advice."""
    with pytest.raises(UsageError) as error:
        ask(Rated(likelihood=-3.0), tokenizer, WAYS, 4096)
    message = str(error.value)
    assert "asked raw: 'Label: " in message
    assert "; asked chat: '<|im_start|>user" in message
    assert "(--prompt)" in message
    assert "(--answer)" in message
