"""ROUGE-N over given tokens."""

from __future__ import annotations

from collections import Counter

import pytest

from scrapy_dripper_lab.evaluation.text_measures import load_cut, rouge


@pytest.mark.parametrize(
    ("prediction", "truth", "n", "expected"),
    [
        ("", " \n", 5, (1, 1, 1)),
        ("abcde", "abcde", 5, (1, 1, 1)),
        ("abcd", "abcd", 5, (0, 0, 0)),
        ("abcdef", "abcde", 5, (0.5, 1, 2 / 3)),
        ("aaaa", "aa", 1, (0.5, 1, 2 / 3)),
        ("ababab", "ab", 2, (0.2, 1, 1 / 3)),
        ("ABCDE", "abcde", 5, (0, 0, 0)),
        (" abcde", "abcde", 5, (0.5, 1, 2 / 3)),
        ("", "abcde", 5, (0, 0, 0)),
    ],
)
def test_section_4_2_2_rouge(prediction: str, truth: str, n: int, expected: tuple[float, float, float]) -> None:
    """N-grams count as often as both texts have them; case and white space count; texts shorter than n have none."""
    assert rouge(prediction, truth, list, n) == pytest.approx(expected)


def test_section_4_2_2_the_tokens_are_those_of_jieba() -> None:
    """Every white-space character and punctuation mark is a token, and Chinese is cut into words."""
    pytest.importorskip("jieba")
    cut = load_cut()

    assert list(cut(" Hello,  \n")) == [" ", "Hello", ",", " ", " ", "\n"]
    assert Counter(cut("我来到北京清华大学"))["清华大学"] == 1
    assert rouge("我来到北京清华大学的图书馆看书", "我来到北京清华大学的图书馆看书", cut).f1 == 1
