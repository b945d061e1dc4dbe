"""The nodes of a tree in document order, as columns for the cutters, and which of them are part of a sentence."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice
from operator import attrgetter
from typing import TYPE_CHECKING, cast

import numpy as np
from lxml import etree

from scrapy_dripper.page.page import Flag, Ints, Tree
from scrapy_dripper.page.tags import DRAWN, DRAWN_MATHML, KINDS, REFERENCES, ROLE_FLAGS, TAG_FLAGS, TAGS, Kind

if TYPE_CHECKING:
    from lxml.html import HtmlElement

BREAK = "\0"
"""Marks a line break while text is collected. The parser never returns NUL itself."""

_attributes = cast("Callable[[HtmlElement], list[tuple[str, str]]]", etree._Element.items)
_parent = cast("Callable[[HtmlElement], HtmlElement]", etree._Element.getparent)
SLATE = "data-slate-type"
"""The attribute by which the editor Slate names its blocks."""
SLATE_CODE = frozenset({"pre", "code", "code-block", "code_block"})
_HIDES, _REFERS, _TELLS = 1, 2, 4
_TELLING = {
    **dict.fromkeys(("role", "property", "itemtype", SLATE), 0),
    **dict.fromkeys(("style", "hidden"), _HIDES),
    **dict.fromkeys(REFERENCES, _REFERS),
    **dict.fromkeys(("datetime", "title", "itemprop", "rel"), _TELLS),
}
"""The attributes that are read, and what their node may do: hide, refer to another one, or tell a date or an author."""
_hiding = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden").search


class Nodes:
    """The nodes of a tree in document order, so that a subtree is a slice."""

    def __init__(self, root: HtmlElement, *, attributes: bool) -> None:
        """With ``attributes``, flags are also taken from roles and other attributes, and not only from tags."""
        self.node: list[HtmlElement] = list(root.iter())
        m = len(self.node)
        # The methods are mapped, because a loop in Python takes twice as long.
        number = dict(zip(self.node, range(m), strict=True))
        self.parent = [-1, *map(number.__getitem__, map(_parent, self.node[1:]))]
        self.end = end = list(range(1, m + 1))
        for i in range(m - 1, 0, -1):
            p = self.parent[i]
            if end[i] > end[p]:
                end[p] = end[i]
        self.tag = list(map(str, map(attrgetter("tag"), self.node)))
        self.text: list[str | None] = [node.text for node in self.node]
        self.tail: list[str | None] = [node.tail for node in self.node]
        known = {tag: KINDS.get(tag, Kind.BLOCK if "-" in tag else Kind.INLINE) for tag in set(self.tag)}
        self.kind = [known[tag] for tag in self.tag]
        """The :class:`Kind` of each node, by its tag alone."""
        self.name = [""] * m
        self.id = [""] * m
        self.depth = [0] * m
        self.flags = [TAG_FLAGS.get(tag, 0) for tag in self.tag]
        self.may_hide: list[int] = []
        self.refers: list[int] = []
        self.tabs: list[int] = []
        self.typed: list[int] = []
        self.tells: list[int] = []
        self.declares: list[int] = []
        """The nodes with a property of schema.org, in microdata or RDFa."""
        self._read_attributes(attributes)
        flags, depth = self.flags, self.depth
        for i, p in enumerate(islice(self.parent, 1, None), start=1):
            flags[i] |= flags[p]
            depth[i] = depth[p] + 1

    def _read_attributes(self, attributes: bool) -> None:
        """Fill in names, ids, the flags of the nodes themselves, and the nodes with attributes of certain kinds."""
        names, ids, flags = self.name, self.id, self.flags
        of_schema = {"itemprop": self.declares, "property": self.declares, "itemtype": self.typed}
        lists = (self.may_hide, self.refers, self.tells)
        by_marks = [[one for bit, one in enumerate(lists) if marks >> bit & 1] for marks in range(8)]
        for i, pairs in enumerate(map(_attributes, self.node)):
            marks = 0
            for key, value in pairs:
                if key == "class":
                    names[i] = value
                elif key == "id":
                    ids[i] = value
                elif key == "href":
                    marks |= _TELLS | _REFERS if value[:1] == "#" else _TELLS
                elif key in _TELLING or key[:5] == "aria-":
                    marks |= _TELLING.get(key, 0)
                    if key in of_schema:
                        of_schema[key].append(i)
                    if key == "role" and value[:3] == "tab":
                        self.tabs.append(i)
                    if attributes:
                        flags[i] |= _flags_of(key, value)
            for nodes in by_marks[marks]:
                nodes.append(i)

    def tree(self, block_start: Ints, block_end: Ints, text_owner: Ints, tail_owner: Ints, self_owner: Ints) -> Tree:
        """Return the tree of a page, with the columns that a cutter has filled in."""
        numbers = {tag: TAGS.get(tag, 0) for tag in set(self.tag)}
        pairs: defaultdict[tuple[str, str], int] = defaultdict()
        pairs.default_factory = pairs.__len__
        return Tree(
            nodes=self.node,
            parent=ints(self.parent),
            end=ints(self.end),
            tag=ints([numbers[tag] for tag in self.tag]),
            tag_class=ints(list(map(pairs.__getitem__, zip(self.tag, self.name, strict=True)))),
            names=[f"{name} {id_}" if id_ else name for name, id_ in zip(self.name, self.id, strict=True)],
            flags=ints(self.flags),
            may_hide=self.may_hide,
            refers=self.refers,
            tabs=self.tabs,
            typed=self.typed,
            tells=self.tells,
            depth=ints(self.depth),
            block_start=block_start,
            block_end=block_end,
            text_owner=text_owner,
            tail_owner=tail_owner,
            self_owner=self_owner,
        )


def _flags_of(attribute: str, value: str) -> int:
    """Return the flags that an attribute gives to its element."""
    if attribute == "role":
        return ROLE_FLAGS.get(value, 0) | Flag.ARIA
    if attribute == "hidden":
        return Flag.HIDDEN
    if attribute == SLATE:
        return Flag.CODE if value in SLATE_CODE else 0
    if attribute == "style":
        return Flag.HIDDEN if _hiding(value.lower()) else 0
    if attribute[:5] == "aria-":
        return Flag.HIDDEN if attribute == "aria-hidden" and value == "true" else Flag.ARIA
    return 0


def may_be_hidden(node: HtmlElement) -> bool:
    """Return True if the attributes of an element hide it."""
    return any(_flags_of(key, value) & Flag.HIDDEN for key, value in node.items())


def is_math_script(element: etree._Element) -> bool:
    """Return True for a ``<script type="math/...">``, which holds a formula for MathJax 2."""
    return element.tag == "script" and (element.get("type") or "").strip().lower().startswith("math/")


def drawn(elements: list[HtmlElement]) -> set[HtmlElement]:
    """Return the SVG images of formulas that MathJax has drawn without adding MathML."""
    only_drawn: dict[HtmlElement, bool] = {}
    found = set()
    for element in elements:
        container = next(element.iterancestors(DRAWN), None) if element.tag == "svg" else None
        if container is not None and container not in only_drawn:
            only_drawn[container] = container.find(DRAWN_MATHML) is None
        if container is not None and only_drawn[container]:
            found.add(element)
    return found


def is_silent_content(element: HtmlElement) -> bool:
    """Return True for content without text of its own: a formula in a script, and a frame with a source."""
    is_frame = element.tag == "iframe" and len(element) == 0 and bool(element.get("src") or element.get("data-src"))
    return is_frame or is_math_script(element)


SHORT = 200
"""Maximum number of nodes, and of characters, in something short."""


def inner_text(element: etree._Element) -> str:
    """Return the characters in an element."""
    return "".join(cast("Iterator[str]", element.itertext()))


def short_text(element: etree._Element) -> str | None:
    """Return the characters in an element, or None if it has more than :data:`SHORT` nodes or characters.

    This also limits the time, so it can be called for each of many nested elements.
    """
    if next(islice(element.iter(), SHORT, None), None) is not None:
        return None
    text = inner_text(element)
    return text if len(text) <= SHORT else None


def ints(values: Sequence[int]) -> Ints:
    """Return a column."""
    return np.array(values, dtype=np.int32)


def collapsed(text: str, preformatted: bool) -> str:
    """Return a text with white space collapsed as in a browser, and a newline for each :data:`BREAK`."""
    if preformatted:
        return text.replace(BREAK, "\n").strip("\n").rstrip()
    if BREAK not in text:
        return " ".join(text.split())
    lines = (" ".join(line.split()) for line in text.split(BREAK))
    return "\n".join(line for line in lines if line)


# ---------------------------------------------------------------------- sentences
# Custom elements and buttons can be inline parts of a sentence, although their tags could be blocks.
SIBLINGS_AROUND = 5
"""How many siblings and ancestors to search for adjacent text. On 1,801 pages, 4 give the same as 32."""

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
        breaking = {tag: ends_line(tag) for tag in known}
        lines = [0, *accumulate([breaking[tag] for tag in tags])]
        until = 0
        for i in asked:
            if i < until or (lines[end[i]] == lines[i] and _in_text(nodes.node[i])):
                kinds[i] = Kind.INLINE
                until = max(until, end[i])
    return kinds


def in_sentence(element: etree._Element) -> bool:
    """Return True if a custom element or a button holds no block and is part of running text."""
    inside = list(islice(element.iter(), 1, SHORT + 2))
    return len(inside) <= SHORT and not any(map(ends_line, {node.tag for node in inside})) and _in_text(element)


def ends_line(tag: object) -> bool:
    """Return True for a tag that is a block or a line break in any context."""
    kind = KINDS.get(tag, Kind.INLINE) if isinstance(tag, str) else Kind.INLINE
    return kind == Kind.BREAK or (kind == Kind.BLOCK and tag != "button")


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
    for _ in range(SIBLINGS_AROUND):
        if (parent := node.getparent()) is None:
            return False
        sibling = node.getnext() if forward else node.getprevious()
        text = node.tail if forward else parent.text if sibling is None else sibling.tail
        if text and _text(text):
            return True
        node = parent if sibling is None else sibling
        if ends_line(node.tag) or (sibling is None and node.tag in _CODE):
            return False
    return False


def _line_of(element: etree._Element) -> str:
    """Return the tag of the nearest block around an element."""
    node = element.getparent()
    for _ in range(SIBLINGS_AROUND):
        if node is None or ends_line(node.tag):
            break
        node = node.getparent()
    return str(node.tag) if node is not None else ""
