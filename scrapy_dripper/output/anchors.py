"""The ids that lead to headings: ``#anchor`` behind the URL of the page."""

from __future__ import annotations

from itertools import islice

from lxml import etree

MOST_CHARS = 300
"""A longer id leads nowhere that somebody has linked to."""
MOST_INSIDE = 16
"""Elements in a heading that are looked at."""
_AROUND = frozenset({"section", "article", "div", "header", "hgroup"})


def anchor_of(heading: etree._Element) -> str:
    """Return the id that leads to a heading, empty if there is none.

    It is the heading's own, that of an element in it (``<h2><a name="...">``), that of an empty one right before it
    (``<a id="..."></a><h2>``), or that of the element that it begins (``<section id="..."><h2>``, as Sphinx writes).
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
