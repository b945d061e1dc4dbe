"""Read the elements of a page: which are marked as authors, dates or breadcrumbs, which are around the headline, and
their text as it is shown, without the signs that link to headings.

Real pages declare less than the limits, which bound the time for hostile ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any

from lxml import etree

from scrapy_dripper.characters import is_wide

if TYPE_CHECKING:
    from lxml.html import HtmlElement

LONGEST_TEXT = 10_000
"""Maximum length of a value, in characters."""
LONGEST_URL = 4_000
"""Maximum length of a URL, in characters. A longer one is a list of pictures that a page names as one."""
LONGEST_TITLE = 500
"""Maximum length of a name of the page, in characters."""
LONGEST_NAME = 200
"""Maximum length of the name of an author, of a site or of a step, in characters."""
MOST_NODES = 20_000
"""Maximum number of values in the JSON-LD of a page, and of its facts."""
MOST_VALUES = 500
"""Maximum number of values of one name, such as the authors of a paper."""
MOST_ELEMENTS = 30
"""Maximum number of things of a kind, such as headings, bylines, pictures or tags."""
ABOVE = 8
"""Number of ancestors that are checked for being a comment or a teaser."""
START = 60
"""Maximum number of descendants whose text is read."""

UNSEEN = ("script", "style", "template", "noscript", "svg")
_UNSAID = frozenset({*UNSEEN, "rp", "rt"})  # a reading is beside a character
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr output q rp rt ruby s samp"
    " script small span strike strong style sub sup template tt u wbr".split()
)
LOOSE = frozenset({"a", "span", "label", "time", "button"})
"""Inline tags that are often spaced by style sheets only. The texts on both sides need a space between them."""
_words_apart = re.compile(r"[\w:;,!?)\]]\n[\w$€£¥]").search
_apart = re.compile(  # but "$5", "10 $k", "9°C", "5%ige" and "example.Org" are one word
    r"[\w:;,!?)\]·•↑]\n[\w$€£¥·•]|:\n(?:[@.\[“]|-\D)|\d ?%\n(?!ig)[\w$€£¥]"
    r"|\d ?[$€£¥]\n(?![kKmM]\b)[\w$€£¥]|\d°\n[^\W\d_]{2}|\s\S+\.\n[A-ZÀ-ÞА-Я]"
).search
_is_one = re.compile(  # 1,299, 10:30, U.S.
    r"(?<!\d)(?:\d{1,3},\n\d{3}|\d\d:\n[0-5]\d)(?!\d)|\b[A-ZÀ-ÞА-Я]\.\n[A-ZÀ-ÞА-Я]\."
).search
# The signs with which a heading links to itself, and the link to its editor. A paragraph sign before a text and a hash
# before a number are part of it, as in "§ 12" and "# 1".
_zero_width = re.compile("[\u200b\u2060\ufeff\xad]").sub
_sign = re.compile(r"\s{0,3}[¶\U0001f517](?=\s|$)|^[¶\U0001f517]\s{0,3}|^#\s{1,3}(?!\d)|\s{1,3}[#§]$").sub
_edit = re.compile(
    r"\s{0,3}\[\s{0,3}(?:edit|bearbeiten|modifier|editar|modifica|bewerken|redigera|rediger|edytuj|править|編集|编辑|편집)\b"
    r"[^][]{0,40}\]$",
    re.I,
).sub
_is_sign = re.compile(
    r"\W{0,5}|[^\w]{0,5}(?:permalink|permanent link|direct link|link to (?:this|here)|copy link)\b.{0,100}|anchor", re.I
).fullmatch
_sign_class = re.compile(
    r"\b(?:editsection|headerlink|permalink|(?:header|heading|hash)-?(?:anchor|link))\b", re.I
).search
_is_label = re.compile(r"\w{1,20}:").fullmatch

_site_class = re.compile(r"(?:^|[\s_-])(?:site[-_]?(?:title|name|logo)|menu-title|logo|brand)(?=[\s_-]|$)", re.I).search


def text_of(element: HtmlElement, most: int = 1_000) -> str:
    """Return about the first ``most`` characters of the text in an element, without scripts and styles.

    The texts of any two elements are separated by a space, like the parts of a byline.
    """
    return _text(element, most, apart=True)


def heading_text(heading: HtmlElement) -> str:
    """Return the text of a heading, in which only elements that are not part of a sentence are separated.

    Signs that link to the heading or to its editor are left out, unless there is nothing else.
    """
    return without_signs(_text(heading, 1_000, apart=False, signs=False)) or _text(heading, 1_000, apart=False)


def names_site(name: str) -> bool:
    """Return True if the class of a heading says that it is the name of the site, which mdBook writes on each page."""
    return _site_class(name[:LONGEST_NAME]) is not None


def without_signs(text: str) -> str:
    """Return a title without the signs of permalinks: ``¶``, ``#``, zero-width spaces, ``[edit]``."""
    if text.isascii() and "#" not in text and "[" not in text:
        return text
    return _sign("", _edit("", _zero_width("", text).strip())).strip()


def _text(element: HtmlElement, most: int, *, apart: bool, signs: bool = True) -> str:
    pieces: list[str] = []
    length = 0
    said, loose = "", False
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, node in islice(walk, 2 * START):
        if event == "end":
            text = "" if node is element else node.tail or ""
        elif node is not element and (node.tag in _UNSAID or (not signs and _is_link_to_heading(node))):
            walk.skip_subtree()
            text = ""
        else:
            text = node.text or ""
        text = " ".join(text[:LONGEST_TEXT].split()) if apart else text
        is_loose = loose and event == "start" and node.tag not in ("sub", "sup")
        is_line = node.tag in _INLINE and not apart and not (is_loose and _are_apart(said, text))
        pieces += ["" if is_line else " ", text[:most]]
        loose = not text and (loose if event == "start" else node.tag in LOOSE)
        said = text or said
        length += len(text)
        if length > most:
            break
    return " ".join("".join(pieces).split())[:most]


def are_apart(before: str, after: str, *, in_code: bool = False) -> bool:
    """Return True if the texts of two elements that a style sheet sets apart need a space between them."""
    both = f"{before[-40:]}\n{after[:4]}"
    is_apart = _words_apart(both) if in_code else _apart(both) and not _is_one(both)
    return bool(is_apart) and not (is_wide(before[-1:]) or is_wide(after))


def _are_apart(before: str, after: str) -> bool:
    """Return True for two texts that need a space, of which one has several words: others may be parts of a word, of a
    number or of ``Category:Name`` in wikis.
    """
    if not before or len(after) < 2 or not (" " in before.strip() or " " in after.strip()):
        return False
    is_initial = len(before) == 1 and before not in "AI" and after[:2].isupper()
    is_word = is_initial or (before[-1].isalpha() and after[0].islower())
    return are_apart(before, after) and before != ":" and not is_word


def _is_link_to_heading(node: HtmlElement) -> bool:
    """Return True for an element of a heading that is a sign: a link to the heading, or to its editor, or the label
    "Title:" that arXiv puts before a title.
    """
    name = node.get("class") or ""
    if _sign_class(name) or (name == "descriptor" and _is_label((node.text or "").strip())):
        return True
    if node.tag not in ("a", "button") or next(islice(node.iter(), MOST_ELEMENTS, None), None) is not None:
        return False
    return _is_sign(_text(node, 200, apart=True)) is not None


# ---------------------------------------------------------------------- marked elements
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
