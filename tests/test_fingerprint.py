"""Fingerprints: equal or near for two visits to a page, far for two different pages."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.fingerprint import content_hash, simhash


def distance(one: str, other: str) -> int:
    """Return the number of bits in which two simhashes differ."""
    return (int(one, 16) ^ int(other, 16)).bit_count()


ENGLISH = "the tide comes in and the boats go out before anybody in the harbour has had breakfast or read".split()
CHINESE = "今天天气很好我们去海边散步看见了许多渔船和海鸥老人说明天会下雨所以应该早点回家吃饭"


def text(words: int, seed: int = 1) -> str:
    """Return a text, the same for the same seed."""
    chosen = random.Random(seed)
    return " ".join(f"{chosen.choice(ENGLISH)}{chosen.choice('abcdefgh')}" for _ in range(words))


def test_the_hashes_stay_what_they_are() -> None:
    """Users store them: every version and machine must give the same ones."""
    assert content_hash("The tide comes in.\nAt 6:15.") == "39610a009a3f2fd6cd3e2efbcd70d551"
    assert simhash("The tide comes in.\nAt 6:15.") == "5a6745a1665881cd"
    assert simhash("") == simhash("... ") == "0" * 16
    assert content_hash("") == content_hash(" \n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("One two\nthree", "One  two\t\n\n three"),
        ("co\xadoperation\u200b", "cooperation"),
        ("Title\n1,204 views\nText", "Title\n1.3K views\nText"),
        ("3 hours ago\nText", "2 days ago\nText"),
        ("il y a 5 minutes\nText", "il y a 2 jours\nText"),
        ("5分钟前\nText", "3小时前\nText"),
        ("阅读 1204\nText", "阅读 1377\nText"),
    ],
)
def test_the_content_is_the_same(before: str, after: str) -> None:
    """Text that changes at every visit, which nobody reads for, does not count."""
    assert content_hash(before) == content_hash(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("12.99 EUR", "11.99 EUR"),
        ("$12", "$11"),
        ("2 : 1", "2 : 2"),
        ("30 minutes", "45 minutes"),
        ("8,336,817 people", "8,336,818 people"),
        ("The page has 1,204 views in all of its years", "The page has 1,205 views in all of its years"),
        ("Updated 2026-04-01", "Updated 2026-04-02"),
        ("now here", "nowhere"),
        ("US", "us"),
        ("a\nb", "b\na"),
    ],
)
def test_the_content_is_another(before: str, after: str) -> None:
    """Changes that matter to a reader count."""
    assert content_hash(before) != content_hash(after)


@pytest.mark.parametrize("words", [text(400), CHINESE], ids=["spaces", "no spaces"])
def test_numbers_case_and_punctuation_do_not_move_a_text(words: str) -> None:
    """A date within the text changes at every visit."""
    assert simhash(f"{words} On 2026-04-01, 17 boats.") == simhash(f"{words.upper()}! on 1999-12-31: 5,120 Boats")


def test_near_and_far() -> None:
    """One changed word in four hundred is near; other texts are as far apart as random ones."""
    words = text(400).split()
    near = [*words[:200], "other", *words[201:]]
    assert distance(simhash(" ".join(words)), simhash(" ".join(near))) <= 6
    far = [distance(simhash(text(400)), simhash(text(400, seed))) for seed in range(2, 22)]
    assert 24 < sum(far) / len(far) < 40

    long = "".join(random.Random(1).choices(CHINESE, k=600))
    assert distance(simhash(long), simhash(long[:300] + "猫" + long[301:])) <= 6
    assert distance(simhash(long), simhash(long[::-1])) > 16  # the same characters, in another order


@given(st.text())
def test_any_text_has_both(any_text: str) -> None:
    """Each hash has its length, and a text has no distance from itself."""
    assert len(content_hash(any_text)) == 32
    assert len(simhash(any_text)) == 16
    assert distance(simhash(any_text), simhash(any_text)) == 0


def test_a_long_text_in_parts() -> None:
    """The size of the parts makes no difference."""
    words = text(500)
    long = " ".join([words] * 300)
    assert distance(simhash(long), simhash(words)) <= 3
    assert len(simhash("1." * 1_000_000 + "\u0301" * 1_000_000)) == 16
