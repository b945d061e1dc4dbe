"""The decoding loop gives the same labels as token-by-token decoding, with a fake model that depends on every token."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from benchmarks.equality import naive
from scrapy_dripper.engines.base import PrecisionError
from scrapy_dripper.engines.qwen3.decoder import Decoded, DecodeTask, decode
from scrapy_dripper.engines.qwen3.grammar import FORMATS, Grammar
from tests.engines.qwen3.fakes import PREPARED, FakeModel


@lru_cache
def grammar(name: str) -> Grammar:
    tokenizer = Tokenizer.from_file(str(PREPARED / "tokenizer.json"))
    tokenizer.add_tokens(["</think>", "\n\n"])
    return Grammar(tokenizer, name)


def task(prompt: list[int], draft: list[bool], answer: str = "json") -> DecodeTask:
    one = grammar(answer)
    return DecodeTask(np.array(prompt), one.answer(len(draft)), np.array(draft, dtype=np.bool_))


def expected(model: FakeModel, one: DecodeTask) -> Decoded:
    """Return the labels of token-by-token decoding, from a fresh start."""
    return naive(type(model)(model.seed, model.ties), one)


@given(
    prompt=st.lists(st.integers(0, 500), min_size=1, max_size=8),
    draft=st.lists(st.booleans(), min_size=1, max_size=40),
    answer=st.sampled_from(sorted(FORMATS)),
    lookahead=st.none() | st.integers(0, 5),
    seed=st.integers(0, 1000),
    ties=st.sampled_from([0.0, 0.3]),
)
def test_labels_are_those_of_one_token_at_a_time(
    prompt: list[int], draft: list[bool], answer: str, lookahead: int | None, seed: int, ties: float
) -> None:
    """This holds for all prompts, drafts, formats and ties, with at most one pass per block."""
    model = FakeModel(seed, ties)
    one = task(prompt, draft, answer)
    found, right = decode(model, one, lookahead), expected(model, one)

    assert found.main.tolist() == right.main.tolist()
    assert found.margins.tolist() == right.margins.tolist()
    assert found.passes == model.passes <= len(one.answer)
    assert found.kept == int((one.draft == right.main).sum())


@given(prompt=st.lists(st.integers(0, 500), min_size=3, max_size=9), n=st.integers(1, 60), data=st.data())
def test_wrong_drafts_cost_no_more_than_a_pass_each(prompt: list[int], n: int, data: st.DataObject) -> None:
    """A right draft takes one pass over prompt and answer. Each corrected label can cost another pass."""
    model = FakeModel()
    right = expected(model, task(prompt, [False] * n)).main.tolist()
    found = decode(model, task(prompt, right))

    assert (found.passes, found.positions, found.kept) == (1, len(task(prompt, right)), n)

    last = data.draw(st.integers(max(0, n - 3), n - 1))
    found = decode(model, task(prompt, [label ^ (k == last) for k, label in enumerate(right)]))

    assert found.main.tolist() == right
    assert found.passes <= 1 + n - 1 - last or found.passes == 1


class NearSighted(FakeModel):
    """A model whose choice mostly depends on the page, and sometimes on the previous label, like real ones."""

    def _logits(self, ids: list[int]) -> tuple[float, float]:
        one = grammar("json")
        labels = [token for token in ids if token in (one.main, one.other)]
        digest = hashlib.sha256(repr((self.seed, len(labels))).encode()).digest()
        flipped = digest[1] < 64 and labels[-1:] == [one.main]
        return float(digest[0] % 2 ^ flipped), 0.5


@pytest.mark.parametrize("seed", range(20))
def test_a_draft_that_is_half_wrong_takes_few_passes(seed: int) -> None:
    """All choices of a pass are the new draft, so labels that do not depend on wrong ones are right at once.

    To correct one label a pass would take 30.
    """
    right = expected(NearSighted(seed), task([1, 2], [False] * 60)).main
    wrong = np.random.default_rng(seed).permutation(60) < 30
    found = decode(NearSighted(seed), task([1, 2], (right ^ wrong).tolist()))

    assert found.main.tolist() == right.tolist()
    assert found.passes <= 8


@pytest.mark.parametrize("lookahead", [0, 3, 30])
def test_a_right_draft_that_is_read_in_parts(lookahead: int) -> None:
    """Labels beyond the current pass stay as drafted, and no token is read twice."""
    right = expected(FakeModel(), task([1, 2], [False] * 30)).main
    one = task([1, 2], right.tolist())
    found = decode(FakeModel(), one, lookahead)

    assert (found.passes, found.positions, found.kept) == (-(-30 // (lookahead + 1)), len(one), 30)


def test_probabilities_are_a_softmax_of_two() -> None:
    margins = np.array([0, 1, -1, 800, -800], dtype=np.float32)
    found = Decoded(margins > 0, margins, 1, 1, 0)

    with np.errstate(all="raise", under="ignore"):
        assert found.probabilities.tolist() == pytest.approx([0.5, 0.7310586, 0.2689414, 1, 0])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_not_finite(bad: float) -> None:
    """Half precision can overflow. Such logits give no label."""

    class Broken(FakeModel):
        def _logits(self, ids: list[int]) -> tuple[float, float]:
            return bad, 0.0

    with pytest.raises(PrecisionError, match="not finite"):
        decode(Broken(), task([1], [True]))
