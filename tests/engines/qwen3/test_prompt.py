"""Prompts share a prefix, tokens are counted, and blocks are renumbered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers, processors

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.prompt import Prompt, window_html
from scrapy_dripper.engines.qwen3.seam import seam
from tests.html_strategies import documents

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


def test_windows_are_numbered_from_one() -> None:
    """Only the number of the block itself changes, and no number in its text or attributes."""
    blocks = [f'<p class="_item_id=&quot;{k}&quot;" _item_id="{k}">the _item_id="{k}" of {k}</p>' for k in range(1, 13)]

    window = window_html(blocks, 9, 11)

    assert window == (
        '<p class="_item_id=&quot;10&quot;" _item_id="1">the _item_id="10" of 10</p>'
        '<p class="_item_id=&quot;11&quot;" _item_id="2">the _item_id="11" of 11</p>'
    )
    assert window_html(blocks, 0, 12) == "".join(blocks)


def test_the_head_of_a_text(tokenizer: Tokenizer) -> None:
    prompt = Prompt(tokenizer, TEMPLATE)
    text = "the morning and the market " * 5

    assert text.startswith(prompt.beginning(text, 7))
    assert prompt.count([prompt.beginning(text, 7)]) == [7]
    assert prompt.beginning(text, 10_000) == text
    assert prompt.count(["", "main"]) == [0, 1]


HEADS = (
    "Read this page.\n\nIt is:",
    "One.\nTwo.\n<body>",
    "a\n\n",
    "no newline ",
    "<|im_start|>user\nRead.\r\n\tIt:\nA",
    "\n<",
)


@pytest.mark.parametrize("head", HEADS)
@given(page=st.one_of(documents(), st.text(max_size=30), st.text("\u0338\u0301\n\r\t <a'|1.é̂", max_size=8)))
def test_property_a_head_that_is_read_once_changes_no_token(tokenizer: Tokenizer, head: str, page: str) -> None:
    """The tokens are those of the whole prompt, whatever a page begins with."""
    template = head + "{html}\n\nLabels:"

    (ids,) = Prompt(tokenizer, template).encode([page])

    assert ids.tolist() == tokenizer.encode(template.replace("{html}", page)).ids


@pytest.mark.parametrize("normalizer", [None, normalizers.NFC()])
def test_the_head_of_real_prompts_is_read_once(tokenizer: Tokenizer, normalizer: normalizers.Normalizer | None) -> None:
    """All but the last line: what is left of it is what the tokens of a page can depend on."""
    found = _copy(tokenizer)
    if normalizer is not None:
        found.normalizer = normalizer
    head = "You label blocks.\n" * 200 + '\nInput HTML:\n<html><head><meta charset="utf-8"></head><body>'

    assert head[seam(found, head) :] == '<html><head><meta charset="utf-8"></head><body>'


@pytest.mark.parametrize(
    "change",
    [
        lambda one: setattr(one, "normalizer", normalizers.NFKC()),
        lambda one: setattr(one, "normalizer", normalizers.Prepend("x")),
        lambda one: setattr(one, "pre_tokenizer", pre_tokenizers.Whitespace()),
        lambda one: setattr(one, "pre_tokenizer", None),
        lambda one: setattr(
            one, "post_processor", processors.TemplateProcessing("<|im_end|> $A", special_tokens=[("<|im_end|>", 2)])
        ),
        lambda one: one.add_tokens(["x\ny"]),
        lambda one: one.add_tokens([AddedToken("<x>", lstrip=True)]),
    ],
)
def test_a_tokenizer_that_does_more_reads_whole_prompts(
    tokenizer: Tokenizer, change: Callable[[Tokenizer], object]
) -> None:
    found = _copy(tokenizer)
    change(found)

    assert seam(found, "One.\nTwo.") == 0
    assert seam(tokenizer, "One.\nTwo.") == 5


def _copy(tokenizer: Tokenizer) -> Tokenizer:
    return Tokenizer.from_str(tokenizer.to_str())
