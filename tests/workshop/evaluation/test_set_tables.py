"""The neutral score, and the table of several sets."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.workshop.dataset.metrics import ScoreRow, neutral_prf, page_title, score, without_title, word_prf
from scrapy_dripper.workshop.dataset.sets import Sample
from scrapy_dripper.workshop.evaluation.figures import MEAN, OTHERS, UNKNOWN, set_tables

TITLE = "A bridge over the river"


@pytest.mark.parametrize(
    ("prediction", "truth"),
    [
        (f"{TITLE}\nIt was built.", "It was built."),
        (f"{TITLE}\nIt was built.", f"{TITLE}\nIt was built."),
        ("Home\na bridge over the RIVER\nIt was built.", "Home It was built."),
        ("bridge over the river\nIt was built.", "It was built."),
    ],
)
def test_the_title_is_neutral(prediction: str, truth: str) -> None:
    """A text scores 1 with the title, with part of it, or without it."""
    assert neutral_prf(prediction, truth, [TITLE]).f1 == 1


def test_what_is_no_title_counts() -> None:
    """Another headline, one further down and a single word of it count; a headline in the truth must not be lost."""
    assert neutral_prf("It was built.", f"{TITLE}\nIt was built.", [TITLE]).recall == 3 / 8
    assert without_title("A bridge over the sea\nx", TITLE) == "A bridge over the sea\nx"
    assert without_title(f"a\nb\nc\n{TITLE}", TITLE) == f"a\nb\nc\n{TITLE}"
    assert without_title("river\nx", TITLE) == "river\nx"
    assert neutral_prf("river x", "x", [TITLE]).precision == 0.5


def test_characters_of_chinese_and_japanese_are_words() -> None:
    """A wrong character costs itself, not the whole sentence."""
    assert neutral_prf("日本語です", "日本語だ").precision == pytest.approx(3 / 5)
    assert word_prf("日本語です", "日本語だ").precision == 0


texts = st.lists(st.sampled_from(["a", "b", "c", "\n"]), max_size=12).map(" ".join)


@given(texts, texts, texts)
def test_a_title_never_lowers_the_score(prediction: str, truth: str, title: str) -> None:
    """The score is the best of several readings, one of which has no title."""
    assert neutral_prf(prediction, truth, [title]).f1 >= word_prf(prediction, truth).f1 - 1e-12


def test_the_title_of_a_page() -> None:
    assert page_title("<html><TITLE id=x>Caf\u00e9 &amp;\n bar</title>".encode("latin-1")) == "Café & bar"
    assert page_title(b"<title>never ends") == ""


def sample(name: str, part: str, language: str, words: int, folder: Path) -> Sample:
    path = folder / f"{name}.html"
    path.write_text("<html lang='fi-FI'>" if language == "" else "<html>")
    return Sample(name, "", "", path, "w " * words, (), (), "article", "", part=part, language=language)


def test_the_rows_of_the_table(tmp_path: Path) -> None:
    """Rows by set, which count equally in the mean; by language, which may come from the page; and by length."""
    samples = [sample(f"a{i}", "first", "", 149, tmp_path) for i in range(12)]
    samples += [sample("b0", "second", "de", 150, tmp_path), sample("b1", "second", "", 600, tmp_path)]
    samples[-1].path.write_text("<html>")
    right = {s.id: score(s.id, "article", s.truth, s.truth) for s in samples}
    wrong = {s.id: score(s.id, "article", "" if s.part == "second" else s.truth, s.truth) for s in samples}

    by_set, by_language, by_length = set_tables(samples, {"ours": wrong, "peer": right})

    first, second, mean = by_set.records()
    assert (first["set"], first["pages"], first["word F1"], first["< 0.5"]) == ("first", 12, 1, 0)
    assert (second["pages"], second["< 0.5"], second["peer WCXB F1"]) == (2, 1, 1)
    assert (mean["set"], mean["pages"], mean["word F1"]) == (MEAN, 14, 0.5)
    assert second["F1 less peer"] == -1
    assert mean["F1 less peer"] is None
    assert [row[:2] for row in by_language.rows] == [["fi", 12], [UNKNOWN, 1], [OTHERS, 1]]
    assert [row[:2] for row in by_length.rows] == [["under 150 words", 12], ["150 to 299", 1], ["600 words or more", 1]]
    assert "| second | 2 | 0.0000 |" in by_set.markdown()
    assert len({line.count("|") for line in by_set.markdown().splitlines()}) == 1


def test_one_system_alone(tmp_path: Path) -> None:
    """A single system, without any to compare with, is not an error."""
    one = sample("a", "first", "de", 3, tmp_path)
    row: ScoreRow = score("a", "article", "w", one.truth)
    (table, *_) = set_tables([one], {"ours": {"a": row}})
    assert "first" in table.text()
    assert "less" not in table.text()
