"""Find out how a checkpoint answers: the markup of its prompt, and the answer format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from reprlib import Repr
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer

from scrapy_dripper.cli.console import UsageError, say
from scrapy_dripper.engines.qwen3.grammar import fitting
from scrapy_dripper.engines.qwen3.profile import HTML
from scrapy_dripper_lab.export.validate import probe_pages

if TYPE_CHECKING:
    from scrapy_dripper_lab.export.reference import Reference

SHOWN = 16
"""Number of tokens that a model writes for the error that says how it does not answer."""
LEAST_LIKELIHOOD = -1.0
"""Minimum log-likelihood of an answer, per block, at which a model counts as trained for its format. It corresponds to
a probability of about a third for the five or six tokens of a block. Models that were trained for a format give it more
than that, and give any other format less.
"""
THOUGHT = "<think>\n\n</think>\n\n"
"""An empty thought. Qwen3 begins with it if thinking is off, and LLaMA-Factory puts it before training answers."""

_shown = Repr()
_shown.maxstring = 120


@dataclass(frozen=True, slots=True)
class Manner:
    """A kind of prompt, and how the model answers it."""

    way: str
    """``raw``, ``chat`` or ``chat, empty thought``."""
    prompt: str
    """The template, with the markup around it."""
    answer: str
    """Name of the answer format."""
    likelihood: float
    """Log-likelihood per block of answers in this format."""


def ask(model: Reference, tokenizer: Tokenizer, ways: dict[str, str], context: int) -> Manner:
    """Return the manner of a model: the way and the answer format with the highest likelihood.

    ``ways`` are templates by name. Raise :exc:`UsageError`, with the model's text, if none is likely enough.
    """
    grammars = fitting(tokenizer)
    if not grammars:
        raise UsageError("the tokenizer has no single tokens for main and other: this model cannot be constrained")
    manners = []
    for way, template in ways.items():
        likelihoods = model.likelihoods(tokenizer, template, grammars, context)
        answer = max(likelihoods, key=likelihoods.__getitem__)
        manners.append(Manner(way, template, answer, likelihoods[answer]))
        say(f"asked {way}, its likeliest format is {answer} ({likelihoods[answer]:.2f} a block)")
    best = max(manners, key=lambda manner: manner.likelihood)
    if best.likelihood < LEAST_LIKELIHOOD:
        wrote = []
        for way, template in ways.items():
            asked = np.array(tokenizer.encode(template.replace(HTML, "".join(probe_pages()[-1]))).ids, dtype=np.int64)
            text = tokenizer.decode(model.write(asked, SHOWN).tolist(), skip_special_tokens=False)
            wrote.append(f"{way}: {_shown.repr(text)}")
        raise UsageError(
            f"the model does not answer in any format that is known. It wrote, asked {'; asked '.join(wrote)}. Name "
            "the prompt that it was trained with (--prompt), or say in which format it answers (--answer)"
        )
    return best


def ways(folder: Path, template: str) -> dict[str, str]:
    """Return the templates to try: the template itself and, if the checkpoint has a chat template, inside that."""
    found = {"raw": template}
    if "<|im_start|>" in template:  # the template already has the chat markup
        return found
    chat = _chat(folder, template)
    if chat is not None and chat.count(HTML) == 1:
        found["chat"] = chat
        found["chat, empty thought"] = chat if chat.endswith(THOUGHT) else chat + THOUGHT
    return found


def _chat(folder: Path, template: str) -> str | None:
    """Return a template as a user's message in the chat template of a checkpoint, or None if there is none."""
    if not any((folder / name).is_file() for name in ("tokenizer_config.json", "chat_template.jinja")):
        return None
    from transformers import PreTrainedTokenizerFast

    try:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
        if not tokenizer.chat_template:
            return None
        message = [{"role": "user", "content": template}]
        return str(tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True))
    except Exception as error:  # the checkpoint's template can raise anything
        raise UsageError(f"the chat template of {folder} cannot be used ({error}): remove it from there") from None
