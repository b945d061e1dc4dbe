"""Keep or drop readers' comments as configured. They are found by the names of their elements, without a model."""

from __future__ import annotations

import numpy as np

from scrapy_dripper.choose.scored import Bools, ScoredPage
from scrapy_dripper.page.page import Flag
from scrapy_dripper.structures import NEARLY_ALL
from scrapy_dripper.structures.comments import FORUM, in_comments, is_declared_thread

COMMENT_PROBABILITY = 0.01
"""Minimum probability of a comment that is kept. Nearly all text that people write exceeds it."""

_NO_COMMENT = Flag.FORM | Flag.BUTTON | Flag.DIALOG | Flag.HIDDEN | Flag.NOSCRIPT


def with_comments(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with comments added (``keep``) or removed (``drop``). ``auto`` leaves them unchanged.

    Comments are not removed if they are the main content: on forums, and if they are most of the main text. They are
    not added to a page without other main content.
    """
    wish = scored.page.config.comments
    if wish == "auto" or not main.any() or (wish == "drop" and scored.page_type == FORUM):
        return main
    inside = in_comments(scored.page)
    if wish == "keep":
        return main | _spoken(scored, inside)
    return main if _are_main(scored, main, inside) else main & ~inside


def comments_on(scored: ScoredPage, main: Bools) -> Bools:
    """Return which blocks are readers' comments on the main content, whether they are part of it or not.

    There are none where posts are the main content: on forums, and if comments are most of the main text.
    """
    inside = in_comments(scored.page)
    is_main = scored.page.config.comments != "keep" and _are_main(scored, main, inside)  # those were added
    if scored.page_type == FORUM or is_declared_thread(scored.page) or is_main:
        return np.zeros_like(inside)
    return _spoken(scored, inside)


def _spoken(scored: ScoredPage, inside: Bools) -> Bools:
    """Return the blocks in elements for comments that people have written, unless the model is sure that they are no
    content.
    """
    page = scored.page
    spoken = (page.tree.flags[page.blocks.context] & _NO_COMMENT) == 0
    unlinked = page.blocks.link_chars < NEARLY_ALL * scored.chars
    found: Bools = inside & spoken & unlinked & (scored.probabilities >= COMMENT_PROBABILITY)
    return found


def _are_main(scored: ScoredPage, main: Bools, inside: Bools) -> bool:
    """Return True if comments are most of the main text."""
    size = scored.chars
    return bool(2 * size[main & inside].sum() > size[main].sum())
