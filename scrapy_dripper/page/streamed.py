"""Put streamed parts of React pages in their places.

React sends late parts of a page hidden at its end, with scripts that move each one to its place. The place is marked by
``<template id="B:n"></template>``, followed by a placeholder up to ``<!--/$-->``, or by ``<template
id="P:n"></template>`` alone. The part is ``<div hidden id="S:m">``. This module does what the scripts do
(``completeBoundary`` and ``completeSegment`` in React's server renderer). Otherwise, headings would come before the
introduction, with "Loading" in their places. The calls in the scripts tell where each part belongs; without calls, n
equals m, as from React 19 on.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from lxml import etree

from scrapy_dripper.page.tags import UNSEEN

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_PARTS = 1_000
"""Maximum number of parts to move."""
MAX_SIBLINGS = 1_000
"""Maximum number of elements in a placeholder."""
MAX_MARKS = 10_000
"""Maximum number of React comments in a page whose parts are moved. Adjacent text nodes take quadratic time."""

_SLOT, _BEGIN, _END, _PART = "dripper-slot", "dripper-begin", "dripper-end", "dripper-part"
# With the "<" in front of the alternatives, the search jumps to it, which takes a thirtieth of the time.
_tokens = re.compile(
    rb"<(?:(?P<close>/?)(?P<raw>script|style|title|textarea|xmp|iframe|noembed|noframes)\b"
    rb'|template id="(?P<slot>[BP]:[0-9a-f]+)"\s*></template>|(?P<begin>!--\$[?!~]?-->)|(?P<end>!--/\$-->))',
    re.I,
).finditer
_calls = re.compile(r'\$R([CRS])\("([BPS]:[0-9a-f]+)","([BPS]:[0-9a-f]+)"').findall
_number = re.compile("S:([0-9a-f]+)").fullmatch


def has_parts(data: bytes) -> bool:
    """Return True if a document may have parts to move."""
    return b'id="S:' in data  # React's spelling only; checking others would cost 5 % of the parsing time each


def mark(data: bytes) -> bytes:
    """Replace the templates and comments that mark places by elements, which the parser keeps."""
    if data.count(b"<!--$") + data.count(b"<!--/$") > MAX_MARKS:
        return data
    body = max(data.find(b"<body"), 0)  # a mark before it would make the parser start the body early
    pieces: list[bytes] = []
    written = 0
    raw: bytes | None = None
    for token in _tokens(data, body):
        tag = token["raw"]
        if tag is not None:
            tag = tag.lower()
            raw = (raw or tag) if not token["close"] else None if tag == raw else raw
        if tag is not None or raw is not None:
            continue
        name = _SLOT if token["slot"] else _BEGIN if token["begin"] else _END
        identity = b' id="%s"' % token["slot"] if token["slot"] else b""
        pieces += [data[written : token.start()], b"<%s%s></%s>" % (name.encode(), identity, name.encode())]
        written = token.end()
    pieces.append(data[written:])
    return b"".join(pieces)


def put_in_place(root: HtmlElement) -> None:
    """Move the parts of a tree to their places, and remove the marks."""
    slots: dict[str, HtmlElement] = {}
    for slot in root.iter(_SLOT):
        slots.setdefault(slot.get("id", ""), slot)
    if slots:
        parts = [div for div in root.iter("div") if "hidden" in div.attrib and _number(div.get("id", ""))]
        place_of = _places(root)
        for part in islice(parts, MAX_PARTS):
            name = place_of.get(part.get("id", "")) or _same_number(part.get("id", ""), slots)
            place = slots.pop(name, None)
            if place is None or any(node is part or node.tag in UNSEEN for node in place.iterancestors()):
                continue
            if name.startswith("B"):
                _remove_fallback(place)
            _move(part, place)
    etree.strip_tags(root, _SLOT, _BEGIN, _END, _PART)


def _places(root: HtmlElement) -> dict[str, str]:
    """Return the place of each part, by the part's id, from the calls in scripts."""
    places: dict[str, str] = {}
    for script in root.iter("script"):
        text = script.text or ""
        if "$R" in text:
            for kind, one, other in _calls(text):
                part, place = (one, other) if kind == "S" else (other, one)
                places.setdefault(part, place)
    return places


def _same_number(part: str, slots: dict[str, HtmlElement]) -> str:
    """Return the id of the only slot with the number of a part, or an empty string if there are two or none."""
    found = [name for name in (f"B{part[1:]}", f"P{part[1:]}") if name in slots]
    return found[0] if len(found) == 1 else ""


def _remove_fallback(slot: HtmlElement) -> None:
    """Remove the placeholder after a slot."""
    shown: list[HtmlElement] = []
    depth = 0
    for sibling in islice(slot.itersiblings(), MAX_SIBLINGS):
        if sibling.tag == _END and depth == 0:
            break
        depth += (sibling.tag == _BEGIN) - (sibling.tag == _END)
        shown.append(sibling)
    else:
        return
    parent = slot.getparent()
    slot.tail = None
    for element in shown:
        parent.remove(element)  # including its tail


def _move(part: HtmlElement, slot: HtmlElement) -> None:
    tail, part.tail = part.tail, None
    if tail:
        stays = part.makeelement(_PART)
        stays.tail = tail
        part.addprevious(stays)
    part.tag = _PART
    slot.append(part)
