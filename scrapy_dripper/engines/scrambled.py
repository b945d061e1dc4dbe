"""Remove scrambled labels such as "Sponsored" from the main content."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Flag, Page

Bools = npt.NDArray[np.bool_]

LEAST = 4
"""Minimum number of UUIDs in a scrambled label."""
LONGEST = 2
"""Maximum length of its other words. They are single letters, perhaps with punctuation."""

_uuid = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I).fullmatch  # RFC 9562
_LISTED = Flag.CODE | Flag.PREFORMATTED | Flag.TABLE
"""Elements in which UUIDs are content."""


def without_scrambled(page: Page, main: Bools) -> Bools:
    """Return the labels, with False for blocks that are scrambled. All arrays have shape (n,) for n blocks.

    Some shops write labels such as "Sponsored" as single letters, each followed by a UUID that a style sheet hides, so
    that filters do not recognise them. Readers see one word, and the source has a hundred words of noise.
    """
    found = [i for i in np.flatnonzero(main).tolist() if _is_scrambled(page.blocks.text[i])]
    if not found:
        return main
    flags = page.tree.flags[page.blocks.context]
    labels: Bools = main.copy()
    labels[[i for i in found if not flags[i] & _LISTED]] = False
    return labels


def _is_scrambled(text: str) -> bool:
    if text.count("-") < 4 * LEAST:
        return False
    words = text.split()
    ids = sum(_uuid(word) is not None for word in words)
    return ids >= LEAST and ids == sum(len(word) > LONGEST for word in words)
