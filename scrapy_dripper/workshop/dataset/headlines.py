"""Find the headline among the blocks of a page."""

from __future__ import annotations

from collections import Counter

from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.workshop.dataset.alignment import tokens
from scrapy_dripper.workshop.dataset.metrics import TITLE_SHARE, is_title

SITE_TITLE_SHARE = 1 / 3
"""A heading with at least this share of ``<title>`` is the headline. The rest is the name of the site."""


def headlines(page: Page, title: str) -> list[int]:
    """Return the blocks that are headings with the words of the title.

    If the title is unknown, ``<title>`` is used, which may have other words in addition to the headline.
    """
    want = Counter(tokens(title or page.title or ""))
    found = []
    for i, text in enumerate(page.blocks.text):
        if page.tree.flags[page.blocks.context[i]] & Flag.HEADING:
            have = Counter(tokens(text))
            if is_title(have, want, TITLE_SHARE if title else SITE_TITLE_SHARE):
                found.append(i)
    return found
