"""Find out how a checkpoint answers: the markup of its prompt, the text before its answer, and the answer format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import Repr
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer

from scrapy_dripper.engines.qwen3.grammar import HTML, Grammar, Ids, fitting
from scrapy_dripper.workshop.export import ExportError
from scrapy_dripper.workshop.export.validate import probe_pages

if TYPE_CHECKING:
    from scrapy_dripper.workshop.export.reference import Reference

FREE = 64
"""Number of tokens that the model generates freely."""
LONGEST_PREFIX = 24
"""Maximum number of tokens before the answer. An empty thought has four in Qwen3's vocabulary."""
ENOUGH = 3
"""Number of labels of a page that must be in the format; all labels of a shorter page."""
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
    """The template, with the markup around it and the prefix after it."""
    prefix: str
    """The text that the model generates before its answer."""
    answer: str
    """Name of the answer format."""
    likelihood: float
    """Log-likelihood per block of answers in this format."""

    def __str__(self) -> str:
        before = f" behind {self.prefix!r}" if self.prefix else ""
        return f"asked {self.way}, it answers in the format {self.answer}{before} ({self.likelihood:.2f} a block)"


def ask(model: Reference, tokenizer: Tokenizer, ways: dict[str, str], context: int) -> Manner:
    """Return the manner of a model: among those with a known answer format, the one with the highest likelihood.

    ``ways`` are templates by name. Raise :exc:`ExportError`, with the model's text, if no answer has a known format.
    """
    grammars = fitting(tokenizer)
    if not grammars:
        raise ExportError("the tokenizer has no single tokens for main and other: this model cannot be constrained")
    found, wrote = [], []
    for way, template in ways.items():
        pages = [page for page in probe_pages() if len(page) >= ENOUGH]
        prompts = [_encode(tokenizer, template.replace(HTML, "".join(page))) for page in pages]
        if max(map(len, prompts)) + FREE > context:
            raise ExportError(f"the prompt has no room in the model's context of {context:,} tokens")
        texts = [model.write(prompt, FREE) for prompt in prompts]
        wrote.append(f"{way}: {_shown.repr(tokenizer.decode(texts[0].tolist(), skip_special_tokens=False))}")
        read = {_read(text, len(page), grammars) for text, page in zip(texts, pages, strict=True)}
        if len(read) != 1 or (one := read.pop()) is None:
            continue
        prefix, answer = tokenizer.decode(list(one[0]), skip_special_tokens=False), one[1]
        if _encode(tokenizer, template.replace(HTML, "".join(pages[0])) + prefix).tolist() == [
            *prompts[0].tolist(),
            *one[0],
        ]:
            likelihood = model.likelihood(tokenizer, template + prefix, grammars[answer], context)
            found.append(Manner(way, template + prefix, prefix, answer, likelihood))
    best = max(found, key=lambda manner: manner.likelihood, default=None)
    if best is None or best.likelihood < LEAST_LIKELIHOOD:
        raise ExportError(
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
        raise ExportError(f"the chat template of {folder} cannot be used ({error}): remove it from there") from None


def _encode(tokenizer: Tokenizer, text: str) -> Ids:
    return np.array(tokenizer.encode(text).ids, dtype=np.int64)


def _read(text: Ids, n: int, grammars: dict[str, Grammar]) -> tuple[tuple[int, ...], str] | None:
    """Return the tokens before an answer for n blocks, and its format; None if the text has no answer."""
    for start in range(min(LONGEST_PREFIX, len(text)) + 1):
        for name, grammar in grammars.items():
            if _follows(text[start:], n, grammar):
                return tuple(text[:start].tolist()), name
    return None


def _follows(text: Ids, n: int, grammar: Grammar) -> bool:
    """Return True if a text is the beginning of an answer for n blocks, with enough labels."""
    answer = grammar.answer(n)
    size = min(len(answer.ids), len(text))
    places: Sequence[int] = answer.places[answer.places < size].tolist()
    expected = answer.ids[:size].copy()
    expected[places] = np.where(text[places] == grammar.other, grammar.other, grammar.main)
    return len(places) >= min(n, ENOUGH) and np.array_equal(text[:size], expected)
