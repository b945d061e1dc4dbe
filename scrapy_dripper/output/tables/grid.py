"""Place the cells of a table in a grid, like browsers (HTML standard, 4.9.12, "Forming a table")."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from lxml import etree

from scrapy_dripper.output.items import Item, Items, Paragraph, Text

MAX_ROWSPAN, MAX_COLSPAN = 65_534, 1_000
"""Largest spans (HTML standard, 4.9.11)."""

MAX_SPANNED = 100_000
"""Maximum number of slots covered by all spanning cells of a table. Further cells span one slot."""

MAX_PADDING, MAX_PADDED = 4, 1_000
"""Short rows are padded if the padded table has at most this many slots per cell, or this many slots in total."""

Reader = Callable[[etree._Element], Items]
"""Returns the items in an element."""

_WRAPPERS = frozenset({"thead", "tbody", "tfoot", "form", "table"})
_CELLS = frozenset({"td", "th"})
_SECTIONS = frozenset({"thead", "tbody", "tfoot"})
_NEITHER = frozenset({"colgroup", "col", "script", "style", "template"})
_HEADER_ROLES = frozenset({"columnheader", "rowheader"})
_whole_number = re.compile(r"\s*\+?(\d{1,9})").match


@dataclass(frozen=True, slots=True)
class Placed:
    """A cell and its place in the grid."""

    items: Items
    header: bool
    row: int
    column: int
    rowspan: int
    colspan: int


@dataclass(frozen=True, slots=True)
class Grid:
    """The rows of a table in display order, and its other content."""

    rows: list[list[Placed]]
    """Each row holds the cells that start in it."""
    sections: list[str]
    """The tag of each row's section, such as ``thead``, or an empty string."""
    caption: Items
    strays: Items
    """The content of the table outside of cells."""


@dataclass(frozen=True, slots=True)
class _Row:
    cells: list[etree._Element]
    section: etree._Element | None


def read_grid(element: etree._Element, read: Reader) -> Grid:
    """Return the grid of a ``<table>`` without its empty rows and columns; ``read`` is called once for each cell."""
    rows, captions, strays = _parts(element, read)
    grid, sections = _compact(_place(rows, read), rows)
    return Grid(grid, sections, tuple(item for caption in captions for item in read(caption)), strays)


def is_mostly_padding(rows: Sequence[Sequence[object]]) -> bool:
    """Return True if padding all rows to the length of the longest one would add far more cells than there are.

    For example, 5,000 rows of one cell below a row of 5,000 cells would become 25 million cells.
    """
    slots = len(rows) * max(map(len, rows), default=0)
    return slots > MAX_PADDED and slots > MAX_PADDING * sum(map(len, rows))


def _parts(element: etree._Element, read: Reader) -> tuple[list[_Row], list[etree._Element], Items]:
    """Return the rows in display order, the captions, and the content outside of cells."""
    body: list[_Row] = []
    foot: list[_Row] = []
    captions: list[etree._Element] = []
    strays: list[Item] = []

    def stray(text: str | None) -> None:
        if text and not text.isspace():
            strays.append(Paragraph((Text(" ".join(text.split())),)))

    stray(element.text)
    open_elements = [(iter(element), element)]
    while open_elements:
        children, parent = open_elements[-1]
        child = next(children, None)
        if child is None:
            open_elements.pop()
            continue
        tag = child.tag
        section = parent if parent.tag in _SECTIONS else None
        if tag == "tr":
            cells = [cell for cell in child if isinstance(cell.tag, str) and cell.tag not in _NEITHER]
            (foot if section is not None and section.tag == "tfoot" else body).append(_Row(cells, section))
            stray(child.text)
            for cell in child:
                stray(cell.tail)
        elif tag in _CELLS:  # browsers put a row around adjacent cells
            before = child.getprevious()
            if before is not None and before.tag in _CELLS and body and body[-1].cells[-1] is before:
                body[-1].cells.append(child)
            else:
                body.append(_Row([child], section))
        elif tag == "caption":
            captions.append(child)
        elif tag in _WRAPPERS:
            stray(child.text)
            open_elements.append((iter(child), child))
        elif isinstance(tag, str) and tag not in _NEITHER:
            strays += read(child)
        stray(child.tail)
    return body + foot, captions, tuple(strays)


def _place(rows: Sequence[_Row], read: Reader) -> list[Placed]:
    """Return the cells with their places. A span ends with the section in which it begins."""
    ends = [0] * len(rows)
    for r in range(len(rows) - 1, -1, -1):
        last = r + 1 == len(rows) or rows[r].section is not rows[r + 1].section
        ends[r] = r + 1 if last else ends[r + 1]
    placed: list[Placed] = []
    free_from: list[int] = []  # the first row of each column that no cell above covers
    left = MAX_SPANNED
    for r, row in enumerate(rows):
        column = 0
        for cell in row.cells:
            while column < len(free_from) and free_from[column] > r:
                column += 1
            colspan = min(_span(cell, "colspan") or 1, MAX_COLSPAN)
            rowspan = min(_span(cell, "rowspan") or MAX_ROWSPAN, ends[r] - r)
            if rowspan > 1 or colspan > 1:
                if rowspan * colspan > left:
                    rowspan = colspan = 1
                left -= rowspan * colspan
            free_from += [0] * (column + colspan - len(free_from))
            for c in range(column, column + colspan):
                free_from[c] = max(free_from[c], r + rowspan)
            placed.append(Placed(read(cell), _is_header(cell), r, column, rowspan, colspan))
            column += colspan
    return placed


def _span(cell: etree._Element, name: str) -> int:
    number = _whole_number(cell.get(name, "1"))
    return int(number[1]) if number else 1


def _is_header(cell: etree._Element) -> bool:
    return cell.tag == "th" or cell.get("role") in _HEADER_ROLES or cell.get("scope") is not None


def _compact(placed: Sequence[Placed], rows: Sequence[_Row]) -> tuple[list[list[Placed]], list[str]]:
    """Return the cells of each row and the section of each row, without rows and columns that hold no content."""
    width = max((cell.column + cell.colspan for cell in placed), default=0)
    full_rows, full_columns = [0] * len(rows), [0] * width
    for cell in placed:
        if cell.items:
            full_rows[cell.row] = full_columns[cell.column] = 1
    row_number = list(accumulate(full_rows, initial=0))
    column_number = list(accumulate(full_columns, initial=0))
    grid: list[list[Placed]] = [[] for _ in range(row_number[-1])]
    for cell in placed:
        row, column = row_number[cell.row], column_number[cell.column]
        rowspan = row_number[cell.row + cell.rowspan] - row
        colspan = column_number[cell.column + cell.colspan] - column
        if rowspan and colspan:
            grid[row].append(Placed(cell.items, cell.header, row, column, rowspan, colspan))
    for cells in grid:
        cells.sort(key=lambda cell: cell.column)  # an empty cell may come from a row that was dropped
    sections = [str(row.section.tag) if row.section is not None else "" for row in rows]
    return grid, [section for section, full in zip(sections, full_rows, strict=True) if full]
