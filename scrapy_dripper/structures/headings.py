"""Headings: the places that links lead to, and the signs and links beside headings, which are no part of them."""

from __future__ import annotations

import re
from itertools import islice

from lxml import etree

from scrapy_dripper.page.nodes import SHORT, short_text
from scrapy_dripper.structures import NEAR

# Each finds a name in a class attribute.
self_link = re.compile(r"headerlink|anchor|hash-link|permalink|header-link|heading-link|direct-link", re.I).search
is_edit_link = re.compile(r"(?:^|\s)(?:mw-editsection|editsection|secedit)(?:\s|$)").search  # MediaWiki, DokuWiki
header_link = re.compile(r"headerlink|hash-link|anchorjs-link|header-anchor|heading-anchor|header-link").search
_word = re.compile(r"\w").search

_AROUND = frozenset({"section", "article", "div", "header", "hgroup"})
"""Elements that a heading can open, so that their id is that of the heading."""


def anchor_of(heading: etree._Element) -> str:
    """Return the id of a heading, or an empty string.

    It is the id of the heading itself, of an element in it (``<h2><a name="...">``), of an empty element right before
    it (``<a id="..."></a><h2>``), or of the element that the heading opens (Sphinx: ``<section id="..."><h2>``).
    """
    for element in islice(heading.iter(etree.Element), NEAR):
        if anchor := _id(element):
            return anchor
    before = heading.getprevious()
    if before is not None:
        is_mark = before.tag in ("a", "span") and not len(before) and not (before.text or before.tail or "").strip()
        return _id(before) if is_mark else ""
    around = heading.getparent()
    if around is not None and around.tag in _AROUND and not (around.text or "").strip():
        return _id(around)
    return ""


def _id(element: etree._Element) -> str:
    anchor: str = element.get("id") or (element.get("name") if element.tag == "a" else "") or ""
    anchor = anchor.strip()
    return "" if len(anchor) > SHORT or any(map(str.isspace, anchor)) else anchor


def has_word(element: etree._Element) -> bool:
    """Return True if the text of an element has a word, or is long."""
    text = short_text(element)
    return text is None or _word(text) is not None


def is_self_link(element: etree._Element) -> bool:
    """Return True for the permalink sign beside a heading."""
    name = element.get("class")
    if not name or not self_link(name):
        return False
    text = short_text(element)
    return text is not None and (
        not _word(text) or text.strip().lower() in ("link", "permalink", "anchor", "direct link")
    )
