"""Documents as trees that a fallback can cope with: of the whole, or of the first part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lxml import etree

from scrapy_dripper.extraction import Document, FallbackReason
from scrapy_dripper.page.errors import PageError
from scrapy_dripper.page.limits import cut_off
from scrapy_dripper.page.parse import parse

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_ELEMENTS = 25_000
"""Elements of a page that a fallback sees. Trafilatura takes 5 s for so many short paragraphs, and 2 minutes for five
times as many; of 1,310 real pages the largest has 16,000."""

MAX_DEPTH = 50
"""Depth of the elements that Trafilatura sees: it looks at all that is around each, and in each table at all that is in
the tables in it. Of 1,743 real pages one is deeper, with 90 elements in each other."""

FIRST_PART = 200_000
"""Characters, or bytes, that are left of a document that no parser can take as a whole: few enough for any nesting."""

_is_deep = etree.XPath(f"boolean(/descendant::*[count(ancestor::*) >= {MAX_DEPTH}])")


def first_part(document: Document) -> Document | None:
    """Return the first :data:`FIRST_PART` characters or bytes of a document as one; None if it has no more."""
    if len(document.html) <= FIRST_PART:
        return None
    return replace(document, html=document.html[:FIRST_PART])


def limited_tree(text: str, *, flat: bool = False) -> tuple[HtmlElement, bool]:
    """Return the tree of a document, and True if that is of its first part only.

    With ``flat``, it is not deeper than :data:`MAX_DEPTH`: inner elements come out side by side. Raise :exc:`PageError`
    where there is no tree.
    """
    truncated = False
    try:
        root = _tree(text, flat)
    except PageError as error:
        if error.reason is not FallbackReason.TRUNCATED_PARSE:
            raise
        root, truncated = _tree(text[:FIRST_PART], flat), True
    return root, cut_off(root, MAX_ELEMENTS) or truncated


def _tree(text: str, flat: bool) -> HtmlElement:
    root = parse(text)
    return parse(text, flat=True, depth=MAX_DEPTH) if flat and _is_deep(root) else root


def title_of(root: HtmlElement) -> str | None:
    """Return the text of the first ``<title>``, None if there is none."""
    title = root.find(".//title")
    return None if title is None else " ".join("".join(title.itertext()).split()) or None
