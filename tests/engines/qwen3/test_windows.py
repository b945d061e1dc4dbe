"""Pages that are too long for the model are divided into windows of blocks."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from scrapy_dripper.engines.base import OversizeError
from scrapy_dripper.engines.qwen3.grammar import Grammar
from scrapy_dripper.engines.qwen3.prompt import Prompt
from scrapy_dripper.engines.qwen3.windows import Splitter, average, furthest, window_html, windows

COSTS = st.lists(st.integers(1, 120), min_size=1, max_size=150)


@given(costs=COSTS, room=st.integers(20, 400), short=st.floats(0.5, 1.3))
def test_windows_cover_all_blocks_and_fit(costs: list[int], room: int, short: float) -> None:
    """This holds even if the estimate is so small that only half of it really fits."""

    def fits(start: int, end: int) -> bool:
        return sum(costs[start:end]) <= room * short

    found = windows(costs, room, fits)

    assert found[0].start == 0
    assert found[-1].stop == len(costs)
    for one, following in pairwise(found):
        assert one.start < following.start <= one.stop < following.stop
    assert all(fits(one.start, one.stop) and sum(costs[i] for i in one) <= room for one in found if len(one) > 1)


def test_windows_share_about_an_eighth() -> None:
    found = windows([10] * 100, 400, lambda *_: True)

    assert found == [range(40), range(35, 75), range(70, 100)]


def test_a_huge_block_is_alone_and_its_neighbours_are_not_read_often() -> None:
    found = windows([10] * 20 + [390] + [10] * 20, 400, lambda *_: True)

    assert found == [range(20), range(19, 21), range(21, 41)]
    assert windows([10] * 5 + [1000] + [10] * 5, 100, lambda *_: True) == [range(5), range(5, 6), range(6, 11)]


def test_linear_in_the_number_of_blocks() -> None:
    """Each block is in a few windows at most, however large blocks are."""
    for costs in ([1] * 20_000, [1, 1, 99] * 7_000, [60] * 20_000):
        assert sum(map(len, windows(costs, 100, lambda *_: True))) <= 3 * len(costs)


def test_furthest_takes_one_block_at_least() -> None:
    assert furthest([500, 1], 0, 100) == 1
    assert furthest([50, 50, 1], 0, 100) == 2


def test_the_mean_where_windows_overlap() -> None:
    parts = [range(3), range(2, 4)]
    p = average(parts, [np.array([0.1, 0.2, 0.9]), np.array([0.3, 0.4])], 4)

    assert p.tolist() == pytest.approx([0.1, 0.2, 0.6, 0.4])


def test_windows_are_numbered_from_one() -> None:
    """Only the number of the block itself changes, and no number in its text or attributes."""
    blocks = [f'<p class="_item_id=&quot;{k}&quot;" _item_id="{k}">the _item_id="{k}" of {k}</p>' for k in range(1, 13)]

    window = window_html(blocks, 9, 11)

    assert window == (
        '<p class="_item_id=&quot;10&quot;" _item_id="1">the _item_id="10" of 10</p>'
        '<p class="_item_id=&quot;11&quot;" _item_id="2">the _item_id="11" of 11</p>'
    )
    assert window_html(blocks, 0, 12) == "".join(blocks)


# ---------------------------------------------------------------------- prompts
def blocks(sizes: list[int]) -> list[str]:
    """Return blocks whose texts have the given numbers of words."""
    return [f'<p _item_id="{k}">{"morning market " * n}</p>' for k, n in enumerate(sizes, 1)]


def splitter(tokenizer: Tokenizer, limit: int, window_tokens: int | None = None) -> Splitter:
    prompt, grammar = Prompt(tokenizer, "Read this. {html} Labels:"), Grammar(tokenizer, "json")
    return Splitter(prompt, grammar, limit, window_tokens)


def divide(one: Splitter, html: list[str], oversize: str) -> list[tuple[range, int]]:
    """Return the blocks of each part and the tokens of its prompt."""
    (prompt,) = one.prompt.encode(["".join(html)])
    parts = one.parts(html, prompt, oversize)
    assert isinstance(parts, list)
    return [(part.blocks, len(part.prompt)) for part in parts]


def test_the_longest_answer_counts(tokenizer: Tokenizer) -> None:
    """A page fits if prompt and answer fit, to the exact token."""
    html = blocks([3] * 10)
    roomy = splitter(tokenizer, 100_000)
    ((_, size),) = divide(roomy, html, "fallback")
    exact = size + roomy.grammar.length(10)

    assert divide(splitter(tokenizer, exact), html, "fallback") == [(range(10), size)]
    found = splitter(tokenizer, exact - 1).parts(html, roomy.prompt.encode(["".join(html)])[0], "fallback")
    assert isinstance(found, OversizeError)
    assert re.fullmatch(rf"{size:,} tokens, and \d+ of the answer, over {exact - 1:,}", str(found))


def test_long_pages_in_windows_if_the_manifest_says_so(tokenizer: Tokenizer) -> None:
    """A page up to the size of a window has one prompt. So has any page without such a size."""
    one = splitter(tokenizer, 10_000, 300)
    long = divide(one, blocks([5] * 60), "fallback")

    assert len(divide(one, blocks([5] * 6), "fallback")) == 1
    assert len(long) > 5
    assert all(size + one.grammar.length(len(part)) <= 300 for part, size in long)
    assert {k for part, _ in long for k in part} == set(range(60))
    assert len(divide(splitter(tokenizer, 10_000), blocks([5] * 60), "fallback")) == 1


def test_no_block_of_a_page_that_fits_is_cut(tokenizer: Tokenizer) -> None:
    """A block that is longer than a window is a window by itself, with all of its text."""
    one, sizes = splitter(tokenizer, 10_000, 300), [5] * 40 + [300] + [5] * 40
    html = blocks(sizes)

    ((part, size),) = [(part, size) for part, size in divide(one, html, "fallback") if 40 in part and len(part) == 1]
    assert part == range(40, 41)
    assert size > one.prompt.count([html[40]])[0] > 600


@given(sizes=st.lists(st.integers(0, 60), min_size=1, max_size=60), limit=st.integers(120, 600), fine=st.booleans())
@pytest.mark.parametrize("oversize", ["truncate", "window"])
def test_every_part_fits(tokenizer: Tokenizer, oversize: str, sizes: list[int], limit: int, fine: bool) -> None:
    """This holds for any sizes of blocks, including a block that is too large by itself."""
    one = splitter(tokenizer, limit, limit - 30 if fine else None)
    parts = divide(one, blocks(sizes), oversize)

    assert all(size + one.grammar.length(len(part)) <= limit for part, size in parts)
    covered = {k for part, _ in parts for k in part}
    assert covered == set(range(max(covered) + 1))
    assert oversize == "truncate" or covered == set(range(len(sizes)))
    assert fine or oversize == "window" or len(parts) == 1


def test_a_truncated_page_is_as_long_as_can_be(tokenizer: Tokenizer) -> None:
    ((part, size),) = divide(splitter(tokenizer, 1000), blocks([10] * 100), "truncate")

    assert 800 < size + Grammar(tokenizer, "json").length(len(part)) <= 1000
