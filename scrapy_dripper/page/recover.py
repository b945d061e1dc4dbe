"""Build trees for documents with extreme nesting or extremely many attributes in a tag.

The usual parser silently stops building its tree at a depth of 2,048, and takes quadratic time in the attributes of a
tag. This module uses the same parser for the tokens only, and builds the tree itself with limits on both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from lxml import etree, html

from scrapy_dripper.characters import append_text, has_controls, set_attributes, without_controls, xml_text
from scrapy_dripper.page.tags import VOID

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_NODES = 300_000
"""Maximum number of elements in a recovered tree, which take about 2 s."""
MAX_STEPS = 1_000_000_000
"""Maximum number of comparisons of unmatched end tags with open elements, which take about 1 s."""

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


def recover(data: bytes, depth: int) -> HtmlElement:
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
