"""Word F1 for sets of pages with different conventions and languages.

Some ground truths begin with the headline, and some leave it out. If the ground truth leaves it out, the headline is
neutral: the better score, with or without it, counts. Each Han character or kana is a word, because Chinese and
Japanese have no spaces between words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from html import unescape

from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.workshop.dataset.prf import PRF, bag_prf

TITLE_LINES = 3
"""Number of lines at the beginning of a text in which to search for the title."""
TITLE_SHARE = 0.6
"""A line with at least this share of the title's words, and no others, is the title. Sites add their name to titles."""

_words = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+").findall
_title = re.compile(r"<title\b[^>]{0,500}>(.{0,900}?)</title", re.I | re.S).search


def words(text: str) -> list[str]:
    """Return the lower-case words of a text."""
    return _words(text.lower())


def neutral_prf(prediction: str, truth: str, titles: Iterable[str] = ()) -> PRF:
    """Compare the bags of words, and return the best score over the prediction with and without a title.

    ``titles`` are those of the annotation and of the page itself. The truth is also tried with the first title in
    front. If the truth has a headline, a prediction without it loses recall. All three values are 1 if both texts are
    empty, and 0 if one of them is.
    """
    names = [title for title in titles if title]
    predictions = {prediction, *(without_title(prediction, name) for name in names)}
    truths = [truth, *(f"{name}\n{truth}" for name in names[:1])]
    bags = [Counter(words(text)) for text in truths]
    return max((bag_prf(Counter(words(text)), bag) for text in predictions for bag in bags), key=lambda prf: prf.f1)


def without_title(text: str, title: str) -> str:
    """Return a text without the first of its leading lines that is the title, or most of it."""
    lines, want = text.split("\n"), Counter(words(title))
    for i, line in enumerate(lines[:TITLE_LINES]):
        if is_title(Counter(words(line)), want):
            return "\n".join(lines[:i] + lines[i + 1 :])
    return text


def is_title(have: Counter[str], want: Counter[str], share: float = TITLE_SHARE) -> bool:
    """Return True if words are those of the title, or at least a share of them, and no others."""
    return bool(have) and have.total() >= share * want.total() and have <= want


def page_title(html: bytes) -> str:
    """Return the text of the ``title`` element of a page, or an empty string."""
    match = _title(decode_html(html, None))
    return " ".join(unescape(match[1]).split()) if match else ""
