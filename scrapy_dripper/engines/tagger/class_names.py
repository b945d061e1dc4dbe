"""Search the classes and ids of all elements of a page at once."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

LONGEST = 512
"""Maximum length of a name to search, in characters."""


def found_in(name: str, pattern: re.Pattern[str]) -> bool:
    """Return True if a pattern is found in a name, with white space before it.

    A pattern that must match white space or a hyphen before a word is many times faster than one that may also match
    the beginning of the text.
    """
    return pattern.search(f"\n{name[:LONGEST]}") is not None


def matching(names: Iterable[str], pattern: re.Pattern[str]) -> set[str]:
    """Return the names in which a pattern is found (:func:`found_in`).

    All names are searched as one text, because most patterns are not in any name of most pages.
    """
    every = [name for name in set(names) if name]
    text = "".join(f"\n{name[:LONGEST]}" for name in every)
    hit = pattern.search(text)
    if hit is None:
        return set()
    found = set()
    ends = list(accumulate(min(len(name), LONGEST) + 1 for name in every))
    while hit is not None:
        i = bisect_right(ends, hit.start())
        if found_in(every[i], pattern):  # the match may also go on into the next name
            found.add(every[i])
        hit = pattern.search(text, ends[i])
    return found
