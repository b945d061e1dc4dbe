"""A cheap check for documents that may take much time or memory to parse."""

from __future__ import annotations

LONG = 3_000_000
"""A document with more characters or bytes than this is always dangerous."""
MANY_TAGS = 40_000
"""A document with more ``<`` than this is dangerous. The maximum among 1,310 real pages is 22,000."""
TAGS_TO_SEARCH = 2_000
"""The same for extractors that search the tree repeatedly, in time proportional to elements times depth."""

_NOT_SHORT = 400_000  # in shorter documents, attributes take less than half a second
_LONG_TAG = 2_000
_MUCH_WORK = 200_000_000
"""Comparisons between attributes of the same tag, which take about 0.2 s."""


def is_dangerous(html: str | bytes, *, searched: bool = False) -> bool:
    """Return True if parsing a document may take more than about a second or 300 MB.

    With ``searched``, also return True if an extractor such as Trafilatura may take that long to search its tree.
    """
    if len(html) > LONG:
        return True
    tags = html.count("<") if isinstance(html, str) else html.count(b"<")
    if tags > (TAGS_TO_SEARCH if searched else MANY_TAGS):
        return True
    return len(html) > _NOT_SHORT and _attribute_work(html) > _MUCH_WORK


def _attribute_work(html: str | bytes) -> int:
    """Return an upper bound for the attribute comparisons that a parser makes. Scripts can cause false alarms."""
    text = html if isinstance(html, str) else html.decode("latin-1")
    work = 0
    for piece in text.split(">"):
        if len(piece) > _LONG_TAG:
            tag = piece[piece.find("<") :]
            attributes = sum(map(tag.count, " \n\t/"))
            work += attributes * attributes
    return work
