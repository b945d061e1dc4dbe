"""Holes, runs of paragraphs, titles of panels and parts of lists have the label of what they belong to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from scrapy_dripper.choose.scored import Labels, ScoredPage
from scrapy_dripper.choose.siblings import with_continued, with_holes, with_parts, with_titles
from scrapy_dripper.testing import page as page_of

SENTENCE = "The ferry leaves the northern pier at nine in the morning."
TEXT = "A long answer about the ferry, the pier and the morning."


def added(step: Callable[..., np.ndarray], body: str, chances: list[float], main: list[int]) -> list[int]:
    """Return the numbers of the blocks that become main."""
    page = page_of(body)
    before = np.zeros(len(page.blocks), dtype=np.bool_)
    before[main] = True
    size = np.array([len(text.split()) for text in page.blocks.text], dtype=np.float32)
    after = step(ScoredPage(page, Labels(np.array(chances, dtype=np.float32), sizes=size)), before)
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


def test_tabs_belong_to_the_panels_in_their_order() -> None:
    tabs = "<div role=tablist><button role=tab>Adults</button><button role=tab>Children</button></div>"
    panels = f"<div role=tabpanel><p>{TEXT}</p></div><div role=tabpanel><p>{TEXT} Half of that.</p></div>"

    assert added(with_titles, tabs + panels, [0.3, 0.3, 0.9, 0.9], [2, 3]) == [0, 1]
    assert added(with_titles, tabs + panels, [0.3, 0.3, 0.9, 0.4], [2]) == [0]
    assert added(with_titles, panels + tabs, [0.9, 0.9, 0.3, 0.3], [0, 1]) == []


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


@pytest.mark.parametrize(
    ("control", "slides"),
    [
        ("<button aria-controls=p data-slide=prev>", "<div id=p>"),
        ("<a role=button href=#p data-bs-slide-to=0>", "<div id=p>"),
        ("<button aria-controls=p class='arrow swiper-button-next'>", "<div id=p>"),
        ("<button aria-controls=p>", "<div id=p class=my-carousel__track>"),
        ("<a role=tab href=#p>", "<div id=p role=group aria-roledescription=slide>"),
        ("<button role=tab>", "<div role=tabpanel aria-roledescription=slide>"),
    ],
)
def test_what_turns_a_carousel_is_no_title(control: str, slides: str) -> None:
    body = f"<div>{control}Older pictures</a></button></div>{slides}<p>{TEXT}</p></div>"

    assert added(with_titles, body, [0.3, 0.9], [1]) == []


ENTRIES = f"<ul>{f'<li><div><p>{TEXT}</p></div></li>' * 3}</ul>"


@pytest.mark.parametrize(
    ("body", "chances", "main", "expected"),
    [
        (ENTRIES, [0.6, 0.55, 0.45], [0, 1], [2]),
        (ENTRIES, [0.9, 0.9, 0.45], [0, 1], []),  # too far from the others
        (ENTRIES, [0.6, 0.45, 0.45], [0], []),  # most are not
        (f"<div>{f'<p>{TEXT}</p>' * 3}</div>", [0.6, 0.55, 0.45], [0, 1], []),  # paragraphs of a text are no parts
    ],
)
def test_parts_of_a_list_are_main_together(
    body: str, chances: list[float], main: list[int], expected: list[int]
) -> None:
    assert added(with_parts, body, chances, main) == expected


@pytest.mark.parametrize(
    ("probabilities", "main", "filled"),
    [
        ([0.9, 0.6, 0.9], [0, 2], [1]),
        ([0.9, 0.45, 0.6, 0.9], [0, 3], [1, 2]),
        ([0.9, 0.3, 0.9], [0, 2], []),  # likelier not
        ([0.9, 0.3, 0.8, 0.9], [0, 3], []),  # one is not
        ([0.9, *[0.6] * 7, 0.9], [0, 8], []),  # a part of its own
        ([0.6, 0.9, 0.6], [1], []),  # at the ends the cut decides
        ([0.6, 0.6], [], []),
    ],
)
def test_likely_blocks_between_main_blocks_become_main(
    probabilities: list[float], main: list[int], filled: list[int]
) -> None:
    assert added(with_holes, "<p>a" * len(probabilities), probabilities, main) == filled


def paragraphs(n: int) -> str:
    return f"<div>{f'<p>{SENTENCE}</p>' * n}</div>"


@pytest.mark.parametrize(
    ("body", "chances", "expected"),
    [
        (paragraphs(6), [0.8, 0.7, 0.6, 0.5, 0.4, 0.35], [1, 2, 3, 4, 5]),
        (f"<div><p>{SENTENCE}</p><h2>Heading</h2><p>{SENTENCE}</p></div>", [0.5, 0.1, 0.4], [2]),
        (paragraphs(3), [0.9, 0.5, 0.45], []),
        (paragraphs(3), [0.35, 0.25, 0.2], []),
        (paragraphs(1) + paragraphs(2), [0.5, 0.45, 0.45], []),
        (f"<div><p>{SENTENCE}</p><p class=more>{SENTENCE}</p></div>", [0.5, 0.45], []),
        (f"<div><p>{SENTENCE}</p><p hidden>{SENTENCE}</p></div>", [0.5, 0.45], []),
        ("<p>One", [0.9], []),
    ],
    ids=["sinking", "short block between", "fall", "unlikely", "parent", "shape", "hidden", "no paragraphs"],
)
def test_a_text_continues(body: str, chances: list[float], expected: list[int]) -> None:
    """Until the probability falls sharply, or the next paragraph is unlikely, elsewhere, of another shape or hidden."""
    assert added(with_continued, body, chances, [0]) == expected
