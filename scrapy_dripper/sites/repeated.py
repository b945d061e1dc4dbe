"""Find furniture among main blocks: text that other pages of the site have in the same place."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.sites.places import Bools, Hashes

SHARE = 0.8
"""Minimum share of repeated text in the element around a block. A theme repeats whole elements. If an author repeats a
sentence or a heading, the text around it is new."""
LEAST_WORDS = 60
"""Minimum number of words of main content that must remain. With fewer words, the page is a copy of others."""
LEAST_SHARE = 0.1
"""Minimum share of the words of main content that must remain."""
MOST_WORDS_ABOVE = 60
"""Maximum number of words of furniture above the page's own text, such as a notice; words in a ``<nav>`` do not count.
Longer repeated text is an article that lists of the site show in full. It is the main content of this page, even if
comments follow.
"""
OWN_WORDS = 10
"""Minimum number of words in a block of the page's own text, as opposed to a date or a label."""

_words = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+").findall


def furniture(page: Page, main: Bools, found: Hashes, known: Hashes) -> Bools:
    """Return which main blocks are furniture of the site. All arrays except ``known`` have shape (n,) for n blocks.

    ``found`` is the result of :func:`~scrapy_dripper.sites.places.places`, and ``known`` has the hashes from
    :meth:`SiteMemory.known`.
    """
    none = np.zeros(len(main), dtype=np.bool_)
    repeated = np.isin(found, known)
    if not (repeated & main).any():
        return none
    chars = np.fromiter(map(len, page.blocks.text), dtype=np.int64, count=len(main))
    of_all, of_repeated = _sums(chars), _sums(chars * repeated)
    taken = none.copy()
    for i in np.flatnonzero(repeated & main).tolist():
        first, end = _around(page, i)
        taken[i] = of_repeated[end] - of_repeated[first] >= SHARE * (of_all[end] - of_all[first])
    words = np.zeros(len(main), dtype=np.int64)
    for i in np.flatnonzero(main).tolist():
        words[i] = len(_words(page.blocks.text[i]))
    whole = words.sum()
    own = np.flatnonzero(main & ~repeated & (words >= OWN_WORDS))
    above = slice(own[0] if len(own) else None)
    navigation = (page.tree.flags[page.blocks.context] & Flag.NAV) > 0
    if words[above][taken[above] & ~navigation[above]].sum() > MOST_WORDS_ABOVE:
        taken[above] = False
    left = whole - words[taken].sum()
    return taken if left >= max(LEAST_WORDS, LEAST_SHARE * whole) else none


def _around(page: Page, block: int) -> tuple[int, int]:
    """Return the range of blocks of the innermost element that holds more than a block: the first, and one past the
    last."""
    tree = page.tree
    node = int(page.blocks.context[block])
    while node >= 0 and tree.block_end[node] - tree.block_start[node] <= 1:
        node = int(tree.parent[node])
    return (int(tree.block_start[node]), int(tree.block_end[node])) if node >= 0 else (block, block + 1)


def _sums(values: npt.NDArray[np.int64]) -> list[int]:
    sums: list[int] = np.concatenate(([0], np.cumsum(values))).tolist()
    return sums
