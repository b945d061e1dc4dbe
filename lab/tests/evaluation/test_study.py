"""The measures of the study of business pages follow its equations."""

from __future__ import annotations

import pytest

from scrapy_dripper_lab.evaluation.text_measures import SCALE, Study, study

pytest.importorskip("rapidfuzz")
TRUTH = "We repair bicycles in Magdeburg. Call us today, or write to us."


def test_section_4_3_1_equations_1_to_3() -> None:
    """Equations 1 to 3: recall of words and of pairs, and the common subsequence over the longer text."""
    found = study("a b x c", "a b c d e")

    assert found.rouge_1 == 3 / 5
    assert found.rouge_2 == 1 / 4
    assert found.rouge_l == 3 / 5
    assert study("a a a a", "a a b").rouge_1 == 2 / 3
    assert study("c b a", "a b c").rouge_l == 1 / 3


def test_section_4_3_1_equations_4_and_15() -> None:
    """The study's example: a ROUGE-L of .45 is 2.25 on its scale, whose smallest value is 0."""
    twenty = " ".join("abcdefghijklmnopqrst")
    assert study(twenty[:17], twenty).rouge_l * SCALE == pytest.approx(2.25)


def test_chinese_has_words() -> None:
    """A tokenizer for ASCII words would find none."""
    found = study("潮水每天", "潮水每天涨落")

    assert found.rouge_1 == 4 / 6
    assert found.rouge_2 == 3 / 5
    assert found.rouge_l == found.recall == 4 / 6


def test_section_4_3_1_equations_5_to_7_and_14() -> None:
    """How often a word occurs does not matter. Completeness (equation 14) is the recall (equation 6)."""
    found = study("us us x", "us us us call")

    assert (found.precision, found.recall, found.f1) == (1 / 2, 1 / 2, 1 / 2)
    assert study("us", "us us us call").rouge_1 == 1 / 4
    assert study("a b c", "a b")[3:6] == (2 / 3, 1, pytest.approx(4 / 5))


@pytest.mark.parametrize(
    ("text", "noise", "words"),
    [
        ("Impressum AGB bicycles", 2, 3),
        ("write to a@b.de now", 1, 6),
        ("see https://www.example.org now", 2, 6),
        ('href="x" and', 1, 3),
        ("wooooow so good!!! yes", 2, 4),
        ("www. www. a", 2, 3),
    ],
)
def test_section_4_3_2_equation_8(text: str, noise: int, words: int) -> None:
    """Equation 8, with the words and artifacts that the study names."""
    assert study(text, TRUTH).clean == pytest.approx(1 - noise / words)


def test_section_4_3_2_equations_9_to_13() -> None:
    """Equations 9 to 13: ten words, five of them distinct, in two sentences."""
    found = study("a b c d e. A b c d e!", TRUTH)

    assert found.coherence == pytest.approx((min(2 * 5 / 10, 1) + 5 / 20) / 2)
    assert study("一二三。四五六。", TRUTH).coherence == pytest.approx((1 + 3 / 20) / 2)
    assert study("Version 3.11 of it", TRUTH).coherence == pytest.approx((1 + 5 / 20) / 2), "one sentence"


def test_the_truth_itself_and_empty_texts() -> None:
    assert study(TRUTH, TRUTH)[:7] == (1,) * 7
    assert study("", TRUTH) == Study(*[0] * 8)
    assert study("", "")[:6] == (1,) * 6
    assert study("words", "").rouge_1 == 0


def test_long_texts_are_cut_for_the_common_subsequence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_dripper_lab.evaluation.text_measures.MAX_WORDS", 3)

    assert study("a b c x", "a b c y").rouge_l == 1
