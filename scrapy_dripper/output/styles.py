"""Read the structure that only styles give: bold and italics, and the numerals of a list.

Editors and word processors write it as ``style``, or as classes with rules in the page's own style sheet. Main-HTML has
no styles, so it gets the tags and attributes that mean the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy_dripper.page.page import Styles

if TYPE_CHECKING:
    from lxml import etree

_bold = re.compile(r"font-weight\s*:\s*(?:bold|[6-9]00)\b", re.I).search
_regular = re.compile(r"font-weight\s*:\s*(?:normal|[1-4]00)\b", re.I).search
_italic = re.compile(r"font-style\s*:\s*(?:italic|oblique)\b", re.I).search
_TITLES = {"title": "h1", "MsoTitle": "h1", "subtitle": "h2", "MsoSubtitle": "h2"}
"""The classes of titles in Google Docs, beside numbered classes, and in Microsoft Word."""
_made_up = re.compile(r"c\d{1,4}|Mso\w{1,40}").fullmatch
_numerals = re.compile(r"list-style(?:-type)?\s*:[^;]{0,99}\b(lower|upper)-(alpha|latin|roman)\b", re.I).search


def tag_of(element: etree._Element, tag: str, known: Styles) -> str:
    """Return the tag that an inline element is to be written with: ``b`` or ``i`` for what its style shows so.

    A ``<b>`` of normal weight, as Google Docs copies it around a whole text, is a ``span``.
    """
    style = element.get("style") or ""
    if known:
        style += ";" + ";".join(known.get(name, "") for name in (element.get("class") or "")[:512].split())
    if tag in ("b", "strong"):
        return "span" if _regular(style) else tag
    if _bold(style):
        return "b"
    return "i" if _italic(style) else tag


def heading_of(element: etree._Element) -> str | None:
    """Return ``h1`` or ``h2`` for a paragraph that a word processor has marked as the title or subtitle."""
    names = (element.get("class") or "")[:512].split()
    if not any(_made_up(name) for name in names):
        return None
    return next((_TITLES[name] for name in names if name in _TITLES), None)


def numerals_of(element: etree._Element) -> str | None:
    """Return the ``type`` of an ordered list whose style names letters or Roman numerals."""
    match = _numerals(element.get("style") or "")
    if match is None:
        return None
    letter = "i" if match[2].lower() == "roman" else "a"
    return letter.upper() if match[1].lower() == "upper" else letter
