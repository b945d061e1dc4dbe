"""Pages that are too long for the model are divided."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from scrapy_dripper.engines.base import OversizeError
from scrapy_dripper.engines.qwen3 import parts as parts_module
from scrapy_dripper.engines.qwen3.grammar import Grammar
from scrapy_dripper.engines.qwen3.parts import Splitter
from scrapy_dripper.engines.qwen3.prompt import Prompt, page_html


def blocks(sizes: list[int]) -> list[str]:
    """Return blocks whose texts have the given numbers of words."""
    return [f'<p _item_id="{k}">{"morning market " * n}</p>' for k, n in enumerate(sizes, 1)]


def splitter(tokenizer: Tokenizer, limit: int, max_tokens: int | None = None) -> Splitter:
    return Splitter(Prompt(tokenizer, "Read this. {html} Labels:"), Grammar(tokenizer, "json"), limit, max_tokens)


def divide(one: Splitter, html: list[str], oversize: str) -> list[tuple[range, int]]:
    """Return the blocks of each part and the tokens of its prompt."""
    (prompt,) = one.prompt.encode([page_html(html)])
    return [(part.blocks, len(part.prompt)) for part in one.parts(html, prompt, oversize)]


def test_the_longest_answer_counts(tokenizer: Tokenizer) -> None:
    """A page fits if prompt and answer fit, to the exact token."""
    html = blocks([3] * 10)
    roomy = splitter(tokenizer, 100_000)
    ((_, size),) = divide(roomy, html, "fallback")
    exact = size + roomy.grammar.length(10)

    assert divide(splitter(tokenizer, exact), html, "fallback") == [(range(10), size)]
    assert divide(splitter(tokenizer, exact, size), html, "fallback") == [(range(10), size)]
    for limit, max_tokens, over in (
        (exact - 1, None, f"{exact - 1:,}"),
        (exact - 1, exact, f"{exact - 1:,}"),
        (exact, size - 1, f"DRIPPER_MAX_TOKENS = {size - 1:,}"),
    ):
        message = f"{size:,} tokens, and {roomy.grammar.length(10)} of the answer, over {over}"
        with pytest.raises(OversizeError, match=f"^{re.escape(message)}$"):
            divide(splitter(tokenizer, limit, max_tokens), html, "fallback")


def test_long_pages_in_windows_where_that_is_less_work(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention grows with the square of the length. If it costs little, repeating the instructions costs more."""
    monkeypatch.setattr(parts_module, "SQUARE", 200)
    one = replace(splitter(tokenizer, 10_000), window=200)

    assert len(divide(one, blocks([5] * 6), "fallback")) == 1
    long = divide(one, blocks([5] * 60), "fallback")
    assert len(long) > 5
    assert all(size <= 200 for _, size in long)
    monkeypatch.setattr(parts_module, "SQUARE", 1_000_000)
    assert len(divide(one, blocks([5] * 60), "fallback")) == 1


def test_pages_over_the_limit_are_divided_as_finely(tokenizer: Tokenizer) -> None:
    """This holds if they are divided at all."""
    one = replace(splitter(tokenizer, 600), window=200)
    html = blocks([5] * 60)

    assert all(size <= 200 for _, size in divide(one, html, "window"))
    assert len(divide(one, html, "truncate")) == 1
    with pytest.raises(OversizeError):
        divide(one, html, "fallback")


@given(sizes=st.lists(st.integers(0, 60), min_size=1, max_size=60), limit=st.integers(120, 600), capped=st.booleans())
@pytest.mark.parametrize("oversize", ["truncate", "window"])
def test_every_part_fits(tokenizer: Tokenizer, oversize: str, sizes: list[int], limit: int, capped: bool) -> None:
    """This holds for any sizes of blocks, including a block that is too large by itself."""
    one = splitter(tokenizer, limit, limit - 30 if capped else None)
    parts = divide(one, blocks(sizes), oversize)

    for part, size in parts:
        assert size + one.grammar.length(len(part)) <= limit
        assert size <= (one.max_tokens or limit)
    covered = {k for part, _ in parts for k in part}
    assert covered == set(range(max(covered) + 1))
    assert oversize == "truncate" or covered == set(range(len(sizes)))
    assert oversize == "window" or len(parts) == 1


def test_a_truncated_page_is_as_long_as_can_be(tokenizer: Tokenizer) -> None:
    ((part, size),) = divide(splitter(tokenizer, 1000), blocks([10] * 100), "truncate")

    assert 800 < size + Grammar(tokenizer, "json").length(len(part)) <= 1000
