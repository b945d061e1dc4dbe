"""Find furniture among main blocks: what stands in the same place on other pages of the site."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Page
from scrapy_dripper.sites.places import Bools, Hashes

SHARE = 0.8
"""Minimum share of the text of the element around a block that must be repeated. An author repeats a sentence or a
heading among others of the page; what a theme repeats stands together."""
LEAST_WORDS = 60
"""Minimum number of words of main content that must be left. Less means that this page is a copy of others."""
LEAST_SHARE = 0.1
"""Minimum share of the words of the main content that must be left."""
MOST_WORDS_ABOVE = 60
"""Maximum number of words of furniture above the page's own text: that of a notice. More is an article that lists of
the site show in full; it is the main content of its own page, whatever comments stand below it."""
OWN_WORDS = 10
"""Minimum number of words in a block that is text of the page itself, and not a date or a label."""

_words = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+").findall


def furniture(page: Page, main: Bools, found: Hashes, known: Hashes) -> Bools:
    """Return which main blocks are furniture of the site. All arrays but ``known`` have shape (n,) for n blocks.

    ``found`` are the hashes of :func:`~scrapy_dripper.sites.places.places`, and ``known`` those that
    :meth:`SiteMemory.known` returns.
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
    if words[above][taken[above]].sum() > MOST_WORDS_ABOVE:
        taken[above] = False
    left = whole - words[taken].sum()
    return taken if left >= max(LEAST_WORDS, LEAST_SHARE * whole) else none


def _around(page: Page, block: int) -> tuple[int, int]:
    """Return the first block of the innermost element that holds more than a block, and one past its last one."""
    tree = page.tree
    node = int(page.blocks.context[block])
    while node >= 0 and tree.block_end[node] - tree.block_start[node] <= 1:
        node = int(tree.parent[node])
    return (int(tree.block_start[node]), int(tree.block_end[node])) if node >= 0 else (block, block + 1)


def _sums(values: npt.NDArray[np.int64]) -> list[int]:
    sums: list[int] = np.concatenate(([0], np.cumsum(values))).tolist()
    return sums
