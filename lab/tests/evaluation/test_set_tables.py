"""The tables that compare systems by groups of pages."""

from __future__ import annotations

from pathlib import Path

from scrapy_dripper_lab.evaluation.figures import MEAN_OF_SETS, NOT_DECLARED, OTHER_LANGUAGES, set_tables
from scrapy_dripper_lab.scores import score
from scrapy_dripper_lab.sets import AnnotatedPage


def sample(name: str, part: str, language: str, words: int, folder: Path) -> AnnotatedPage:
    path = folder / f"{name}.html"
    path.write_text("<html lang='fi-FI'>" if language == "" else "<html>")
    return AnnotatedPage(name, "", "", path, "w " * words, (), (), "article", "", part=part, language=language)


def test_the_rows_of_the_table(tmp_path: Path) -> None:
    """Rows by set, which count equally in the mean; by language, which may come from the page; and by length."""
    samples = [sample(f"a{i}", "first", "", 149, tmp_path) for i in range(12)]
    samples += [sample("b0", "second", "de", 150, tmp_path), sample("b1", "second", "", 600, tmp_path)]
    samples[-1].path.write_text("<html>")
    right = {s.id: score(s.truth, s.truth) for s in samples}
    wrong = {s.id: score("" if s.part == "second" else s.truth, s.truth) for s in samples}

    by_set, by_language, by_length = set_tables(samples, {"ours": wrong, "peer": right})

    first, second, mean = by_set.records()
    assert (first["set"], first["pages"], first["word F1"], first["< 0.5"]) == ("first", 12, 1, 0)
    assert (second["pages"], second["< 0.5"], second["peer WCXB F1"]) == (2, 1, 1)
    assert (mean["set"], mean["pages"], mean["word F1"]) == (MEAN_OF_SETS, 14, 0.5)
    assert second["F1 less peer"] == -1
    assert mean["F1 less peer"] is None
    assert [row[:2] for row in by_language.rows] == [["fi", 12], [NOT_DECLARED, 1], [OTHER_LANGUAGES, 1]]
    assert [row[:2] for row in by_length.rows] == [["under 150 words", 12], ["150 to 299", 1], ["600 words or more", 1]]
    assert "| second | 2 | 0.0000 |" in by_set.markdown()
    assert len({line.count("|") for line in by_set.markdown().splitlines()}) == 1
