"""Augmented copies of pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_dripper_lab.sets import AnnotatedPage, SetChoice, load_set
from scrapy_dripper_lab.training.augment import KINDS, make_copies
from scrapy_dripper_lab.training.measure import splits
from scrapy_dripper_lab.training.prepare import example
from tests.learning.pages import WORDS, write_listed


@pytest.fixture
def pages(tmp_path: Path) -> list[AnnotatedPage]:
    """Twenty pages of each of four types, each of which has its own words."""
    for i in range(80):
        kind = ("article", "forum", "listing", "product")[i % 4]
        lines = [f"Page {i} says of the {word} number {n} what nobody else ever says." for n, word in enumerate(WORDS)]
        half = len(lines) // 2
        parts = [[f"One of {i}", *lines[:half]], [f"Two of {i}", *lines[half:]]]
        body = "".join(
            f"<h2>{head}</h2>" + "".join(f"<p class='text'>{one}</p>" for one in rest) for head, *rest in parts
        )
        html = (
            f"<title>Title of page {i} - T</title><nav id=menu><a href=/>Home</a></nav><main><article>"
            f"<h1>Title of page {i}</h1>{body}</article></main><p>Imprint</p>"
        )
        text = "\n".join([f"Title of page {i}", *parts[0], *parts[1]])
        record = {"id": f"p{i}", "host": f"h{i}.example", "text": text, "kind": kind, "train": True}
        write_listed(tmp_path / "pages", html, record | {"title": f"Title of page {i}"})
    return list(load_set(SetChoice(tmp_path / "pages")).samples)


def test_what_was_main_stays_main(pages: list[AnnotatedPage], tmp_path: Path) -> None:
    """Copies have more blocks around the main ones, or fewer names. Text of other pages is only main in an
    introduction.
    """
    copies = make_copies([pages], tmp_path / "copies", 1)

    of = {page.id: page for page in pages}
    for copy in copies:
        kind = copy.id.rpartition("+")[2]
        before, after = example(of[copy.copy_of]), example(copy)
        assert before is not None
        assert after is not None
        if kind in ("cards", "forums", "next"):
            assert len(after.main) > len(before.main) + 2
            assert after.main.sum() == before.main.sum()
        elif kind == "listings":
            assert after.main.sum() == before.main.sum() + 1
        elif kind == "runs":  # of like siblings: a few of them, or many
            assert abs(len(after.main) - len(before.main)) == abs(int(after.main.sum()) - int(before.main.sum())) > 0
        elif kind == "ends":
            assert len(before.main) > len(after.main)
            assert after.main.sum() < before.main.sum()
        elif kind in ("heads", "offers"):  # short facts below the headline
            assert after.main.sum() > before.main.sum()
        elif kind in ("names", "panels", "verses"):
            assert (len(after.main), after.main.sum()) == (len(before.main), before.main.sum())
        else:
            assert 1 <= after.main.sum() <= 5
    text = {copy.id.rpartition("+")[2]: copy.path.read_text() for copy in copies}
    assert "<br>" in text["verses"]
    assert "Two of " in text["panels"]
    assert not any(f"<h2>Two of {page.id[1:]}</h2>" in text["panels"] for page in pages)
    assert {copy.id.rpartition("+")[2] for copy in copies} == set(KINDS)
    assert not any(copy.measure for copy in copies)
    names = [copy.path.read_text() for copy in copies if copy.id.endswith("+names")]
    assert any("<article" not in text for text in names)
    assert any("class=" not in text for text in names)


def test_copies_are_the_same_each_time_and_keep_to_their_fold(pages: list[AnnotatedPage], tmp_path: Path) -> None:
    """No copy mixes folds, and the model of a fold sees no copy of the pages that it is measured on."""
    known = {page.id for page in pages}
    folds, _ = splits(pages, known, 3)
    of = {page.id: page for page in pages}
    groups = [[of[name] for name in fold.measured] for fold in folds]

    copies = make_copies(groups, tmp_path / "one", 1)

    again = make_copies(groups, tmp_path / "two", 1)
    assert [copy.path.read_text() for copy in copies] == [copy.path.read_text() for copy in again]
    home = {page.id: k for k, group in enumerate(groups) for page in group}
    for copy in copies:
        text = copy.path.read_text()
        named = {i for i in known if f"Title of page {i[1:]}<" in text}
        assert {home[i] for i in named} <= {home[copy.copy_of]}
    everything = [*pages, *copies]
    for fold in splits(everything, {one.id for one in everything}, 3)[0]:
        shut = set(fold.measured)
        assert not {copy.id for copy in copies if copy.copy_of in shut} & set(fold.seen)
        assert {copy.id for copy in copies if copy.copy_of in shut} <= set(fold.held)
