"""Cut a tree into the blocks that the published Qwen3 weights were trained on: the profile ``v1.0``.

The rules are those of MinerU-HTML 1.0 (https://github.com/opendatalab/MinerU-HTML; Dripper paper, 3.2), because the
weights expect exactly its output. ``docs/internals/profiles.md`` lists them. This module implements them as two passes
over the nodes. A block refers to its nodes, so labels are mapped back without comparing text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from lxml.html.defs import block_tags

from scrapy_dripper.page.page import Ints, Page, gap_before
from scrapy_dripper.page.runs import RunCutter

if TYPE_CHECKING:
    from lxml.html import HtmlElement

DROPPED = frozenset("head header footer nav aside style script noscript link meta iframe frame".split())
"""Tags that the profile removes, together with their content and tail."""

DROPPED_NAMES = frozenset({"nav", "footer", "header"})
"""Class names, and hyphen-separated parts of ids, for which the profile removes an element in the same way."""

INLINE = frozenset(
    "a abbr acronym b basefont bdo big blink br button cccode-inline ccmath-inline cite code dd dfn dt em font i img "
    "input kbd label li map mark marked-tail marked-text nobr object optgroup option pic q s samp select small span "
    "strike strong sub sup svg textarea time u var".split()
)
"""Inline tags. All others are blocks, except that cells are blocks only in layout tables."""

LISTS = frozenset({"ul", "ol", "dl"})
"""Lists, of which only the first and the last item or group of items are shown."""

_DATA_PARTS = frozenset({"caption", "th", "thead", "tfoot", "colgroup", "col"})


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class V1Page(Page):
    """A page cut by the profile ``v1.0``.

    The model sees block k as an element ``tag[k]`` with the class and id of node ``blocks.context[k]``. The element
    holds the text ``lead[k]`` and those of the nodes ``first[k]`` to ``last[k]`` that are ``shown``. The tree's
    ``flags`` column only reflects tags.
    """

    tag: list[str]
    lead: list[str]
    first: Ints
    last: Ints
    """One past the last node."""
    shown: npt.NDArray[np.bool_]
    """False for each node that is removed from the page or in the middle of a list."""
    ellipsis: npt.NDArray[np.bool_]
    """True for each node before which the middle of a list is left out."""


def cut_v1(root: HtmlElement, url: str = "") -> V1Page:
    """Cut a parsed document into a page by the profile ``v1.0``. The tree is not changed.

    If the document has more than :data:`~scrapy_dripper.page.blocks.MAX_NODES` elements, only the first ones are used
    and the page is truncated.
    """
    return _Cutter(root).page(url)


class _Cutter(RunCutter):
    def __init__(self, root: HtmlElement) -> None:
        super().__init__(root)
        self.look()
        self.divides, self.holds = self._blocks()
        self.shown = [not dropped for dropped in self.dropped]
        self.ellipsis = [False] * len(self.nodes)
        self.tag: list[str] = []
        self.lead: list[str] = []
        self.range: list[tuple[int, int]] = []

    def page(self, url: str) -> V1Page:
        fields = self.fields(url)
        ranges = np.array(self.range, dtype=np.int32).reshape(-1, 2)
        return V1Page(
            **fields,
            tag=self.tag,
            lead=self.lead,
            first=ranges[:, 0],
            last=ranges[:, 1],
            shown=np.array(self.shown),
            ellipsis=np.array(self.ellipsis),
        )

    def drops(self, i: int) -> bool:
        """Return True for a tag that is removed, and for the names and the style of :func:`_has_dropped_name`."""
        nodes = self.nodes
        tag = nodes.tag[i]
        if tag == "body":  # removing the body would leave no page
            return False
        return tag in DROPPED or _has_dropped_name(nodes.name[i], nodes.id[i], nodes.node[i].get("style", ""))

    def _blocks(self) -> tuple[list[bool], list[bool]]:
        """Return for each node whether it is a block, and whether one of its children is."""
        nodes, m = self.nodes, len(self.nodes)
        parts = [
            not dropped and (tag in _DATA_PARTS or node.get("headers") is not None)
            for node, tag, dropped in zip(nodes.node, nodes.tag, self.dropped, strict=True)
        ]
        before = [0, *accumulate(parts)]
        is_block = [tag not in INLINE for tag in nodes.tag]
        has_blocks = [False] * m
        in_data = [False] * m  # inside a data table
        for i, (tag, p) in enumerate(zip(nodes.tag, nodes.parent, strict=True)):
            if i == 0:
                continue
            in_data[i] = in_data[p]
            if nodes.tag[p] == "table":
                get = nodes.node[p].get
                in_data[i] = before[nodes.end[p]] > before[p + 1] or bool(
                    get("summary") or get("role") == "table" or get("data-table")
                )
            if tag in ("td", "th"):
                is_block[i] = not in_data[i]
            if is_block[i] and not self.dropped[i]:
                has_blocks[p] = True
        return is_block, has_blocks

    def number(self, node: int, lead: str, first: int, last: int) -> int:
        """Return the owner number of a leaf or run; see :meth:`RunCutter.number`."""
        nodes = self.nodes
        children = [child for child in nodes.children(first, last) if not self.dropped[child]]
        shown = node, lead, first, last
        if nodes.tag[node] in ("body", "html") and len(children) == 1 and not lead.strip():
            child = children[0]
            if not (nodes.tail[child] or "").strip():
                shown = child, nodes.text[child] or "", child + 1, nodes.end[child]
        self._shorten_all(*shown)
        if self._is_empty(*shown):
            return gap_before(len(self.text))
        number = len(self.text)
        if not children and self.numbers.setdefault((node, lead), number) < number:
            return self.numbers[node, lead]  # repeated text in a container shares the number of the first block
        self.tag.append(self._tag(*shown))
        self.lead.append(shown[1])
        self.range.append(shown[2:])
        self.add(node, lead, first, last, shown[0])
        return number

    def _tag(self, node: int, lead: str, first: int, last: int) -> str:  # noqa: ARG002
        tag = self.nodes.tag[node]
        if tag not in ("body", "html"):
            return tag
        kept = (t for t, gone in zip(self.nodes.tag[first:last], self.dropped[first:last], strict=True) if not gone)
        return "span" if block_tags.isdisjoint(kept) else "div"

    def _shorten_all(self, node: int, lead: str, first: int, last: int) -> None:  # noqa: ARG002
        """Leave out the middle of each list in a block, and of the block itself if it is a list."""
        self._shorten(node, first, last)
        for i in self._shown_nodes(first, last):
            self._shorten(i, i + 1, self.nodes.end[i])

    def _is_empty(self, node: int, lead: str, first: int, last: int) -> bool:
        """Return True if the shown part of a block has no text and no image."""
        if lead.strip() or self._is_image(node):
            return False
        return all(self._is_blank(i) for i in self._shown_nodes(first, last))

    def _shown_nodes(self, first: int, last: int) -> Iterator[int]:
        """Yield the shown nodes of a slice. Skip the subtrees of nodes that are not shown."""
        i = first
        while i < last:
            if self.shown[i]:
                yield i
                i += 1
            else:
                i = self.nodes.end[i]

    def _is_blank(self, i: int) -> bool:
        if self.ellipsis[i]:
            return False
        if self.nodes.tag[i] == "img":
            return not self._is_image(i)  # its tail does not count
        text, tail = self.nodes.text[i], self.nodes.tail[i]
        return not (text and text.strip()) and not (tail and tail.strip())

    def _is_image(self, i: int) -> bool:
        return self.nodes.tag[i] == "img" and bool(image_source(self.nodes.node[i].get("src", "")))

    def _shorten(self, node: int, first: int, last: int) -> None:
        """Hide all but the first and the last item or group of a list, whose children are a slice."""
        nodes, tag = self.nodes, self.nodes.tag[node]
        if tag not in LISTS:
            return
        items = [child for child in nodes.children(first, last) if not self.dropped[child]]
        terms = [i for i, item in enumerate(items) if nodes.tag[item] == "dt"]
        if len(items) <= 2 or (tag == "dl" and len(terms) < 2):
            return
        hidden, final = items[1:-1], items[-1]
        if tag == "dl":
            hidden, final = items[: terms[0]] + items[terms[1] : terms[-1]], items[terms[-1]]
        self.ellipsis[final] = True
        for item in hidden:
            self.shown[item : nodes.end[item]] = [False] * (nodes.end[item] - item)


def image_source(src: str) -> str:
    """Return the ``src`` that the profile shows for an image. It is empty for ``data:`` images."""
    src = src.strip()
    return "" if src.startswith("data:image/") else src


def _has_dropped_name(name: str, identity: str, style: str) -> bool:
    if name and not DROPPED_NAMES.isdisjoint(name.split()):
        return True
    if identity and not DROPPED_NAMES.isdisjoint(identity.strip().split("-")):
        return True
    return "display: none" in style or "display:none" in style
