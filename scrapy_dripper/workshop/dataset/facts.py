"""The share of a page's facts that an extraction keeps: for pages of which only some main content is known.

A fact counts if its words stand in the visible text of the page, and is kept if they stand one after the other in the
extraction. A page counts for a kind of facts if at least :data:`VISIBLE` of them are visible.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape

from scrapy_dripper.workshop.dataset.metrics import words

VISIBLE = 0.6

_unseen = re.compile(r"<(script|style|noscript|template)\b(?:.*?</\1\s*>|.*)|<!--(?:.*?-->|.*)", re.I | re.S)
"""As in a browser, an element or a comment without an end takes the rest of the page."""
_tag = re.compile(r"<[^<>]+>")


def visible(html: str) -> str:
    """Return the words of a page's visible text, with a space before and after each."""
    return spaced(_tag.sub(" ", _unseen.sub(" ", html)))


def spaced(text: str) -> str:
    """Return the words of a text in lower case, with a space before and after each."""
    return f" {' '.join(words(_tag.sub(' ', unescape(unescape(text)))))} "


def kept(facts: Mapping[str, Sequence[str]], page: str, text: str) -> dict[str, float]:
    """Return the share of the facts of each kind that a text keeps, for the kinds that count on this page.

    ``page`` is the :func:`visible` text, and ``text`` that of the extraction.
    """
    own = spaced(text)
    shares = {}
    for name, texts in facts.items():
        wanted = {one for one in map(spaced, texts) if one.strip()}
        there = [one for one in wanted if one in page]
        if there and len(there) >= VISIBLE * len(wanted):
            shares[name] = sum(one in own for one in there) / len(there)
    return shares
