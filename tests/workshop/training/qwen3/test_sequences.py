"""Labelled pages as tokens. Labels are at the positions at which the engine chooses, and a window is like a separate
page.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("tokenizers")

from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.engines.qwen3.prompt import Prompt
from scrapy_dripper.workshop.training.qwen3.pages import LabelledPage
from scrapy_dripper.workshop.training.qwen3.sequences import Encoder, TokenSequence, batches, collate
from scrapy_dripper.workshop.training.qwen3.tokenizer import train_tokenizer

TEMPLATE = "Blocks:\n{html}\nmain or other?\n"
PIECES = (
    '<p class="intro lead"{}>The sea rises and falls twice a day.</p>',
    "<li{}><a>Home</a></li>",
    "<div{}>12,50 € &amp; 'more'...</div>",
    '<h1 id="title-2"{}>潮汐</h1>',
    '<td class="a-b__c"{}>_item_id="3"</td>',
)
TOKENIZER = train_tokenizer([piece.format("") for piece in PIECES] * 20, 500)


def page(n: int, seed: int = 0) -> LabelledPage:
    """Return a page of n blocks."""
    rng = np.random.default_rng(seed)
    blocks = [PIECES[i].format(f' _item_id="{k}"') for k, i in enumerate(rng.integers(0, len(PIECES), n), 1)]
    return LabelledPage("id", "host", "article", blocks, (rng.random(n) < 0.5).tolist(), rng.random(n).tolist())


@pytest.mark.parametrize("answer", ["json", "json_space", "compact"])
def test_the_labels_are_where_the_engine_asks(answer: str) -> None:
    """The ids are those of prompt and answer as text, up to the last label, which comes after the last row."""
    encoder = Encoder(TOKENIZER, TEMPLATE, answer)
    one = page(12)
    found = encoder.encode(one)
    prompt = TEMPLATE.replace("{html}", "".join(one.blocks))
    (expected,) = Prompt(TOKENIZER, TEMPLATE).encode(["".join(one.blocks)])
    np.testing.assert_array_equal(found.ids[: len(expected)], expected)
    labels = ["main" if label else "other" for label in one.main]
    text = {
        "json": "{" + ",".join(f'"{k}":"{label}"' for k, label in enumerate(labels, 1)),
        "json_space": "{" + ", ".join(f'"{k}": "{label}"' for k, label in enumerate(labels, 1)),
        "compact": "".join(f"{k}{label}" for k, label in enumerate(labels, 1)),
    }[answer]
    end = "" if answer == "compact" else '"'
    assert TOKENIZER.decode(found.ids.tolist()) == prompt + text.removesuffix(labels[-1] + end)
    assert [TOKENIZER.decode([int(found.ids[row + 1])]) for row in found.rows[:-1]] == labels[:-1]
    assert found.rows[-1] == len(found.ids) - 1


def test_each_block_ends_where_its_tag_does() -> None:
    """This also holds if earlier blocks have many characters of several bytes."""
    one = page(40, seed=3)
    found = Encoder(TOKENIZER, TEMPLATE, "json").encode(one)
    cuts = [0, *(found.ends + 1).tolist()]
    texts = [TOKENIZER.decode(found.ids[a:b].tolist()) for a, b in pairwise(cuts)]
    assert texts == [one.blocks[0].join(["Blocks:\n", ""]), *one.blocks[1:]]


@given(n=st.integers(1, 60), start=st.integers(0, 59), size=st.integers(1, 60), seed=st.integers(0, 5))
def test_property_a_window_is_a_page(n: int, start: int, size: int, seed: int) -> None:
    """Its blocks are numbered from 1, and its labels and weights are its own."""
    one, encoder = page(n, seed), Encoder(TOKENIZER, TEMPLATE, "json")
    start = min(start, n - 1)
    end = min(n, start + size)
    blocks = [
        block.replace(f' _item_id="{k}"', f' _item_id="{k - start}"', 1)
        for k, block in enumerate(one.blocks[start:end], start + 1)
    ]
    alone = LabelledPage("", "", "", blocks, one.main[start:end], one.weights[start:end])
    expected, found = encoder.encode(alone), encoder.encode(one, start, end)
    for name in TokenSequence.__slots__:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@given(n=st.integers(1, 60), longest=st.integers(20, 800), seed=st.integers(0, 20))
def test_property_a_sample_fits(n: int, longest: int, seed: int) -> None:
    """A page that fits is used as a whole. Of a longer page, as many blocks are used as fit."""
    one, encoder = page(n), Encoder(TOKENIZER, TEMPLATE, "json")
    found = encoder.sample(one, longest, np.random.default_rng(seed))
    whole = encoder.encode(one)
    if found is None:
        assert len(encoder.encode(page(1)).ids) > longest - 40
    else:
        assert 0 < len(found.ids) <= longest
        assert len(found.main) == n or len(whole.ids) > longest - 2 * n
        assert len(found.main) == n or len(found.ids) > longest - 100


def test_batches_hold_what_they_may_and_lose_nothing() -> None:
    """A sequence that is too long for any batch is a batch by itself."""
    encoder = Encoder(TOKENIZER, TEMPLATE, "json")
    sequences = [encoder.encode(page(n, n)) for n in (1, 30, 2, 28, 3, 60, 1)]
    found = list(batches(sequences, 1500))
    assert sorted(id(one) for batch in found for one in batch) == sorted(map(id, sequences))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(len(one.ids) for one in batch) <= 1500
    ids, rows, ends = collate(found[0])
    flat = ids.reshape(-1)
    at = 0
    for i, one in enumerate(found[0]):
        np.testing.assert_array_equal(ids[i, : len(one.ids)], one.ids)
        n = len(one.main)
        np.testing.assert_array_equal(flat[rows[at : at + n]], one.ids[one.rows])
        np.testing.assert_array_equal(flat[ends[at : at + n]], one.ids[one.ends])
        at += n
    assert at == len(rows) == len(ends)


def test_noise_changes_what_is_read_and_not_what_is_asked() -> None:
    """About the given share of the earlier labels is replaced by random ones. The rest of the sequence is unchanged."""
    encoder = Encoder(TOKENIZER, TEMPLATE, "json")
    one = encoder.encode(page(300))
    found = encoder.with_noise(one, 0.5, np.random.default_rng(0))
    places = one.rows[:-1] + 1
    changed = np.flatnonzero(found.ids != one.ids)
    assert set(changed.tolist()) <= set(places.tolist())
    assert 0.15 < len(changed) / len(places) < 0.35  # half of the random labels are equal to the old ones
    assert set(found.ids[places].tolist()) == {encoder.grammar.main, encoder.grammar.other}
    np.testing.assert_array_equal(found.main, one.main)
