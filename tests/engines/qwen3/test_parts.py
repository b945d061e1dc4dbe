"""Pages that are too long for the model are divided."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from scrapy_dripper.engines.base import OversizeError
from scrapy_dripper.engines.qwen3 import cost
from scrapy_dripper.engines.qwen3.cost import Rule, Shape, saved
from scrapy_dripper.engines.qwen3.grammar import Grammar
from scrapy_dripper.engines.qwen3.parts import Splitter
from scrapy_dripper.engines.qwen3.prompt import Prompt, page_html

ATTENTIVE = Shape(layers=2, hidden=32, inner=64, heads=4, kv_heads=2, head_dim=16)
"""As much work in attention as in products with weights, at 192 tokens."""
WEIGHTY = Shape(layers=2, hidden=1024, inner=4096, heads=1, kv_heads=1, head_dim=16)
"""Attention is next to nothing."""


def blocks(sizes: list[int]) -> list[str]:
    """Return blocks whose texts have the given numbers of words."""
    return [f'<p _item_id="{k}">{"morning market " * n}</p>' for k, n in enumerate(sizes, 1)]


def splitter(tokenizer: Tokenizer, limit: int, max_tokens: int | None = None, shape: Shape = ATTENTIVE) -> Splitter:
    prompt, grammar = Prompt(tokenizer, "Read this. {html} Labels:"), Grammar(tokenizer, "json")
    return Splitter(prompt, grammar, shape, limit, max_tokens)


def divide(
    one: Splitter, html: list[str], oversize: str, window_tokens: int | str | None = None
) -> list[tuple[range, int]]:
    """Return the blocks of each part and the tokens of its prompt."""
    (prompt,) = one.prompt.encode([page_html(html)])
    return [(part.blocks, len(part.prompt)) for part in one.parts(html, prompt, oversize, window_tokens)]


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


def test_long_pages_in_windows_where_that_is_less_work(tokenizer: Tokenizer) -> None:
    """Attention grows with the square of the length. If it costs little, repeating the instructions costs more."""
    one = splitter(tokenizer, 10_000)

    assert len(divide(one, blocks([5] * 6), "fallback", 200)) == 1
    long = divide(one, blocks([5] * 60), "fallback", 200)
    assert len(long) > 5
    assert all(size <= 200 for _, size in long)
    assert len(divide(splitter(tokenizer, 10_000, shape=WEIGHTY), blocks([5] * 60), "fallback", 200)) == 1
    assert len(divide(one, blocks([5] * 60), "fallback", None)) == 1


def test_auto_asks_for_more_than_a_quarter(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A little over its size, a page saves less and stays whole. With a number, any saving is enough."""
    monkeypatch.setattr(cost, "AUTO", Rule(400, 0.25))
    one = splitter(tokenizer, 10_000, shape=replace(ATTENTIVE, hidden=96, inner=192))
    middle, long = blocks([5] * 20), blocks([5] * 90)

    assert 400 < divide(one, middle, "fallback", None)[0][1] < 600
    assert len(divide(one, middle, "fallback", "auto")) == 1
    assert len(divide(one, middle, "fallback", 400)) == 2
    assert len(divide(one, long, "fallback", "auto")) > 2


def test_pages_over_the_limit_are_divided_as_finely(tokenizer: Tokenizer) -> None:
    """This holds if they are divided at all."""
    one, html = splitter(tokenizer, 600), blocks([5] * 60)

    assert all(size <= 200 for _, size in divide(one, html, "window", 200))
    assert len(divide(one, html, "truncate", 200)) == 1
    with pytest.raises(OversizeError):
        divide(one, html, "fallback", 200)


def test_no_block_of_a_page_that_fits_is_cut(tokenizer: Tokenizer) -> None:
    """A block that is longer than a window is a window by itself, with all of its text."""
    one, sizes = splitter(tokenizer, 10_000), [5] * 40 + [300] + [5] * 40
    html = blocks(sizes)
    found = divide(one, html, "fallback", 200)

    ((part, size),) = [(part, size) for part, size in found if 40 in part and len(part) == 1]
    assert part == range(40, 41)
    assert size > one.prompt.count([html[40]])[0] > 600
    assert all(size <= 200 for part, size in found if 40 not in part)


PAGES = st.lists(st.integers(0, 60), min_size=1, max_size=60)
LEAST = st.sampled_from([0.0, 0.1, 0.25, 0.5])
SHAPES = st.sampled_from([ATTENTIVE, WEIGHTY, replace(ATTENTIVE, hidden=128, inner=512)])


@given(sizes=PAGES, shape=SHAPES, tokens=st.integers(60, 800), least=LEAST, limit=st.sampled_from([500, 100_000]))
def test_auto_never_costs_more(
    tokenizer: Tokenizer, sizes: list[int], shape: Shape, tokens: int, least: float, limit: int
) -> None:
    """A page up to the size of a window has one prompt. Windows have all blocks, and save what their rule asks for."""
    one, html = splitter(tokenizer, limit, shape=shape), blocks(sizes)
    (prompt,) = one.prompt.encode([page_html(html)])
    if not one.fits(prompt, len(html)):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "AUTO", Rule(tokens, least))
        found = one.parts(html, prompt, "fallback", "auto")

    if len(found) == 1 or len(prompt) <= tokens:
        (part,) = found
        assert part.blocks == range(len(html))
        assert part.prompt.tolist() == prompt.tolist()
        return
    assert {k for part in found for k in part.blocks} == set(range(len(html)))
    prompts = [len(part.prompt) + one.grammar.length(len(part.blocks)) for part in found]
    whole = [len(prompt) + one.grammar.length(len(html))]
    assert saved(shape, len(one.prompt.shared), whole, prompts) > least


def test_flops_of_the_published_model() -> None:
    """Both kinds of work are equal at 7,680 tokens. A pass after others is the rest of a longer pass."""
    shape = Shape(28, 1024, 3072, 16, 8, 128)

    assert shape.weights == 440_401_920
    assert shape.flops(7_680) == 2 * 2 * shape.weights * 7_680
    assert shape.flops(100) + shape.flops(900, 100) == shape.flops(1_000)
    assert saved(shape, 100, [1_000], [1_000]) == 0
    assert saved(shape, 100, [10_000], [5_000, 5_100]) > 0 > saved(shape, 100, [1_000], [600, 600])


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
