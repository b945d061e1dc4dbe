"""Block labels from the ground truth of a page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper_lab.alignment import DUPLICATE_WEIGHT, align, tokens

LATIN = "abcdefghij"
HAN = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳"


def numbered(sizes: list[int]) -> list[str]:
    """Return blocks of the given sizes. No word occurs twice in them."""
    starts = np.cumsum([0, *sizes]).tolist()
    return [
        " ".join(f"{LATIN[i % 10]}{i}" for i in range(start, start + size))
        for start, size in zip(starts, sizes, strict=False)
    ]


@st.composite
def page_and_choice(draw: st.DrawFn, least: int = 1) -> tuple[list[str], list[bool]]:
    sizes = draw(st.lists(st.integers(least, 25), min_size=1, max_size=25))
    return numbered(sizes), draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))


def chosen(blocks: list[str], choice: list[bool]) -> list[str]:
    return [block for block, take in zip(blocks, choice, strict=True) if take]


repetitive_text = st.lists(st.sampled_from(["a", "b", "c", "天", "地", "the", ".", "\n"]), max_size=40).map(" ".join)


@given(page_and_choice(), st.sampled_from(["\n\n", " ", ". ", " | "]))
def test_exactly_the_blocks_of_the_truth_are_main(page: tuple[list[str], list[bool]], separator: str) -> None:
    """If blocks share no words, the labels are those from which the truth was created, for any sizes."""
    blocks, choice = page
    alignment = align(blocks, separator.join(chosen(blocks, choice)))
    assert alignment.main.tolist() == choice
    assert alignment.coverage.tolist() == [float(take) for take in choice]
    assert not alignment.duplicate.any()


@given(page_and_choice(least=4), st.randoms(use_true_random=False))
def test_order_of_the_truth_may_differ(page: tuple[list[str], list[bool]], random: object) -> None:
    """Blocks of four words or more are found anywhere in the truth."""
    blocks, choice = page
    parts = chosen(blocks, choice)
    random.shuffle(parts)  # type: ignore[attr-defined]
    assert align(blocks, "\n".join(parts)).main.tolist() == choice


@given(st.lists(repetitive_text, max_size=12), repetitive_text)
def test_labels_of_any_text_are_sound(blocks: list[str], truth: str) -> None:
    """Shapes, ranges and the meaning of main and duplicate hold even for very repetitive text."""
    alignment = align(blocks, truth)
    words = [tuple(tokens(block)) for block in blocks]
    main = alignment.main.tolist()
    assert alignment.words.tolist() == [len(block) for block in words]
    assert ((alignment.coverage >= 0) & (alignment.coverage <= 1)).all()
    assert main == (alignment.coverage >= 0.5).tolist()
    elsewhere = {block for block, is_main in zip(words, main, strict=True) if is_main}
    assert alignment.duplicate.tolist() == [
        block in elsewhere and not is_main for block, is_main in zip(words, main, strict=True)
    ]
    assert set(alignment.weight[alignment.duplicate].tolist()) <= {DUPLICATE_WEIGHT}
    assert set(alignment.weight[~alignment.duplicate].tolist()) <= {1.0}


@given(st.lists(repetitive_text, max_size=12), repetitive_text)
def test_case_white_space_and_punctuation_do_not_matter(blocks: list[str], truth: str) -> None:
    """The labels do not change with capitals, other line breaks or other punctuation."""
    other = [re.sub(r"\s+", " \t\n ", block.upper()) + " ?!" for block in blocks]
    before, after = align(blocks, truth), align(other, truth.upper().replace("\n", " ... "))
    assert before.coverage.tolist() == after.coverage.tolist()
    assert before.duplicate.tolist() == after.duplicate.tolist()


@pytest.mark.parametrize("truth", ["", " \n", "...", "★ — !"])
def test_nothing_is_main_without_truth(truth: str) -> None:
    """If the ground truth is empty, no block is main, not even one without words. There may be no blocks at all."""
    alignment = align(["Home", "A long paragraph about nothing in particular.", "★", ""], truth)
    assert not alignment.main.any()
    assert not alignment.coverage.any()
    assert not alignment.duplicate.any()
    assert len(align([], truth).weight) == len(align([], "Some truth").main) == 0


CASES = json.loads(Path(__file__).with_name("alignment_cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["rule"])
def test_pages_as_they_come(case: dict[str, Any]) -> None:
    """The blocks that people would mark as the source of the truth are main."""
    assert align(case["blocks"], case["truth"]).main.tolist() == case["main"]


def test_tables_that_repeat_their_rows_are_all_found() -> None:
    """Tables of nearly the same rows do not hide one another."""
    header = "Week Monday Wednesday Friday Sunday"
    tables = [
        header + " " + " ".join(f"{week} Rest Run easy {plan * 7 + week} min Rest Run" for week in range(1, 9))
        for plan in range(1, 5)
    ]
    truth = "\n".join(f"Plan {i}\n{table}" for i, table in enumerate(tables))
    assert align(["Share", *tables, "Related plans"], truth).main.tolist() == [False, *[True] * 4, False]


@pytest.mark.parametrize("text", ["Add to cart", "Sold", "Only three of these are left"])
def test_text_that_repeats_hundreds_of_times(text: str) -> None:
    """All copies of a line are main if the truth has as many. If it has half of them, the other half is uncertain, and
    has a low weight, because nothing distinguishes it from the first.
    """
    blocks = ["Menu", *[text] * 300, "Imprint"]
    assert align(blocks, "\n".join([text] * 300)).main.tolist() == [False, *[True] * 300, False]
    half = align(blocks, "\n".join([text] * 150))
    assert half.main.sum() == 150
    assert half.duplicate.sum() == 150
    assert set(half.weight[half.duplicate].tolist()) == {DUPLICATE_WEIGHT}


def test_coverage_is_the_share_of_words() -> None:
    """Coverage counts the words that are in the truth, in any number of pieces."""
    block = "one two three four five six seven eight nine ten"
    assert align([block], "one two three four five six seven").coverage.tolist() == [0.7]
    assert align([block], "one two three six seven eight nine").coverage.tolist() == [0.7]


def test_a_long_block_of_which_the_truth_leaves_out_lines() -> None:
    """All parts of a code block are found, although the truth lacks its comments."""
    lines = numbered([30, 12, 15, 12, 15])
    code, truth = "\n".join(lines), "\n".join(lines[::2])
    alignment = align(["Before we start", code, "Copy"], f"Before we start\n{truth}")
    assert alignment.main.tolist() == [True, True, False]
    assert alignment.coverage[1] == pytest.approx(60 / 84)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's 4.5 km", ["it", "s", "4", "5", "km"]),
        ("snake_case Größe", ["snake_case", "größe"]),
        ("iPhone 7 は薄い。", ["iphone", "7", "は", "薄", "い"]),
        ("東京へ行くtestです", ["東", "京", "へ", "行", "く", "test", "で", "す"]),
        ("カード々ー", ["カ", "ー", "ド", "々", "ー"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("Привет, мир", ["привет", "мир"]),
        ("★ — …", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    """Tokens are words in text with spaces, and characters in text without."""
    assert tokens(text) == expected


@given(st.lists(st.booleans(), min_size=4, max_size=4))
def test_blocks_without_spaces(choice: list[bool]) -> None:
    """Chinese and Japanese paragraphs are aligned by their characters, whatever the punctuation between them, and also
    if the truth has only most of one.
    """
    blocks = [HAN[i : i + 8] for i in range(0, 32, 8)]
    assert align(blocks, "。".join(chosen(blocks, choice))).main.tolist() == choice
    block = "磁石で着脱、無線にも有線にもなるイヤホンの特許を取得しました"
    alignment = align(["ホーム", block, "次のページ"], "磁石で着脱、無線にも有線にもなるイヤホンの特許")
    assert alignment.main.tolist() == [False, True, False]
    assert 0.7 < alignment.coverage[1] < 1
