"""Trees of documents that the usual parser cuts off, or takes for ever over: absurd nesting, absurd attribute lists.

The tokens come from the same parser, without its tree: it is building the tree that stops at a depth of 2,048 (without
an exception) and that takes quadratic time in the attributes of one tag. The tree is built here, with both capped.
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
"""Depth of a recovered tree: what is nested deeper comes out side by side. Leaves room for code that recurses."""
MAX_ATTRIBUTES = 1_000
"""Attributes of a tag that are kept. libxml2's tree takes 0.2 s for 10,000, 1 s for 20,000, 12 s for 40,000."""
MAX_NODES = 300_000
"""Elements made for a recovered tree; about 2 s."""
MAX_STEPS = 1_000_000_000
"""Open elements that end tags without a start may be compared with, in all; about 1 s."""

_STRIDE = 16_384
_tag = re.compile(rb"<[a-zA-Z]").search
_attribute = re.compile(rb"""=\s*(?:"[^"]*"|'[^']*')|[\s/"'][^\s/"'>=]""").finditer  # or a value, to step over
_opening_quote = re.compile(rb"""=\s*(["'])""").search

# lxml refuses these in new text, though its parser lets some of them through.
_not_xml = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

# Formatting has no meaning of its own for the blocks; beyond the depth limit its text joins the element around it.
_FORMATTING = frozenset(
    {"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "center", "cite", "code", "del", "dfn", "em", "font", "i"}
    | {"ins", "kbd", "label", "mark", "nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup"}
    | {"time", "tt", "u", "var"}
)
_WRAPPERS = frozenset({"article", "center", "div", "main", "section", "table", "tbody", "td", "tr", "ul", "ol", "form"})
_ONCE = frozenset({"html", "head", "body"})


class RecoveryError(Exception):
    """The document is over the limits of this module."""


def recover(data: bytes, depth: int = MAX_DEPTH) -> HtmlElement:
    """Return the tree of a document in UTF-8, bounded in time, depth and attributes. Raise :exc:`RecoveryError`."""
    builder = _Builder(depth)
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True, recover=True, no_network=True, target=cast(Any, builder))
    start = steps = 0
    while start < len(data):
        # An end tag that matches nothing is compared with every open element: small bites where that can hurt.
        bite = data[start : start + max(1_024, min(65_536, 2**28 // (builder.depth + 1)))]
        ended = builder.ended
        parser.feed(bite)
        steps += max(0, bite.count(b"</") - (builder.ended - ended)) * builder.depth
        if steps > MAX_STEPS:
            raise RecoveryError("too many end tags without a start in too deep a nesting")
        start += len(bite)
    with contextlib.suppress(etree.LxmlError):  # it misses elements in a document of comments
        parser.close()
    return builder.close()


def has_attribute_run(data: bytes) -> bool:
    """Return True if a tag may have more than :data:`MAX_ATTRIBUTES` attributes; there are false alarms.

    Looks at one ``>`` in about 16 kB, the last of each stride. If it ends a tag or stands in text, nothing before it
    matters any more. If it is hidden in a quoted value, the last quote before it opens that value, and what follows
    the value may be a run of attributes.
    """
    here, size = 0, len(data)
    budget = 2 * size  # the stretches that are looked at can overlap
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
    """Return True if the inside of a tag may have too many attributes. One with a value counts double."""
    if end - start < 4 * MAX_ATTRIBUTES:
        return False
    return any(i >= 2 * MAX_ATTRIBUTES for i, _ in enumerate(_attribute(data, start, end)))


def _tag_end(data: bytes, start: int) -> int:
    """Return where the tag ends that is open, outside a value, at ``start``."""
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
    """Parser target that builds a tree no deeper than ``most`` elements.

    ``open`` has one entry per open tag: the element that its text goes to. Beyond the limit, blocks become children of
    the element above the limit, one after the other, and text that comes back to an earlier one goes after the last.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.root: HtmlElement = cast(Any, html.HTMLParser()).makeelement("html")
        self.singles: dict[str, HtmlElement] = {"html": self.root}
        self.open: list[HtmlElement] = []
        self.flat: HtmlElement = self.root  # the last element at the depth limit
        self.nodes = 0
        self.ended = 0
        # Text is kept until it goes elsewhere: adding each piece to what an element has would be quadratic.
        self.text: list[str] = []
        self.into: HtmlElement | None = None  # None for the tail of ``flat``

    @property
    def depth(self) -> int:
        return len(self.open)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        depth = len(self.open)
        if tag == "head" and "body" in self.singles:  # too late: what follows is content
            tag, attributes = "body", {}
        if tag in _ONCE and depth < self._most - 1:
            element = self._single(tag, attributes)
        elif depth < self._most:
            element = self._make(self._parent(tag), tag, attributes)
            if depth == self._most - 1:
                self.flat = element
            if tag in VOID:  # its content is the parent's
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
        """Return the document's one element of this tag; a repetition only adds its content."""
        if tag not in self.singles:
            self.singles[tag] = self._make(self.root, tag, attributes)
        elif not self.singles[tag].attrib:  # the tag itself, after one that was implied
            set_attributes(self.singles[tag], attributes)
        return self.singles[tag]

    def _parent(self, tag: str) -> HtmlElement:
        """Return what a new element goes into: content that stands beside the body belongs to it."""
        parent = self.open[-1] if self.open else self.root
        return parent if parent is not self.root or tag == "frameset" else self._single("body", {})

    def _make(self, parent: HtmlElement, tag: str, attributes: Mapping[str, str]) -> HtmlElement:
        self._flush()
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise RecoveryError(f"more than {MAX_NODES:,} elements in too deep a nesting")
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
    """Return a text with what lxml refuses replaced."""
    return _not_xml.sub("\ufffd", text)


def drop_controls(root: HtmlElement) -> None:
    """Take the control characters out of a tree, for what is written of it, or by programs that write into it again."""
    for element in root.iter():
        for name in ("text", "tail"):
            text = getattr(element, name)
            if text and has_controls(text):
                setattr(element, name, without_controls(text))
        attributes = element.items()
        if any(has_controls(part) for attribute in attributes for part in attribute):
            element.attrib.clear()  # lxml cannot be told to delete one whose name it refuses
            set_attributes(element, {name: without_controls(value) for name, value in attributes})


def set_attributes(element: HtmlElement, attributes: Mapping[str, str]) -> None:
    """Set the first :data:`MAX_ATTRIBUTES` attributes, as far as their names can be set."""
    for name, value in islice(attributes.items(), MAX_ATTRIBUTES):
        # A name such as ``"`` cannot be set; nothing reads such attributes either.
        with contextlib.suppress(ValueError):
            element.set(name, xml_text(value))
