"""Titles of panels and parts of lists have the label of what belongs to them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.tagger.panels import with_parts, with_titles
from scrapy_dripper.page import read

TEXT = "A long answer about the ferry, the pier and the morning."


def added(step: Callable[..., np.ndarray], body: str, chances: list[float], main: list[int]) -> list[int]:
    """Return the numbers of the blocks that become main."""
    page = read(Document(f"<html><body>{body}</body></html>"), Config())
    before = np.zeros(len(page.blocks), dtype=np.bool_)
    before[main] = True
    after = step(page, np.array(chances, dtype=np.float32), before)
    assert (after | ~before).all()
    return np.flatnonzero(after & ~before).tolist()


@pytest.mark.parametrize(
    "opener",
    [
        "<h3><button aria-controls=p aria-expanded=false>Fares</button></h3>",
        "<div><a role=button href=#p>Fares</a></div>",
        "<div><button data-bs-target=#p>Fares</button></div>",
        "<div><a role=tab href=#p>Fares</a></div>",
    ],
)
def test_a_title_belongs_to_its_panel(opener: str) -> None:
    body = f"{opener}<div id=p><p>{TEXT}</p></div>"

    assert added(with_titles, body, [0.3, 0.9], [1]) == [0]
    assert added(with_titles, body, [0.1, 0.9], [1]) == []  # the model is sure that it is none
    assert added(with_titles, body, [0.3, 0.4], []) == []


@pytest.mark.parametrize(
    "opener",
    [
        "<div><a href=#p>Fares</a></div>",  # a table of contents
        "<nav><button aria-controls=p>Menu</button></nav>",
        f"<div><button aria-controls=p>{'Fares ' * 50}</button></div>",
    ],
)
def test_what_opens_no_panel(opener: str) -> None:
    assert added(with_titles, f"{opener}<div id=p><p>{TEXT}</p></div>", [0.3, 0.9], [1]) == []


def test_parts_of_a_list_are_main_together() -> None:
    entries = "".join(f"<li><div><p>{TEXT}</p></div></li>" for _ in range(3))

    assert added(with_parts, f"<ul>{entries}</ul>", [0.6, 0.55, 0.45], [0, 1]) == [2]
    assert added(with_parts, f"<ul>{entries}</ul>", [0.9, 0.9, 0.45], [0, 1]) == []  # too far from the others
    assert added(with_parts, f"<ul>{entries}</ul>", [0.6, 0.45, 0.45], [0]) == []  # most are not


def test_paragraphs_of_a_text_are_no_parts() -> None:
    assert added(with_parts, f"<div>{f'<p>{TEXT}</p>' * 3}</div>", [0.6, 0.55, 0.45], [0, 1]) == []
