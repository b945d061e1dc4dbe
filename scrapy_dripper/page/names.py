"""Search the class and id attributes of a page, all at once."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from scrapy_dripper.page.tags import LONGEST_CLASS


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
    return pattern.search(f"\n{folded(name[:LONGEST_CLASS])}") is not None


class Names:
    """The names of a page's nodes as one text, because most patterns are not in any name of most pages."""

    def __init__(self, names: Sequence[str]) -> None:
        """Only the beginning of each name, with at most :data:`LONGEST_CLASS` characters, is searched."""
        self._of_nodes = names
        self._names = [name for name in set(names) if name]
        self._searched = [f"\n{name[:LONGEST_CLASS]}" for name in self._names]
        self._text = folded("".join(self._searched))
        self._ends = list(accumulate(map(len, self._searched)))

    def matching(self, pattern: re.Pattern[str], *parts: str) -> list[int]:
        """Return the nodes with a name of any case in which a pattern in lower case is found (:func:`found_in`).

        If there are ``parts``, each match has one of them. They are looked for first, which takes far less time.
        """
        text, ends = self._text, self._ends
        if parts and not any(part in text for part in parts):
            return []
        found: set[str] = set()
        hit = pattern.search(text)
        while hit is not None:
            i = bisect_right(ends, hit.start())
            begin = ends[i] - len(self._searched[i])
            if pattern.search(text[begin : ends[i]]) is not None:  # the match may also go on into the next name
                found.add(self._names[i])
            hit = pattern.search(text, ends[i])
        return [i for i, name in enumerate(self._of_nodes) if name in found] if found else []
