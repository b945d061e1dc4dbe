"""The limits of a tree: elements, attributes, text. Counted only where a document is long enough to be over one."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import FallbackReason
from scrapy_dripper.page.errors import PageError
from scrapy_dripper.page.recover import xml_text
from scrapy_dripper.page.tags import UNSEEN

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_IMPLIED = 8
"""Elements that a parser adds without a tag, such as ``<html>``, and some to spare."""
_NO_TEXT = frozenset(UNSEEN)


def enforce(root: HtmlElement, source: str, config: Config) -> bool:
    """Hold a tree to the limits of the configuration; ``source`` is the document that it was made of.

    Raise :exc:`PageError` with reason ``oversize`` if it is over one. With ``oversize="truncate"``, cut it off there
    and return True.
    """
    # Every element but a few begins with "<", an attribute takes two characters at least, and no text gets longer.
    if (
        source.count("<") + _IMPLIED <= config.max_nodes
        and len(source) <= 2 * config.max_attributes
        and len(source) <= config.max_text
    ):
        return False
    limits = (
        (config.max_nodes, "elements", "DRIPPER_MAX_NODES"),
        (config.max_attributes, "attributes", "DRIPPER_MAX_ATTRIBUTES"),
        (config.max_text, "characters of text", "DRIPPER_MAX_TEXT"),
    )
    counts = count(root)
    over = [i for i, (limit, _, _) in enumerate(limits) if counts[i] > limit]
    if not over:
        return False
    if config.oversize != "truncate":
        limit, what, setting = limits[over[0]]
        raise PageError(FallbackReason.OVERSIZE, f"{counts[over[0]]:,} {what}, over {setting} = {limit:,}")
    cut_off(root, _fitting(root, *(limit for limit, _, _ in limits)))
    return True


def count(root: HtmlElement) -> tuple[int, int, int]:
    """Return how many elements, attributes and characters of text a tree has."""
    nodes = attributes = text = 0
    for node in root.iter():
        nodes += 1
        attributes += len(node.attrib)
        text += _chars(node)
    return nodes, attributes, text


def _chars(node: HtmlElement) -> int:
    return (len(node.text or "") if node.tag not in _NO_TEXT else 0) + len(node.tail or "")


def _fitting(root: HtmlElement, nodes: int, attributes: int, text: int) -> int:
    """Return how many elements are within all limits, 1 at least; the last one's text is shortened to fit."""
    for i, node in enumerate(root.iter()):
        chars = _chars(node)
        if chars > text:
            node.tail = None
            if node.tag not in _NO_TEXT:
                node.text = xml_text((node.text or "")[:text])
            return i + 1
        attributes -= len(node.attrib)
        text -= chars
        if i and (i >= nodes or attributes < 0):
            return i
    return nodes


def cut_off(root: HtmlElement, most: int) -> bool:
    """Take all but the first elements out of a tree; return False if there are no more than that."""
    node = next(islice(root.iter(), most, None), None)
    if node is None:
        return False
    first = node
    while (parent := node.getparent()) is not None:
        for later in list(node.itersiblings()):
            parent.remove(later)
        node.tail = None
        node = parent
    parent = first.getparent()
    if parent is not None:
        parent.remove(first)
    return True
