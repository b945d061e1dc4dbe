"""Restrict a page to one article: if the headline is in an ``<article>``, text outside it must be very likely main.

News sites put tickers, teasers and whole further articles below an article. Block by block, these look like content.
Only their position gives them away.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.headline import headline
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.tags import TAGS

Bools = npt.NDArray[np.bool_]

OUTSIDE = 0.8
"""Minimum probability of a main block outside the article."""
BODY = 60
"""Minimum number of main words in the article."""
NEXT = 30
"""The same for a further article."""

_ARTICLE, _H1 = TAGS["article"], TAGS["h1"]


def with_one_article(page: Page, probabilities: npt.NDArray[np.float32], main: Bools) -> Bools:
    """Return the labels of a page of type ``article``, without text that is not part of its own article.

    All arrays have shape (n,) for the page's n blocks. The labels do not change if the headline is not in an
    ``<article>``, or in one with little text. Blocks outside the article are only main if their probability is at least
    :data:`OUTSIDE`. Nothing is main in a further ``<article>`` with an ``h1``: with infinite scrolling, that is another
    page.
    """
    tree, context = page.tree, page.blocks.context
    articles = np.flatnonzero(tree.tag == _ARTICLE)
    if not len(articles) or not main.any():
        return main
    starts, ends = tree.block_start[articles], tree.block_end[articles]
    places = np.flatnonzero(main)
    heads = tree.tag[context] == _H1
    if heads.sum() < 2 and ((starts <= places[0]) & (places[-1] < ends)).any():
        return main
    found = headline(page, main)
    if found is None:
        return main
    around = np.flatnonzero((starts <= found) & (found < ends))
    if not len(around):
        return main
    own = slice(starts[around[-1]], ends[around[-1]])  # the innermost, as nodes are in document order
    words = np.array([len(page.blocks.text[i].split()) if main[i] else 0 for i in range(len(main))])
    if words[own].sum() < BODY:
        return main
    labels: Bools = main.copy() if page.wishes.favor == "recall" else main & (probabilities >= OUTSIDE)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        is_apart = end <= own.start or start >= own.stop
        if is_apart and heads[start:end].any() and words[start:end].sum() >= NEXT:
            labels[start:end] = False
    labels[own] = main[own]
    return labels
