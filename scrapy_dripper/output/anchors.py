"""Find the ids of headings, which are the ``#anchor`` of their URLs."""

from __future__ import annotations

from itertools import islice

from lxml import etree

MOST_CHARS = 300
"""Maximum length of an id. Nobody links to a longer one."""
MOST_INSIDE = 16
"""Maximum number of elements to search in a heading."""
_AROUND = frozenset({"section", "article", "div", "header", "hgroup"})


def anchor_of(heading: etree._Element) -> str:
    """Return the id of a heading, or an empty string.

    It is the id of the heading itself, of an element in it (``<h2><a name="...">``), of an empty element right before
    it (``<a id="..."></a><h2>``), or of the element that the heading opens (Sphinx: ``<section id="..."><h2>``).
    """
    for element in islice(heading.iter(etree.Element), MOST_INSIDE):
        if found := _id(element):
            return found
    before = heading.getprevious()
    if before is not None:
        is_mark = before.tag in ("a", "span") and not len(before) and not (before.text or before.tail or "").strip()
        return _id(before) if is_mark else ""
    around = heading.getparent()
    if around is not None and around.tag in _AROUND and not (around.text or "").strip():
        return _id(around)
    return ""


def _id(element: etree._Element) -> str:
    found: str = element.get("id") or (element.get("name") if element.tag == "a" else "") or ""
    found = found.strip()
    return "" if len(found) > MOST_CHARS or any(map(str.isspace, found)) else found
