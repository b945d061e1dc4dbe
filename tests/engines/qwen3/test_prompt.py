"""Prompts share a prefix, and tokens are counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.prompt import Prompt

TEMPLATE = "Read this page.\n\n{html}\n\nLabels:"


def test_the_prefix_is_what_prompts_share(tokenizer: Tokenizer) -> None:
    prompt = Prompt(tokenizer, TEMPLATE)
    (ids,) = prompt.encode(['<div class="x" _item_id="1">text</div>'])

    assert prompt.shares(ids)
    assert tokenizer.decode(prompt.shared.tolist()).strip() == "Read this page."
    assert "Labels:" in tokenizer.decode(ids.tolist())


@given(text=st.text(max_size=20))
def test_a_page_that_changes_the_last_tokens_of_the_prefix_is_seen(tokenizer: Tokenizer, text: str) -> None:
    """The tokens are always those of the whole prompt. Only the use of the prefix differs."""
    prompt = Prompt(tokenizer, "Read {html}")
    (ids,) = prompt.encode([text])

    assert ids.tolist() == tokenizer.encode("Read " + text).ids
    assert prompt.shares(ids) == (
        0 < len(prompt.shared) < len(ids) and ids[: len(prompt.shared)].tolist() == prompt.shared.tolist()
    )


def test_a_prompt_that_begins_with_the_page_shares_nothing(tokenizer: Tokenizer) -> None:
    prompt = Prompt(tokenizer, "{html}\nmain or other?\n")
    (ids,) = prompt.encode(["<p>text</p>"])

    assert len(prompt.shared) == 0
    assert not prompt.shares(ids)


@pytest.mark.parametrize("template", ["no place", "{html} twice {html}"])
def test_a_template_has_one_place(tokenizer: Tokenizer, template: str) -> None:
    with pytest.raises(ModelError, match=r"\{html\} exactly once"):
        Prompt(tokenizer, template)


def test_the_head_of_a_text(tokenizer: Tokenizer) -> None:
    prompt = Prompt(tokenizer, TEMPLATE)
    text = "the morning and the market " * 5

    assert text.startswith(prompt.beginning(text, 7))
    assert prompt.count([prompt.beginning(text, 7)]) == [7]
    assert prompt.beginning(text, 10_000) == text
    assert prompt.count(["", "main"]) == [0, 1]
