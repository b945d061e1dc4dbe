"""Build trees for documents with extreme nesting or extremely many attributes in a tag.

The usual parser silently stops building its tree at a depth of 2,048, and takes quadratic time in the attributes of a
tag. This module uses the same parser for the tokens only, and builds the tree itself with limits on both.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from lxml import etree, html

from scrapy_dripper.characters import has_controls, without_controls
from scrapy_dripper.page.tags import VOID

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_DEPTH = 200
"""Maximum depth of a recovered tree, low enough for recursive code. Deeper elements become siblings."""
MAX_ATTRIBUTES = 1_000
"""Attributes of a tag to keep. libxml2's tree takes 0.2 s for 10,000 attributes, 1 s for 20,000, 12 s for 40,000."""
MAX_NODES = 300_000
"""Maximum number of elements in a recovered tree, which take about 2 s."""
MAX_STEPS = 1_000_000_000
"""Maximum number of comparisons of unmatched end tags with open elements, which take about 1 s."""

_STRIDE = 16_384
_tag = re.compile(rb"<[a-zA-Z]").search
_attribute = re.compile(rb"""=\s*(?:"[^"]*"|'[^']*')|[\s/"'][^\s/"'>=]""").finditer  # a value to skip, or a name
_opening_quote = re.compile(rb"""=\s*(["'])""").search

# lxml rejects these characters in new text, although its parser lets some of them pass.
_not_xml = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

# Formatting does not affect the blocks, so beyond the depth limit its text joins the parent element.
_FORMATTING = frozenset(
    {"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "center", "cite", "code", "del", "dfn", "em", "font", "i"}
    | {"ins", "kbd", "label", "mark", "nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup"}
    | {"time", "tt", "u", "var"}
)
_WRAPPERS = frozenset({"article", "center", "div", "main", "section", "table", "tbody", "td", "tr", "ul", "ol", "form"})
_ONCE = frozenset({"html", "head", "body"})


class RecoveryError(Exception):
    """The document exceeds the limits of this module."""


def recover(data: bytes, depth: int = MAX_DEPTH) -> HtmlElement:
    """Return the tree of a UTF-8 document, with limited depth and attributes, in limited time.

    Raise :exc:`RecoveryError` if the document exceeds a limit.
    """
    builder = _Builder(depth)
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True, recover=True, no_network=True, target=cast(Any, builder))
    start = steps = 0
    while start < len(data):
        # The parser compares an unmatched end tag with every open element, so it gets smaller pieces of deeper trees.
        bite = data[start : start + max(1_024, min(65_536, 2**28 // (len(builder.open) + 1)))]
        ended = builder.ended
        parser.feed(bite)
        steps += max(0, bite.count(b"</") - (builder.ended - ended)) * len(builder.open)
        if steps > MAX_STEPS:
            raise RecoveryError("the document has too many unmatched end tags in deeply nested elements")
        start += len(bite)
    with contextlib.suppress(etree.LxmlError):  # raised for a document without elements, such as comments only
        parser.close()
    return builder.close()


def has_attribute_run(data: bytes) -> bool:
    """Return True if a tag may have more than :data:`MAX_ATTRIBUTES` attributes. False alarms are possible.

    The function checks only the last ``>`` in each stride of 16 kB. If it ends a tag or is part of text, nothing before
    it matters. If it is inside a quoted value, the last quote before it opens that value, and a run of attributes may
    follow the value.
    """
    here, size = 0, len(data)
    budget = 2 * size  # the ranges to search can overlap
    while here + _STRIDE < size and budget > 0:
        last = data.rfind(b">", here, here + _STRIDE)
        if last < 0:
            end = data.find(b">", here + _STRIDE)
            end = size if end < 0 else end
            tag = _tag(data, here, end)
            if tag is not None and _too_many(data, tag.start(), end):
                return True
            here = end + 1
            continue
        for quote in (b'"', b"'"):
            opening = data.rfind(quote, here, last)
            if opening > 0 and data[here:opening].rstrip().endswith(b"="):
                closing = data.find(quote, last)
                if closing > 0:
                    end = _tag_end(data, closing + 1)
                    budget -= end - closing
                    if _too_many(data, closing + 1, end):
                        return True
        here = last + 1
    return budget <= 0 < size


def _too_many(data: bytes, start: int, end: int) -> bool:
    """Return True if the inside of a tag may have too many attributes. An attribute with a value counts twice."""
    if end - start < 4 * MAX_ATTRIBUTES:
        return False
    return any(i >= 2 * MAX_ATTRIBUTES for i, _ in enumerate(_attribute(data, start, end)))


def _tag_end(data: bytes, start: int) -> int:
    """Return the end of a tag, searching from ``start``, which is inside the tag but outside of a value."""
    here, end = start, -1
    while True:
        if end < here:
            end = data.find(b">", here)
            end = len(data) if end < 0 else end
        opening = _opening_quote(data, here, end)
        closing = data.find(opening[1], opening.end()) if opening else -1
        if closing < 0:
            return end
        here = closing + 1


class _Builder:
    """Parser target that builds a tree of at most ``most`` levels.

    ``open`` has one entry per open tag: the element that receives its text. Beyond the depth limit, blocks become
    children of the element above the limit. Text that belongs to an earlier one of them goes after the last one.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.root: HtmlElement = cast(Any, html.HTMLParser()).makeelement("html")
        self.singles: dict[str, HtmlElement] = {"html": self.root}
        self.open: list[HtmlElement] = []
        self.flat: HtmlElement = self.root  # the last element at the depth limit
        self.nodes = 0
        self.ended = 0
        # Pieces of text are joined once, since appending each one to an element would be quadratic.
        self.text: list[str] = []
        self.into: HtmlElement | None = None  # None for the tail of ``flat``

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        depth = len(self.open)
        if tag == "head" and "body" in self.singles:  # after the body has begun, it holds content
            tag, attributes = "body", {}
        if tag in _ONCE and depth < self._most - 1:
            element = self._single(tag, attributes)
        elif depth < self._most:
            element = self._make(self._parent(tag), tag, attributes)
            if depth == self._most - 1:
                self.flat = element
            if tag in VOID:  # its content goes to the parent
                element = self.open[-1] if self.open else element.getparent()
        elif tag in _FORMATTING or tag in VOID:
            element = self.open[-1]
        else:
            self._flush()
            above = self.open[self._most - 2]
            if self.flat.tag in _WRAPPERS and not (self.flat.text or self.flat.tail):
                above.remove(self.flat)
            element = self.flat = self._make(above, tag, attributes)
        self.open.append(element)

    def end(self, tag: str) -> None:  # noqa: ARG002 - the parser's interface
        self.ended += 1
        if self.open:
            self.open.pop()

    def data(self, data: str) -> None:
        into: HtmlElement | None = self.open[-1] if self.open else self.root
        if into is self.root:
            if data.isspace():
                return
            into = self._single("body", {})
        elif len(self.open) >= self._most and into is not self.flat:
            into = None
        if into is not self.into:
            self._flush()
            self.into = into
        self.text.append(data)

    def close(self) -> HtmlElement:
        self._flush()
        if self.root.find("frameset") is None:
            self._single("body", {})
        return self.root

    def _single(self, tag: str, attributes: Mapping[str, str]) -> HtmlElement:
        """Return the document's only element with this tag. The content of further ones is added to it."""
        if tag not in self.singles:
            self.singles[tag] = self._make(self.root, tag, attributes)
        elif not self.singles[tag].attrib:  # an explicit tag after an implied one
            set_attributes(self.singles[tag], attributes)
        return self.singles[tag]

    def _parent(self, tag: str) -> HtmlElement:
        """Return the parent for a new element. Content beside the body goes into the body."""
        parent = self.open[-1] if self.open else self.root
        return parent if parent is not self.root or tag == "frameset" else self._single("body", {})

    def _make(self, parent: HtmlElement, tag: str, attributes: Mapping[str, str]) -> HtmlElement:
        self._flush()
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise RecoveryError(f"the document is deeply nested and has more than {MAX_NODES:,} elements")
        try:
            element = etree.SubElement(parent, tag)
        except ValueError:  # a tag name such as ``p"x``
            element = etree.SubElement(parent, "span")
        set_attributes(cast("HtmlElement", element), attributes)
        return cast("HtmlElement", element)

    def _flush(self) -> None:
        if not self.text:
            return
        text = "".join(self.text)
        self.text.clear()
        if self.into is None:
            self.flat.tail = xml_text((self.flat.tail or "") + text)
        else:
            append_text(self.into, text)


def append_text(element: HtmlElement, text: str) -> None:
    """Add text at the end of an element."""
    if len(element):
        last = element[-1]
        last.tail = xml_text((last.tail or "") + text)
    else:
        element.text = xml_text((element.text or "") + text)


def xml_text(text: str) -> str:
    """Replace the characters that lxml rejects by U+FFFD."""
    return _not_xml.sub("\ufffd", text)


def drop_controls(root: HtmlElement) -> None:
    """Remove the control characters from the text and the attributes of a tree."""
    for element in root.iter():
        for name in ("text", "tail"):
            text = getattr(element, name)
            if text and has_controls(text):
                setattr(element, name, without_controls(text))
        attributes = element.items()
        if any(has_controls(part) for attribute in attributes for part in attribute):
            element.attrib.clear()  # lxml cannot delete a single attribute whose name it rejects
            set_attributes(element, {name: without_controls(value) for name, value in attributes})


def set_attributes(element: HtmlElement, attributes: Mapping[str, str]) -> None:
    """Set the first :data:`MAX_ATTRIBUTES` attributes. Skip names that lxml rejects."""
    for name, value in islice(attributes.items(), MAX_ATTRIBUTES):
        # A name such as ``"`` is rejected. Nothing reads such attributes.
        with contextlib.suppress(ValueError):
            element.set(name, xml_text(value))
