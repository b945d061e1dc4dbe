"""Pages that come in parts: React sends late ones at the end, hidden, with a script that puts each in its place.

Where such a part belongs stands ``<template id="B:n"></template>``, and behind it, up to ``<!--/$-->``, what is shown
while it is missing; or ``<template id="P:n"></template>`` alone. The part is ``<div hidden id="S:n">``. What is done
here is what the scripts do (``completeBoundary`` and ``completeSegment`` in React's server renderer): without them,
headings would stand before the introduction, and "Loading" where they belong.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_PARTS = 1_000
"""Parts of a page that are put in their places."""
MAX_SIBLINGS = 1_000
"""Elements that are shown while a part is missing."""

_SLOT, _BEGIN, _END, _PART = "dripper-slot", "dripper-begin", "dripper-end", "dripper-part"
_template = re.compile(rb"<template\s+id=[\"']?([BP]:[0-9a-f]+)[\"']?\s*>\s*</template\s*>", re.I).sub
_begin = re.compile(rb"<!--\$[?!~]?-->").sub
_end = re.compile(rb"<!--/\$-->").sub
_number = re.compile("[SBP]:([0-9a-f]+)").fullmatch


def has_parts(data: bytes) -> bool:
    """Return True if a document has parts that may have to be moved."""
    return b'id="S:' in data  # as React writes it; each way of writing it would cost a twentieth of the parsing


def mark(data: bytes) -> bytes:
    """Return a document with elements where the parser would take away what marks the places of parts."""
    data = _template(rb'<%s id="\1"></%s>' % (_SLOT.encode(), _SLOT.encode()), data)
    data = _begin(b"<%s></%s>" % (_BEGIN.encode(), _BEGIN.encode()), data)
    return _end(b"<%s></%s>" % (_END.encode(), _END.encode()), data)


def put_in_place(root: HtmlElement) -> None:
    """Move the parts of a tree to their places, and take the marks away."""
    slots = {slot.get("id", "")[2:]: slot for slot in root.iter(_SLOT)}
    if slots:
        parts = [div for div in root.iter("div") if "hidden" in div.attrib and _number(div.get("id", ""))]
        for part in islice(parts, MAX_PARTS):
            slot = slots.pop(part.get("id", "")[2:], None)
            if slot is not None and part not in slot.iterancestors("div"):
                if slot.get("id", "").startswith("B"):
                    _remove_fallback(slot)
                _move(part, slot)
    etree.strip_tags(root, _SLOT, _BEGIN, _END, _PART)


def _remove_fallback(slot: HtmlElement) -> None:
    """Take away what is behind a slot, up to the end of what is shown in its place."""
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
        parent.remove(element)  # and the text behind it


def _move(part: HtmlElement, slot: HtmlElement) -> None:
    tail, part.tail = part.tail, None
    if tail:
        stays = part.makeelement(_PART)
        stays.tail = tail
        part.addprevious(stays)
    part.tag = _PART
    slot.append(part)
