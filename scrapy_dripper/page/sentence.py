"""Detect custom elements and buttons that are inline parts of a sentence, although their tags could be blocks."""

from __future__ import annotations

import re
from itertools import accumulate, islice

from lxml import etree

from scrapy_dripper.page.nodes import Nodes
from scrapy_dripper.page.tags import KINDS, Kind

MOST_INSIDE = 64
"""An element with more nodes than this is never part of a sentence."""
AROUND = 32
"""How many siblings and ancestors to search for adjacent text."""

_LINES = frozenset({"p", "dd", "li", "td", "blockquote"})
"""Elements of running text. A button in one of these is part of a sentence if there is text on one side of it."""
_CODE = frozenset({"pre", "code", "kbd", "samp", "tt", "listing"})
_control = re.compile(r"copy|share|button|btn|menu|popover|tooltip|dialog|icon").search
_text = re.compile(r"[^\s|/\\·•‧∙›»–—-]").search


def kinds_in_text(nodes: Nodes) -> list[int]:
    """Return the :class:`Kind` of each node. Elements that are part of a sentence are inline, as is their content."""
    tags, end, kinds = nodes.tag, nodes.end, nodes.kind.copy()
    known = set(tags)
    doubtful = {tag for tag in known if "-" in tag or tag == "button"}
    if doubtful:
        asked = [i for i, tag in enumerate(tags) if tag in doubtful]
        breaking = {tag: _ends_line(tag) for tag in known}
        lines = [0, *accumulate([breaking[tag] for tag in tags])]
        until = 0
        for i in asked:
            if i < until or (lines[end[i]] == lines[i] and _in_text(nodes.node[i])):
                kinds[i] = int(Kind.INLINE)
                until = max(until, end[i])
    return kinds


def in_sentence(element: etree._Element) -> bool:
    """Return True if a custom element or a button holds no block and is part of running text."""
    inside = list(islice(element.iter(), 1, MOST_INSIDE + 2))
    return len(inside) <= MOST_INSIDE and not any(_ends_line(node.tag) for node in inside) and _in_text(element)


def _ends_line(tag: object) -> bool:
    """Return True for a tag that is a block or a line break in any context."""
    kind = KINDS.get(tag, Kind.INLINE) if isinstance(tag, str) else Kind.INLINE
    return kind is Kind.BREAK or (kind is Kind.BLOCK and tag != "button")


def _in_text(element: etree._Element) -> bool:
    """Return True if there is text right beside an element.

    A control, such as a button, needs text on both sides, or on one side inside an element of running text.
    """
    before, after = _beside(element, forward=False), _beside(element, forward=True)
    if element.tag != "button" and not _control(str(element.tag)):
        return before or after
    return (before and after) or ((before or after) and _line_of(element) in _LINES)


def _beside(element: etree._Element, *, forward: bool) -> bool:
    """Return True if there is text on one side of an element, in the same line."""
    node = element
    for _ in range(AROUND):
        parent = node.getparent()
        if parent is None:
            return False
        sibling = node.getnext() if forward else node.getprevious()
        text = node.tail if forward else parent.text if sibling is None else sibling.tail
        if text and _text(text):
            return True
        if sibling is None:
            if parent.tag in _CODE or _ends_line(parent.tag):
                return False
            node = parent
        elif _ends_line(sibling.tag):
            return False
        else:
            node = sibling
    return False


def _line_of(element: etree._Element) -> str:
    """Return the tag of the nearest block around an element."""
    node = element.getparent()
    for _ in range(AROUND):
        if node is None or _ends_line(node.tag):
            break
        node = node.getparent()
    return str(node.tag) if node is not None else ""
