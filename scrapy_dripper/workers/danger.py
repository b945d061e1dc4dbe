"""Which documents can be slow or large to parse, by a look at their characters."""

from __future__ import annotations

LONG = 3_000_000
"""Characters or bytes from which on a document is dangerous whatever is in it."""
MANY_TAGS = 40_000
"""Times ``<`` from which on it is. Of 1,310 real pages the richest has 22,000."""
TAGS_TO_SEARCH = 2_000
"""The same for extractors that search the tree again and again, in time that grows with elements times depth."""

_NOT_SHORT = 400_000  # in less, no attributes take half a second
_LONG_TAG = 2_000
_MUCH_WORK = 200_000_000
"""Comparisons of attributes with attributes: each with all others of its tag. About 0.2 s."""


def is_dangerous(html: str | bytes, *, searched: bool = False) -> bool:
    """Return True if a document may take more than about a second, or 300 MB, to parse.

    With ``searched``, also if an extractor such as Trafilatura may take so long for its tree.
    """
    if len(html) > LONG:
        return True
    tags = html.count("<") if isinstance(html, str) else html.count(b"<")
    if tags > (TAGS_TO_SEARCH if searched else MANY_TAGS):
        return True
    return len(html) > _NOT_SHORT and _attribute_work(html) > _MUCH_WORK


def _attribute_work(html: str | bytes) -> int:
    """Return about how many attributes a parser will compare, an upper bound with many a false alarm: for scripts."""
    text = html if isinstance(html, str) else html.decode("latin-1")
    work = 0
    for piece in text.split(">"):
        if len(piece) > _LONG_TAG:
            tag = piece[piece.find("<") :]
            attributes = sum(map(tag.count, " \n\t/"))
            work += attributes * attributes
    return work
