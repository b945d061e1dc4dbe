"""A cheap check for documents that may take much time or memory to parse."""

from __future__ import annotations

from typing import AnyStr

from scrapy_dripper.page.limits import count_byte

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
    tags = html.count("<") if isinstance(html, str) else count_byte(html, b"<")
    if tags > (TAGS_TO_SEARCH if searched else MANY_TAGS):
        return True
    if len(html) <= _NOT_SHORT:
        return False
    if isinstance(html, str):
        return _attribute_work(html, "<", ">", (" ", "\n", "\t", "/")) > _MUCH_WORK
    return _attribute_work(html, b"<", b">", (b" ", b"\n", b"\t", b"/")) > _MUCH_WORK


def _attribute_work(html: AnyStr, start: AnyStr, end: AnyStr, between: tuple[AnyStr, ...]) -> int:
    """Return an upper bound for the attribute comparisons that a parser makes. Scripts can cause false alarms."""
    here = work = 0
    while len(html) - here > _LONG_TAG:
        last = html.rfind(end, here, here + _LONG_TAG + 1)
        if last < 0:  # a long piece without an end of a tag; all others are skipped without a look
            last = html.find(end, here + _LONG_TAG)
            piece = html[here:last] if last >= 0 else html[here:]
            tag = piece[piece.find(start) :]
            attributes = sum(map(tag.count, between))
            work += attributes * attributes
            if last < 0:
                break
        here = last + 1
    return work
