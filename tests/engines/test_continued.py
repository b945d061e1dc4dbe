"""A text does not stop in the middle of a run of paragraphs."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.tagger.continued import with_continued
from scrapy_dripper.page import read

SENTENCE = "The ferry leaves the northern pier at nine in the morning."


def added(body: str, chances: list[float], main: list[int]) -> list[int]:
    """Return the numbers of the blocks that become main."""
    page = read(Document(f"<html><body>{body}</body></html>"), Config())
    before = np.zeros(len(page.blocks), dtype=np.bool_)
    before[main] = True
    size = np.array([len(text.split()) for text in page.blocks.text], dtype=np.float32)
    after = with_continued(page, np.array(chances, dtype=np.float32), size, before)
    assert (after | ~before).all()
    return np.flatnonzero(after & ~before).tolist()


def paragraphs(n: int) -> str:
    return f"<div>{f'<p>{SENTENCE}</p>' * n}</div>"


def test_sinking_probabilities_do_not_end_a_text() -> None:
    assert added(paragraphs(6), [0.8, 0.7, 0.6, 0.5, 0.4, 0.35], [0, 1, 2]) == [3, 4, 5]


def test_short_blocks_are_passed_over() -> None:
    body = f"<div><p>{SENTENCE}</p><h2>Heading</h2><p>{SENTENCE}</p></div>"

    assert added(body, [0.5, 0.1, 0.4], [0]) == [2]


@pytest.mark.parametrize(
    ("body", "chances"),
    [
        (paragraphs(3), [0.9, 0.5, 0.45]),  # a sharp fall
        (paragraphs(3), [0.35, 0.25, 0.2]),  # too unlikely
        (paragraphs(1) + paragraphs(2), [0.5, 0.45, 0.45]),  # another parent
        (f"<div><p>{SENTENCE}</p><p class=more>{SENTENCE}</p></div>", [0.5, 0.45]),  # another shape
        (f"<div><p>{SENTENCE}</p><p hidden>{SENTENCE}</p></div>", [0.5, 0.45]),
    ],
    ids=["fall", "unlikely", "parent", "shape", "hidden"],
)
def test_what_ends_a_text(body: str, chances: list[float]) -> None:
    assert added(body, chances, [0]) == []


def test_a_page_without_paragraphs() -> None:
    assert added("<p>One", [0.9], [0]) == []
