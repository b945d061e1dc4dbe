"""On a page with one article, text outside it must be very likely main, and the next article is another page."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.tagger.one_article import BODY, OUTSIDE, with_one_article
from scrapy_dripper.page import read

SENTENCE = "The harbour was closed for the third day in a row because of the storm from the north. "
LONG = f"<p>{SENTENCE * 3}</p>" * 3
TICKER = "<aside><ul><li><p>18:40 A minister has said something about a budget again today.</p></li></ul></aside>"
OTHER = "<p>Another town has other news of its own, which nobody has asked for on this page. </p>" * 4


def labels(body: str, outside: float, favor: str = "balanced") -> list[bool]:
    """Return the labels of the blocks. Those with ``storm`` or ``Storm`` have a probability of 0.95."""
    html = f"<html><head><title>Storm closes the harbour - The Daily</title></head><body>{body}</body></html>"
    page = read(Document(html, "https://example.com/storm"), Config(favor=favor))
    p = np.array([0.95 if "torm" in text else outside for text in page.blocks.text], dtype=np.float32)
    return with_one_article(page, p, np.ones(len(p), dtype=np.bool_)).tolist()


HEADLINE = "<h1>Storm closes the harbour</h1>"
ARTICLE = f"<article>{HEADLINE}{LONG}</article>"
INSIDE = [True] * 4
"""The labels of the headline and the three paragraphs."""


def test_unsure_text_outside_of_the_article_is_dropped() -> None:
    """This applies to text before and after the article."""
    assert labels(TICKER + ARTICLE + TICKER, 0.65) == [False, *INSIDE, False]


@pytest.mark.parametrize(
    ("body", "outside"),
    [
        (ARTICLE + TICKER, OUTSIDE),
        (f"<div>{HEADLINE}{LONG}</div>{TICKER}", 0.65),
        (f"{HEADLINE}<article>{LONG}</article>{TICKER}", 0.65),
        (f"<article>{HEADLINE}<p>A storm.</p></article>{LONG}{TICKER}", 0.65),
        (f"<article>{HEADLINE}{LONG}{TICKER}</article>", 0.65),
    ],
    ids=["sure", "no article", "headline above the article", "an article of a few words", "inside"],
)
def test_labels_do_not_change_in_other_cases(body: str, outside: float) -> None:
    """The article must hold the headline and the text."""
    assert len(SENTENCE.split()) * 9 >= BODY
    assert all(labels(body, outside))


def test_a_user_who_favors_recall_keeps_it() -> None:
    assert all(labels(ARTICLE + TICKER, 0.65, favor="recall"))


def test_the_next_article_is_another_page() -> None:
    """This holds for any probability. Parts of it outside an <article> must also be very likely main."""
    following = f"<article><h1>Other news</h1>{OTHER}</article>"
    assert labels(ARTICLE + following, 0.99) == INSIDE + [False] * 5
    assert labels(f"<main>{ARTICLE}<div>{following}</div></main>{TICKER}", 0.99) == [*INSIDE, *[False] * 5, True]


def test_cards_and_sections_are_not_the_next_article() -> None:
    """A section has no <article>, and a comment has no h1."""
    sections = f"<section><h1>Other news</h1>{OTHER}</section>"
    comments = f"<article><h3>Anna says</h3>{OTHER}</article>"
    assert all(labels(f"<article>{HEADLINE}{LONG}{sections}</article>{comments}", 0.99))
    assert all(labels(f"<article>{HEADLINE}{LONG}<article><h1>Box</h1><p>Few words.</p></article></article>", 0.99))
