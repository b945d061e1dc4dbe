"""Find the elements that are marked as authors, dates or breadcrumbs, and what is around the headline."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any

from lxml import etree

from scrapy_dripper.declared.text import ABOVE, LONGEST_TEXT, MOST_ELEMENTS, MOST_VALUES, heading_text

if TYPE_CHECKING:
    from lxml.html import HtmlElement

BEHIND = 200
"""Number of elements after the headline that are around it."""

_RELATIONS = frozenset({"tag", "category", "license"})
_OF_TEASERS = ("author", "datepublished", "datemodified", "pubdate")

_before: Any = etree.XPath(f"preceding::*[position() <= {MOST_ELEMENTS}]")
_behind: Any = etree.XPath(f"following::*[position() <= {BEHIND}]")

_is_profile = re.compile(r"/(?:members?|users?|u|profiles?|authors?|people)[/.?]|\bmember\.php|[?&]u(?:id)?=").search


@dataclass(frozen=True, slots=True)
class Marked:
    """The elements of a page whose names, properties or classes say what they are, by kind, in document order."""

    times: list[HtmlElement] = field(default_factory=list)
    properties: dict[str, list[HtmlElement]] = field(default_factory=dict)
    """Elements outside the head by property of microdata or RDFa, in lower case, without prefix."""
    bylines: list[HtmlElement] = field(default_factory=list)
    """Elements whose class or relation names an author."""
    dated: list[HtmlElement] = field(default_factory=list)
    """Elements whose class names a date, and abbreviations, which hold one in their title."""
    trails: list[HtmlElement] = field(default_factory=list)
    """Elements that are labelled as breadcrumbs."""
    related: dict[str, list[HtmlElement]] = field(default_factory=dict)
    """Links by relation, of :data:`_RELATIONS`."""

    def without_teasers(self, title: str, headline: HtmlElement | None, beside: list[HtmlElement]) -> list[HtmlElement]:
        """Leave out the bylines and dates of teasers, which belong to other pages. Return the elements ``beside`` the
        headline without those of teasers.

        A teaser has a linked heading, and a sibling like it. What is around a headline with the title is none.
        """
        is_own = headline is not None and heading_text(headline) == title
        known = dict.fromkeys((headline, *headline.iterancestors()), False) if headline is not None and is_own else {}
        kinds = (self.times, self.bylines, self.dated, *(self.properties.get(name, []) for name in _OF_TEASERS))
        for elements in kinds:
            elements[:] = [one for one in elements if not _is_in_teaser(one, known)]
        return [one for one in beside if not _is_in_teaser(one, known)]


def marked(root: HtmlElement) -> Marked:
    """Return the elements of a page that are marked. The tree must still have what is invisible."""
    found = Marked()
    for element in root.iter("time", "abbr"):
        if next(element.iterancestors(element.tag), None) is None:  # or it would be read with each one around it
            _keep(found.times if element.tag == "time" else found.dated, element)
    # Many elements of a page have a class. Reading each of them costs less than XPath, which copies them.
    kinds: dict[str, tuple[list[HtmlElement], ...]] = {}
    for element in root.iter():
        get = element.get
        name = get("class")
        if name:
            lists = kinds.get(name)
            if lists is None:
                lists = kinds[name] = _named(name, found)
            for kept in lists:
                _keep(kept, element)
        item = get("itemprop") or get("property")
        if item and (element.tag != "meta" or element.get("itemprop")):  # those in the head are read as ``meta``
            for name in item[:LONGEST_TEXT].lower().split()[:5]:
                _keep(found.properties.setdefault(name.rpartition(":")[2], []), element, MOST_VALUES)
        relation, label = get("rel"), get("aria-label")
        if relation:
            _keep_related(found, element, relation)
        if label and "breadcrumb" in label.lower():
            _keep(found.trails, element)
    return found


def _keep_related(found: Marked, element: HtmlElement, relation: str) -> None:
    if relation == "author":
        _keep(found.bylines, element)
    for name in _RELATIONS.intersection(relation[:LONGEST_TEXT].lower().split()):
        _keep(found.related.setdefault(name, []), element)


def _is_in_teaser(element: HtmlElement, known: dict[HtmlElement, bool]) -> bool:
    """Return True if an element is in a teaser. ``known`` says it of elements that are around others."""
    way: list[HtmlElement] = []
    is_in = False
    for one in islice(element.iterancestors(), ABOVE):
        is_in = known[one] if one in known else _is_teaser(one)
        way.append(one)
        if is_in or one in known:
            break
    known |= dict.fromkeys(way, is_in)
    return is_in


def _is_teaser(element: HtmlElement) -> bool:
    """Return True for an element with a linked heading that has a sibling with one and the same tag and class."""
    if not _has_linked_heading(element):
        return False
    kind = (element.tag, element.get("class"))
    beside = chain(islice(element.itersiblings(), 2), islice(element.itersiblings(preceding=True), 2))
    return any((one.tag, one.get("class")) == kind and _has_linked_heading(one) for one in beside)


def _has_linked_heading(element: HtmlElement) -> bool:
    """Return True if one of the first headings of an element has a link to another page.

    A post has one with a link to its author or to itself, and may quote another page with its heading.
    """
    for heading in islice(element.iter("h1", "h2", "h3", "h4", "h5", "h6"), 2):
        between = takewhile(lambda one: one is not element, islice(heading.iterancestors(), ABOVE))
        if any(one.tag in ("aside", "blockquote") for one in between):
            continue
        links = chain(heading.iter("a"), islice(heading.iterancestors("a"), 1))
        addresses = [href[:LONGEST_TEXT] for link in islice(links, 3) if (href := link.get("href"))]
        if any("#" not in href and not _is_profile(href) for href in addresses):
            return True
    return False


def _named(name: str, found: Marked) -> tuple[list[HtmlElement], ...]:
    """Return the lists to which an element with a class attribute belongs."""
    name = name[:1_000].lower()
    lists = []
    if "author" in name or "byline" in name:
        lists.append(found.bylines)
    if "date" in name or "publish" in name or "posted" in name or "meta" in name:
        lists.append(found.dated)
    if "breadcrumb" in name:
        lists.append(found.trails)
    return tuple(lists)


def _keep(elements: list[HtmlElement], element: HtmlElement, most: int = MOST_ELEMENTS) -> None:
    if len(elements) < most:
        elements.append(element)


def around(headline: HtmlElement) -> list[HtmlElement]:
    """Return the elements around the headline and in it, in document order."""
    return [*_before(headline), *islice(headline.iter(), BEHIND), *_behind(headline)]
