"""Find the elements that describe a page, in one pass over its tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from lxml import etree

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MOST_PLACES = 30
"""Maximum number of elements of a kind, such as headings or bylines, that are kept."""
MOST_PROPERTIES = 500
LONGEST_CONTENT = 10_000
"""Maximum number of characters of a value."""
WITH_SPACES = 20
"""How many times as long a text may be with the white space that indents it."""
START = 60
"""Maximum number of descendants whose text is read."""
MOST_OF_SIGN = 16
"""Maximum number of elements of a sign, such as an icon that links to its heading."""

BEFORE, BEHIND = 30, 200
"""Number of elements before and after the headline that are around it."""

NEAR = 8
"""Number of elements around a byline or a date that may be its teaser."""
_OF_TEASERS = ("author", "datepublished", "datemodified", "pubdate")

_TAGS = ("base", "meta", "link", "script", "title", "h1", "h2", "time", "abbr")
_INLINE = frozenset(
    "a abbr b bdi bdo cite code data del dfn em font i ins kbd mark q s samp small span strong sub sup u wbr".split()
)
UNSEEN = ("script", "style", "template", "noscript", "svg")
_before: Any = etree.XPath(f"preceding::*[position() <= {BEFORE}]")
_behind: Any = etree.XPath(f"following::*[position() <= {BEHIND}]")

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
_is_profile = re.compile(r"/(?:members?|users?|u|profiles?|authors?|people)[/.?]|\bmember\.php|[?&]u(?:id)?=").search
_sign_class = re.compile(
    r"\b(?:editsection|headerlink|permalink|(?:header|heading|hash)-?(?:anchor|link))\b", re.I
).search


@dataclass(slots=True)
class Described:
    """The elements that describe a page, by kind, in document order."""

    root: HtmlElement
    meta: dict[str, list[str]] = field(default_factory=dict)
    """Contents of the ``meta`` elements by name, in lower case."""
    links: dict[str, str] = field(default_factory=dict)
    """The first URL by relation, in lower case."""
    json_ld: list[HtmlElement] = field(default_factory=list)
    title: str = ""
    base: str = ""
    """The URL of the first ``<base>``."""
    headings: list[HtmlElement] = field(default_factory=list)
    """Headings of the first level."""
    subheadings: list[HtmlElement] = field(default_factory=list)
    """Headings of the second level."""
    times: list[HtmlElement] = field(default_factory=list)
    properties: dict[str, list[HtmlElement]] = field(default_factory=dict)
    """Elements outside the head by property of microdata or RDFa, in lower case, without prefix."""
    bylines: list[HtmlElement] = field(default_factory=list)
    """Elements whose class or relation names an author."""
    dated: list[HtmlElement] = field(default_factory=list)
    """Elements whose class names a date."""
    trails: list[HtmlElement] = field(default_factory=list)
    """Elements that are labelled as breadcrumbs."""

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

    def texts(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the contents of the ``meta`` elements with these names, in order of the names."""
        return chain.from_iterable(self.meta.get(name, ()) for name in names)

    def headline(self, title: str) -> HtmlElement | None:
        """Return the first heading with the title of the page, or else the first heading."""
        headings = [*self.headings, *self.subheadings]
        return next((one for one in headings if heading_text(one) == title), next(iter(headings), None))


def describe(root: HtmlElement) -> Described:
    """Return the elements of a page that describe it."""
    found = describe_title(root)
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
            for name in item[:LONGEST_CONTENT].lower().split()[:5]:
                _keep(found.properties.setdefault(name.rpartition(":")[2], []), element, MOST_PROPERTIES)
        relation, label = get("rel"), get("aria-label")
        if relation == "author":
            _keep(found.bylines, element)
        if label and "breadcrumb" in label.lower():
            _keep(found.trails, element)
    return found


def describe_title(root: HtmlElement) -> Described:
    """Return the elements of a page that describe it by their tags, which is enough for its title."""
    found = Described(root)
    for element in root.iter(*_TAGS):
        _tagged(element, str(element.tag), found)
    return found


def _is_in_teaser(element: HtmlElement, known: dict[HtmlElement, bool]) -> bool:
    """Return True if an element is in a teaser. ``known`` says it of elements that are around others."""
    way: list[HtmlElement] = []
    is_in = False
    for one in islice(element.iterancestors(), NEAR):
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
        between = takewhile(lambda one: one is not element, islice(heading.iterancestors(), NEAR))
        if any(one.tag in ("aside", "blockquote") for one in between):
            continue
        links = chain(heading.iter("a"), islice(heading.iterancestors("a"), 1))
        addresses = [href[:LONGEST_CONTENT] for link in islice(links, 3) if (href := link.get("href"))]
        if any("#" not in href and not _is_profile(href) for href in addresses):
            return True
    return False


def base_url(url: str, href: str) -> str:
    """Return the URL against which the links of a page are resolved: its own URL, or that of its ``<base>``."""
    # Like a browser, ignore an invalid URL such as "http://[" and another scheme such as "javascript:x".
    with suppress(ValueError):
        joined = urljoin(url, href)
        if urlsplit(joined).scheme in ("http", "https", urlsplit(url).scheme):
            return joined
    return url


def leads_up(href: str, url: str) -> int:
    """Return 1 for a link from the page at ``url`` to the front page, 2 for one to another page above it, or else 0.

    Addresses such as ``..`` do not count: generators of books put the title of a chapter into such a link.
    """
    if href.lstrip().startswith("."):
        return 0
    try:
        target, own = urlsplit(urljoin(url, href[:LONGEST_CONTENT].strip())), urlsplit(url)
    except ValueError:  # such as "http://["
        return 0
    above, below = (f"{one.path.rstrip('/')}/" for one in (target, own))
    is_other = target.query or target.netloc.removeprefix("www.") != own.netloc.removeprefix("www.")
    return 0 if is_other or above == below or not below.startswith(above) else 1 if above == "/" else 2


def _named(name: str, found: Described) -> tuple[list[HtmlElement], ...]:
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


def _tagged(element: HtmlElement, tag: str, found: Described) -> None:
    if tag == "meta":
        _meta(element, found)
    elif tag == "link":
        for relation in (element.get("rel") or "")[:LONGEST_CONTENT].lower().split()[:5]:
            found.links.setdefault(relation, element.get("href") or "")
    elif tag == "script":
        if "ld+json" in (element.get("type") or "").lower():
            found.json_ld.append(element)
    elif tag == "base":
        found.base = found.base or (element.get("href") or "").strip()
    elif tag == "title":
        if not found.title and getattr(element.getparent(), "tag", "") in ("head", "body", "html"):
            found.title = text_of(element)  # an icon can have a title, too: <svg><title>
    else:
        kept = {"h1": found.headings, "h2": found.subheadings, "time": found.times, "abbr": found.dated}[tag]
        if next(element.iterancestors(tag), None) is None:  # or it would be read with each one around it
            _keep(kept, element)


def _meta(element: HtmlElement, found: Described) -> None:
    content = element.get("content")
    if not content or content.isspace():
        return
    for key in ("property", "name", "itemprop", "http-equiv"):
        name = element.get(key)
        if name:
            known = found.meta.setdefault(name.strip().lower(), [])
            if len(known) < 500:
                known.append(" ".join(content[:LONGEST_CONTENT].split()))


def _keep(elements: list[HtmlElement], element: HtmlElement, most: int = MOST_PLACES) -> None:
    if len(elements) < most:
        elements.append(element)


def around(headline: HtmlElement) -> list[HtmlElement]:
    """Return the elements around the headline and in it, in document order."""
    return [*_before(headline), *islice(headline.iter(), BEHIND), *_behind(headline)]


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


def without_signs(text: str) -> str:
    """Return a title without the signs of permalinks: ``¶``, ``#``, zero-width spaces, ``[edit]``."""
    if text.isascii() and "#" not in text and "[" not in text:
        return text
    return _sign("", _edit("", _zero_width("", text).strip())).strip()


def _text(element: HtmlElement, most: int, *, apart: bool, signs: bool = True) -> str:
    pieces: list[str] = []
    length = 0
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, node in islice(walk, 2 * START):
        if event == "end":
            text = "" if node is element else node.tail or ""
        elif node is not element and (node.tag in UNSEEN or (not signs and _is_link_to_heading(node))):
            walk.skip_subtree()
            text = ""
        else:
            text = node.text or ""
        text = " ".join(text[: WITH_SPACES * most].split()) if apart else text
        pieces += ["" if node.tag in _INLINE and not apart else " ", text[:most]]
        length += len(text)
        if length > most:
            break
    return " ".join("".join(pieces).split())[:most]


def _is_link_to_heading(node: HtmlElement) -> bool:
    """Return True for an element of a heading that is a sign: a link to the heading, or to its editor."""
    if _sign_class(node.get("class") or ""):
        return True
    if node.tag not in ("a", "button") or next(islice(node.iter(), MOST_OF_SIGN, None), None) is not None:
        return False
    return _is_sign(_text(node, 200, apart=True)) is not None
