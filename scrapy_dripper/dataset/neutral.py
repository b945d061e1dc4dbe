"""Word F1 for sets of pages whose conventions and languages differ.

Some ground truths begin with the headline and some leave it out, so it is neutral where the truth has it not: the best
of the scores with and without it counts. Han characters and kana are words, because Chinese and Japanese put no spaces
between theirs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from html import unescape

from scrapy_dripper.dataset.prf import PRF, bag_prf
from scrapy_dripper.page.decode import decode

TITLE_LINES = 3
"""The title is looked for in so many lines at the beginning of a text."""
TITLE_SHARE = 0.6
"""A line with so much of the title, and nothing else, is the title: sites add their name to it."""

_words = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+").findall
_title = re.compile(r"<title\b[^>]{0,500}>(.{0,900}?)</title", re.I | re.S).search


def words(text: str) -> list[str]:
    """Return the lower-case words of a text."""
    return _words(text.lower())


def neutral_prf(prediction: str, truth: str, titles: Iterable[str] = ()) -> PRF:
    """Return how well the bags of words agree, best over the prediction with and without a title.

    Titles are what the annotation and the page itself say; the truth is also tried with the first of them in front. A
    headline that the truth has is missed by a prediction without it. All three figures are 1 where both texts are empty
    and 0 where one is.
    """
    names = [title for title in titles if title]
    predictions = {prediction, *(without_title(prediction, name) for name in names)}
    truths = [truth, *(f"{name}\n{truth}" for name in names[:1])]
    bags = [Counter(words(text)) for text in truths]
    return max((bag_prf(Counter(words(text)), bag) for text in predictions for bag in bags), key=lambda prf: prf.f1)


def without_title(text: str, title: str) -> str:
    """Return a text without the first of its first lines that is the title, or most of it."""
    lines, want = text.split("\n"), Counter(words(title))
    for i, line in enumerate(lines[:TITLE_LINES]):
        if is_title(Counter(words(line)), want):
            return "\n".join(lines[:i] + lines[i + 1 :])
    return text


def is_title(have: Counter[str], want: Counter[str], share: float = TITLE_SHARE) -> bool:
    """Return True if some words are the title's, or at least a share of them, and no others."""
    return bool(have) and have.total() >= share * want.total() and have <= want


def page_title(html: bytes) -> str:
    """Return what the ``title`` element of a page says, empty if there is none."""
    match = _title(decode(html, None))
    return " ".join(unescape(match[1]).split()) if match else ""
