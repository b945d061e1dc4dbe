"""Tree edit distance similarity of tables (TEDS; Zhong, ShafieiBavani and Jimeno Yepes 2020, *Image-based table
recognition*, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apted import APTED
from apted import Config as Costs
from lxml.html import HtmlElement
from rapidfuzz.distance import Levenshtein

LARGEST = 1_000_000
"""Maximum product of the numbers of nodes of two trees that are compared. Larger trees take minutes, because the time
is cubic.
"""


def edit_similarity(one: str, other: str) -> float:
    """Return 1 - Levenshtein distance / length of the longer text; 1 for two empty texts."""
    return float(Levenshtein.normalized_similarity(one, other))


@dataclass(frozen=True)
class Node:
    """A node of the tree that stands for the tables of a page."""

    tag: str
    text: str = ""
    spans: tuple[str, str] = ("1", "1")
    children: tuple[Node, ...] = ()

    @property
    def size(self) -> int:
        """Number of nodes of the subtree, including this node."""
        return 1 + sum(child.size for child in self.children)


class _Costs(Costs):  # type: ignore[misc]
    """The costs of the paper: 1 for inserting, deleting or renaming a node, and the share of changed characters for a
    change of text.
    """

    def rename(self, node1: Node, node2: Node) -> float:
        if node1.tag != node2.tag or node1.spans != node2.spans:
            return 1.0
        return 1.0 - edit_similarity(node1.text, node2.text)

    def children(self, node: Node) -> Sequence[Node]:
        return node.children


def teds(one: Sequence[HtmlElement], other: Sequence[HtmlElement]) -> float | None:
    """Return the similarity of the tables of two pages: 1 - distance / nodes of the larger tree.

    Header cells count as cells. Groups of rows do not count. Neither do rows without text, because Markdown must write
    an empty header if a table has none. Two pages without tables are equal. Return None if the trees exceed
    :data:`LARGEST`.
    """
    first, second = (Node("page", children=tuple(map(_table, tables))) for tables in (one, other))
    if not first.children or not second.children:
        return float(len(first.children) == len(second.children))
    if first.size * second.size > LARGEST:
        return None
    distance = float(APTED(first, second, _Costs()).compute_edit_distance())
    return 1.0 - distance / (max(first.size, second.size) - 1)


def _table(table: HtmlElement) -> Node:
    rows = (row for row in table.iter("tr") if next(row.iterancestors("table")) is table)
    return Node("table", children=tuple(_row(row) for row in rows if row.text_content().strip() or _has_image(row)))


def _has_image(row: HtmlElement) -> bool:
    return next(row.iter("img"), None) is not None


def _row(row: HtmlElement) -> Node:
    return Node("tr", children=tuple(_cell(cell) for cell in row if cell.tag in ("td", "th")))


def _cell(cell: HtmlElement) -> Node:
    nested = [one for one in cell.iter("table") if next(one.iterancestors("td", "th")) is cell]
    text = "" if nested else " ".join(" ".join(cell.itertext()).split())
    spans = (cell.get("rowspan", "1"), cell.get("colspan", "1"))
    return Node("td", text, spans, tuple(map(_table, nested)))
