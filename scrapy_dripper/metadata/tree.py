"""Find the elements that describe a page, in one pass over its tree."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from lxml import etree

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MOST_PLACES = 30
"""Maximum number of elements of a kind, such as headings or bylines, that are kept."""
MOST_PROPERTIES = 500
LONGEST = 10_000
"""Maximum number of characters of a value."""
START = 60
"""Maximum number of descendants whose text is read."""

_TAGS = ("base", "meta", "link", "script", "title", "h1", "h2", "time", "abbr")
_INLINE = frozenset(
    "a abbr b bdi bdo cite code data del dfn em font i ins kbd mark q s samp small span strong sub sup u wbr".split()
)
UNSEEN = ("script", "style", "template", "noscript", "svg")


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


def describe(root: HtmlElement) -> Described:
    """Return the elements of a page that describe it."""
    found = Described(root)
    for element in root.iter(*_TAGS):
        _tagged(element, str(element.tag), found)
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
        if item:
            _property(element, item, found)
        relation, label = get("rel"), get("aria-label")
        if relation == "author":
            _keep(found.bylines, element)
        if label and "breadcrumb" in label.lower():
            _keep(found.trails, element)
    return found


def base_url(url: str, href: str) -> str:
    """Return the URL against which the links of a page are resolved: its own URL, or that of its ``<base>``."""
    # Like a browser, ignore an invalid URL such as "http://[" and another scheme such as "javascript:x".
    with suppress(ValueError):
        joined = urljoin(url, href)
        if urlsplit(joined).scheme in ("http", "https", urlsplit(url).scheme):
            return joined
    return url


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


def _property(element: HtmlElement, names: str, found: Described) -> None:
    """Keep an element with a property of microdata or RDFa. In the head, such elements are read as ``meta``."""
    if element.tag != "meta" or element.get("itemprop"):
        for name in names[:LONGEST].lower().split()[:5]:
            _keep(found.properties.setdefault(name.rpartition(":")[2], []), element, MOST_PROPERTIES)


def _tagged(element: HtmlElement, tag: str, found: Described) -> None:
    if tag == "meta":
        _meta(element, found)
    elif tag == "link":
        for relation in (element.get("rel") or "")[:LONGEST].lower().split()[:5]:
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
        kept = {"h1": found.headings, "h2": found.subheadings, "time": found.times, "abbr": found.dated}
        _keep(kept[tag], element)


def _meta(element: HtmlElement, found: Described) -> None:
    content = element.get("content")
    if not content or content.isspace():
        return
    for key in ("property", "name", "itemprop", "http-equiv"):
        name = element.get(key)
        if name:
            known = found.meta.setdefault(name.strip().lower(), [])
            if len(known) < 500:
                known.append(" ".join(content[:LONGEST].split()))


def _keep(elements: list[HtmlElement], element: HtmlElement, most: int = MOST_PLACES) -> None:
    if len(elements) < most:
        elements.append(element)


def text_of(element: HtmlElement, most: int = 1_000, *, apart: bool = True) -> str:
    """Return about the first ``most`` characters of the text in an element, without scripts and styles.

    With ``apart``, the texts of any two elements are separated by a space, like the parts of a byline. Otherwise, only
    elements that are not part of a sentence are separated.
    """
    pieces: list[str] = []
    length = 0
    for event, node in islice(etree.iterwalk(element, events=("start", "end")), 2 * START):
        if event == "start":
            text = "" if node.tag in UNSEEN else node.text or ""
        else:
            text = "" if node is element else node.tail or ""
        pieces += ["" if node.tag in _INLINE and not apart else " ", text[:most]]
        length += len(text)
        if length > most:
            break
    return " ".join("".join(pieces).split())[:most]
