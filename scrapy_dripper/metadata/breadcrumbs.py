"""Breadcrumbs, the path from the front page of a site to a page, from JSON-LD, microdata, RDFa, or a labelled list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from scrapy_dripper.data import Breadcrumb
from scrapy_dripper.metadata.json_ld import Linked, items, texts
from scrapy_dripper.metadata.tree import UNSEEN, Described, text_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MOST = 20
"""Maximum number of steps. A longer list is a menu."""
LONGEST = 200
"""Maximum length of the name of a step, in characters."""
INSIDE = 300
"""Maximum number of descendants of an element with breadcrumbs that are processed."""
_SEPARATORS = "/>»›|·•→-–—\\ \xa0"

Resolve = Callable[[str], str]


def breadcrumbs(described: Described, linked: Linked, resolve: Resolve) -> tuple[Breadcrumb, ...]:
    """Return the steps, beginning with the front page; empty if the page has no breadcrumbs."""
    steps = list(_linked(linked, resolve)) or list(_items(described, resolve)) or list(_trail(described, resolve))
    return tuple(steps) if len(steps) <= MOST else ()


def _linked(linked: Linked, resolve: Resolve) -> Iterator[Breadcrumb]:
    elements = items(linked.breadcrumbs)
    for one in sorted(elements, key=_position):
        item = one.get("item")
        inner = item if isinstance(item, dict) else {}
        name = next(texts(one.get("name")), "") or next(texts(inner.get("name")), "")
        address = item if isinstance(item, str) else inner.get("@id") or inner.get("url") or one.get("url")
        step = _step(name, address if isinstance(address, str) else "", resolve)
        if step is not None:
            yield step


def _position(element: dict[str, Any]) -> float:
    try:
        return float(element.get("position") or 0)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _items(described: Described, resolve: Resolve) -> Iterator[Breadcrumb]:
    """Yield the steps in microdata or RDFa. These are list elements, which lists of products have as well."""
    for element in described.properties.get("itemlistelement", ())[: MOST + 1]:
        kind = f"{element.get('itemtype') or ''} {element.get('typeof') or ''}"
        if "ListItem" not in kind:
            continue
        name = address = ""
        for node in islice(element.iter(), 20):
            prop = f"{node.get('itemprop') or ''} {node.get('property') or ''}"
            address = address or (node.get("href") or node.get("resource") or "" if node.tag in ("a", "link") else "")
            if "name" in prop.split() and not name:
                name = node.get("content") or text_of(node, LONGEST)
        step = _step(name or text_of(element, LONGEST), address, resolve)
        if step is not None:
            yield step


def _trail(described: Described, resolve: Resolve) -> Iterator[Breadcrumb]:
    """Yield the steps of the first element that is labelled as breadcrumbs and has links, and the page's own name."""
    for element in described.trails:
        links = [node for node in islice(element.iter(), INSIDE) if node.tag == "a" and node.get("href")]
        if not links:
            continue
        for link in links[: MOST + 1]:
            step = _step(text_of(link, LONGEST), link.get("href") or "", resolve)
            if step is not None:
                yield step
        last = _behind(element, links[-1])
        if last:
            yield Breadcrumb(last)
        return


def _behind(element: HtmlElement, last: HtmlElement) -> str:
    """Return the text after the last link, which is the name of the page."""
    nodes = list(islice(element.iter(), INSIDE))
    inside = sum(1 for _ in islice(last.iter(), INSIDE))
    pieces = [last.tail or ""]
    for node in nodes[nodes.index(last) + inside :]:
        pieces += ["" if node.tag in UNSEEN else node.text or "", node.tail or ""]
    return " ".join(" ".join(pieces).split())[:LONGEST].strip(_SEPARATORS)


def _step(name: str, address: str, resolve: Resolve) -> Breadcrumb | None:
    name = name[:LONGEST].strip(_SEPARATORS)
    url = resolve(address) if address else ""
    return Breadcrumb(name or None, url or None) if name else None
