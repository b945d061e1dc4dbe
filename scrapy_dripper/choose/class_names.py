"""Search the classes and ids of all elements of a page at once."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

LONGEST_NAME = 512
"""Maximum length of a name to search, in characters."""


def folded(text: str) -> str:
    """Return a text in lower case, with the letters that ``re.I`` takes for ASCII ones replaced by these.

    A search in it is several times as fast as one with ``re.I``.
    """
    if text.isascii():
        return text.lower()
    return text.replace("\u0130", "i").lower().replace("\u0131", "i").replace("\u017f", "s")


def found_in(name: str, pattern: re.Pattern[str]) -> bool:
    """Return True if a pattern in lower case is found in a name of any case, with white space before it.

    A pattern that must match white space or a hyphen before a word is many times faster than one that may also match
    the beginning of the text.
    """
    return pattern.search(f"\n{folded(name[:LONGEST_NAME])}") is not None


class Names:
    """The names of a page as one text, because most patterns are not in any name of most pages."""

    def __init__(self, names: Iterable[str], longest: int = LONGEST_NAME) -> None:
        """Only the beginning of each name, with at most ``longest`` characters, is searched."""
        self._names = [name for name in set(names) if name]
        self._searched = [name[:longest] for name in self._names]
        self._text = "\n".join(["", *self._searched])
        self._folded: str | None = None
        self._ends: list[int] | None = None

    def matching(self, pattern: re.Pattern[str]) -> set[str]:
        """Return the names of any case in which a pattern in lower case is found (:func:`found_in`)."""
        if self._folded is None:
            self._folded = folded(self._text)
        return self._found(self._folded, pattern)

    def with_case(self, pattern: re.Pattern[str]) -> set[str]:
        """Return the names in which a pattern is found, in the same case."""
        return self._found(self._text, pattern)

    def _found(self, text: str, pattern: re.Pattern[str]) -> set[str]:
        hit = pattern.search(text)
        if hit is None:
            return set()
        if self._ends is None:
            self._ends = list(accumulate(len(name) + 1 for name in self._searched))
        found, ends = set(), self._ends
        while hit is not None:
            i = bisect_right(ends, hit.start())
            begin = ends[i] - len(self._searched[i]) - 1
            if pattern.search(text[begin : ends[i]]) is not None:  # the match may also go on into the next name
                found.add(self._names[i])
            hit = pattern.search(text, ends[i])
        return found
