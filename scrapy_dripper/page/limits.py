"""Limits for the elements, attributes and text of a tree."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.page.page import Over, PageError
from scrapy_dripper.page.recover import xml_text
from scrapy_dripper.page.tags import UNSEEN

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_IMPLIED = 8
"""Upper bound for the elements that a parser adds without a tag, such as ``<html>``."""
_NO_TEXT = frozenset(UNSEEN)
_WORDS = {"nodes": "elements", "attributes": "attributes", "text": "characters of text"}
"""What the keys of ``DRIPPER_LIMITS`` limit."""


def count_byte(data: bytes, byte: bytes) -> int:
    """Return how often a byte occurs. ``data.count`` takes four times as long."""
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == byte[0]))


def enforce(root: HtmlElement, source: str, data: bytes, config: Config) -> Over | None:
    """Enforce the limits of the configuration on a tree that was parsed from ``source``, which is ``data`` in UTF-8.

    If the tree exceeds a limit, raise :exc:`PageError` with reason ``oversize``. With ``oversize="truncate"``, cut the
    tree off instead and return what it exceeds.
    """
    limits = config.limits
    # Skip the count for short documents: almost every element needs a "<", an attribute at least two characters, and
    # parsing never makes text longer.
    if (
        len(source) <= 2 * limits.attributes
        and len(source) <= limits.text
        and (len(data) + _IMPLIED <= limits.nodes or count_byte(data, b"<") + _IMPLIED <= limits.nodes)
    ):
        return None
    most = {"nodes": limits.nodes, "attributes": limits.attributes, "text": limits.text}
    counts = dict(zip(most, count(root), strict=True))
    key = next((key for key in most if counts[key] > most[key]), None)
    if key is None:
        return None
    setting = f'DRIPPER_LIMITS["{key}"]'
    over = Over(f"{counts[key]:,} {_WORDS[key]}, over {setting} = {most[key]:,}", setting)
    if config.oversize != "truncate":
        raise PageError(FallbackReason.OVERSIZE, *over)
    cut_off(root, _fitting(root, *most.values()))
    return over


def count(root: HtmlElement) -> tuple[int, int, int]:
    """Return the numbers of elements, attributes and characters of text in a tree."""
    nodes = attributes = text = 0
    for node in root.iter():
        nodes += 1
        attributes += len(node.attrib)
        text += _chars(node)
    return nodes, attributes, text


def _chars(node: HtmlElement) -> int:
    return (len(node.text or "") if node.tag not in _NO_TEXT else 0) + len(node.tail or "")


def _fitting(root: HtmlElement, nodes: int, attributes: int, text: int) -> int:
    """Return how many elements are within all limits, at least 1. The text of the last one is shortened to fit."""
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
    """Remove all but the first ``most`` elements of a tree. Return False if it has no more than that."""
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
