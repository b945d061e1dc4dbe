"""Trees of limited size and depth for the fallback extractors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lxml import etree

from scrapy_dripper.characters import without_controls
from scrapy_dripper.data import Document, FallbackReason
from scrapy_dripper.metadata import without_signs
from scrapy_dripper.page.limits import cut_off
from scrapy_dripper.page.page import PageError
from scrapy_dripper.page.parse import parse

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_ELEMENTS = 25_000
"""Maximum number of elements that a fallback gets. Trafilatura takes 5 s for this many short paragraphs, and 2 minutes
for five times as many. The largest of 1,310 real pages has 16,000."""

MAX_DEPTH = 50
"""Maximum depth of the elements that Trafilatura gets: it searches all ancestors of each element, and all tables inside
each table. Of 1,743 real pages, only one is deeper, with a depth of 90."""

FIRST_PART = 200_000
"""Characters or bytes to keep of a document that cannot be parsed as a whole. This many can be parsed at any depth."""

_is_deep = etree.XPath(f"boolean(/descendant::*[count(ancestor::*) >= {MAX_DEPTH}])")


def first_part(document: Document) -> Document | None:
    """Return a document with the first :data:`FIRST_PART` characters or bytes, or None if it is not longer."""
    if len(document.html) <= FIRST_PART:
        return None
    return replace(document, html=document.html[:FIRST_PART])


def limited_tree(text: str, *, flat: bool = False) -> tuple[HtmlElement, bool]:
    """Return the tree of a document, and whether it was truncated.

    With ``flat``, elements deeper than :data:`MAX_DEPTH` become siblings. Raise :exc:`PageError` if the document cannot
    be parsed.
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
    """Return the text of the first ``<title>``, or None if there is none."""
    title = root.find(".//title")
    return (
        None if title is None else without_signs(without_controls(" ".join("".join(title.itertext()).split()))) or None
    )


def parse_all(root: HtmlElement) -> None:
    """Rename the elements of a tree whose text a parser would not parse, before the tree is written as HTML.

    Their text would be escaped twice, and ``<plaintext>`` would absorb the end tags after it.
    """
    for element in root.iter("listing", "plaintext", "xmp"):
        element.tag = "pre"
