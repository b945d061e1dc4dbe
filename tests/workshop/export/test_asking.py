"""An export detects how a checkpoint answers by letting it generate text. Checkpoints with other answers are
rejected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from scrapy_dripper.engines.qwen3.grammar import FORMATS, Grammar, Ids
from scrapy_dripper.workshop.export import ExportError
from scrapy_dripper.workshop.export.asking import THOUGHT, ask
from scrapy_dripper.workshop.export.validate import probe_pages

TEMPLATE = "Label: {html}\nAnswer: "
CHAT = f"<|im_start|>user\n{TEMPLATE}<|im_end|>\n<|im_start|>assistant\n"
WAYS = {"raw": TEMPLATE, "chat": CHAT, "chat, empty thought": CHAT + THOUGHT}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A tokenizer with the markup tokens of Qwen3."""
    folder = Path(__file__).parents[2] / "engines" / "qwen3" / "prepared"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens(["<think>", "</think>", "\n\n"])
    return tokenizer


class Scripted:
    """A model whose text is a function of its prompt and of the number of blocks."""

    def __init__(self, tokenizer: Tokenizer, say: Callable[[str, int], str | Ids], **likelihoods: float) -> None:
        self.tokenizer, self.say, self.likelihoods = tokenizer, say, likelihoods

    def write(self, prompt: Ids, tokens: int) -> Ids:
        text = self.tokenizer.decode(prompt.tolist(), skip_special_tokens=False)
        said = self.say(text, text.count("_item_id"))
        if isinstance(said, str):
            said = np.array(self.tokenizer.encode(said).ids, dtype=np.int64)
        return said[:tokens]

    def likelihood(self, tokenizer: Tokenizer, template: str, grammar: Grammar, context: int) -> float:
        assert tokenizer is self.tokenizer
        return self.likelihoods.get("thought" if template.endswith(THOUGHT) else "plain", -0.1)


def labels(n: int) -> list[str]:
    """Return some labels for n blocks."""
    return ["main" if k % 3 else "other" for k in range(n)]


@pytest.mark.parametrize("answer", ["json", "json_space", "json_colon", "compact"])
def test_the_format_that_it_writes(tokenizer: Tokenizer, answer: str) -> None:
    """It does not depend on how the model is asked."""
    found = ask(Scripted(tokenizer, lambda _, n: FORMATS[answer].text(labels(n))), tokenizer, WAYS, 4096)

    assert (found.way, found.prompt, found.prefix, found.answer) == ("raw", TEMPLATE, "", answer)


def test_tokens_matter_and_not_only_text(tokenizer: Tokenizer) -> None:
    """The tokens of state machines differ from those that a tokenizer gives for the same text."""
    answer = Grammar(tokenizer, "mineru_v1").answer(12).ids
    found = ask(Scripted(tokenizer, lambda _, n: answer), tokenizer, WAYS, 4096)

    assert found.answer == "mineru_v1"


def test_chat_and_an_empty_thought_of_its_own(tokenizer: Tokenizer) -> None:
    """Constant text before the answers becomes the end of the prompt."""

    def say(prompt: str, n: int) -> str:
        if not prompt.endswith("assistant\n"):
            return "The page is about tides."
        return THOUGHT + FORMATS["json"].text(labels(n))

    found = ask(Scripted(tokenizer, say), tokenizer, WAYS, 4096)

    assert (found.way, found.prompt, found.prefix, found.answer) == ("chat", CHAT + THOUGHT, THOUGHT, "json")


def test_the_likeliest_of_the_ways_that_work(tokenizer: Tokenizer) -> None:
    """A fine-tuned model answers in several formats, but was trained with one."""
    model = Scripted(tokenizer, lambda _, n: FORMATS["json"].text(labels(n)), plain=-0.5, thought=-0.05)

    assert ask(model, tokenizer, WAYS, 4096).way == "chat, empty thought"


def test_a_model_that_writes_something_else(tokenizer: Tokenizer) -> None:
    """The message shows the text for each kind of prompt, and gives advice."""
    said = {True: "A harbour page.", False: "<think>\nOkay, the user wants"}
    model = Scripted(tokenizer, lambda prompt, _: said[prompt.startswith("Label")])

    with pytest.raises(ExportError) as error:
        ask(model, tokenizer, WAYS, 4096)
    message = str(error.value)
    assert "asked raw: 'A harbour page.'; asked chat: '<think>" in message
    assert "(--prompt)" in message
    assert "(--answer)" in message


@pytest.mark.parametrize("kind", ["only two labels", "another prefix each time", "not what it finds likely"])
def test_invalid_answers(tokenizer: Tokenizer, kind: str) -> None:
    """A beginning that occurs by chance, or that cannot be part of a prompt, is not a format."""

    def say(_: str, n: int) -> str:
        text = FORMATS["json"].text(labels(n))
        if kind == "only two labels":
            return text[: text.index('"3"')]
        return f"{n} blocks: {text}" if kind == "another prefix each time" else text

    model = Scripted(tokenizer, say, plain=-3.0, thought=-3.0) if kind.startswith("not") else Scripted(tokenizer, say)

    with pytest.raises(ExportError, match="does not answer in any format"):
        ask(model, tokenizer, WAYS, 4096)


def test_pages_with_enough_blocks_are_shown() -> None:
    """The pages have different numbers of blocks, so that no text fits all of them."""
    assert sorted({len(page) for page in probe_pages()} - {1, 2}) == [4, 12]
