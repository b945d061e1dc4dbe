"""Read tables, and write those that Markdown cannot express.

Cells are placed in a grid, and header rows and layout tables are told by the content of cells and not by their markup,
so each cell is read only once. Tables with spans or with more than text in a cell become HTML, or simple tables whose
spanning cells are repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import accumulate, chain

from lxml import etree

from scrapy_dripper.structures.items import (
    Audio,
    Card,
    Cell,
    Code,
    CodeBlock,
    Deleted,
    Emphasis,
    FootnoteMark,
    Footnotes,
    Formula,
    Image,
    Item,
    Items,
    LineBreak,
    Link,
    List,
    ListItem,
    Paragraph,
    Post,
    Quote,
    Ruby,
    Run,
    Runs,
    Strong,
    Sub,
    Sup,
    Table,
    Text,
    ThematicBreak,
    Title,
    Video,
    as_lines,
    inside,
    plain_text,
)

MAX_SPANNED = 100_000
"""Maximum number of slots covered by all spanning cells of a table. Further cells span one slot."""

MAX_PADDING, MAX_PADDED = 4, 1_000
"""Short rows are padded if the padded table has at most this many slots per cell, or this many slots in total. The
first also limits how much longer repeated cells make a table, and the second how many columns a cell spans (HTML
standard, 4.9.11)."""

Read = Callable[[etree._Element], Items]
"""Returns the items in an element."""

_WRAPPERS = frozenset({"thead", "tbody", "tfoot", "form", "table"})
_CELLS = frozenset({"td", "th"})
_SECTIONS = frozenset({"thead", "tbody", "tfoot"})
_NEITHER = frozenset({"colgroup", "col", "script", "style", "template"})
_HEADER_ROLES = frozenset({"columnheader", "rowheader"})
_SCOPES = ("row", "col", "rowgroup", "colgroup")
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
class _Row:
    cells: list[etree._Element]
    section: etree._Element | None


def is_mostly_padding(rows: Sequence[Sequence[object]]) -> bool:
    """Return True if padding all rows to the length of the longest one would add far more cells than there are.

    For example, 5,000 rows of one cell below a row of 5,000 cells would become 25 million cells.
    """
    slots = len(rows) * max(map(len, rows), default=0)
    return slots > MAX_PADDED and slots > MAX_PADDING * sum(map(len, rows))


def _parts(element: etree._Element, read: Read) -> tuple[list[_Row], list[etree._Element], Items]:
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


def _place(rows: Sequence[_Row], read: Read) -> list[Placed]:
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
            colspan = min(_span(cell, "colspan") or 1, MAX_PADDED)
            rowspan = min(_span(cell, "rowspan") or len(rows), ends[r] - r)
            if rowspan > 1 or colspan > 1:
                if rowspan * colspan > left:
                    rowspan = colspan = 1
                left -= rowspan * colspan
            free_from += [0] * (column + colspan - len(free_from))
            for c in range(column, column + colspan):
                free_from[c] = max(free_from[c], r + rowspan)
            header = (
                cell.tag == "th" or cell.get("role") in _HEADER_ROLES or (cell.get("scope") or "").lower() in _SCOPES
            )
            placed.append(Placed(read(cell), header, r, column, rowspan, colspan))
            column += colspan
    return placed


def _span(cell: etree._Element, name: str) -> int:
    number = _whole_number(cell.get(name, "1"))
    return int(number[1]) if number else 1


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


MAX_NESTING = 4
"""Maximum nesting of data tables, since each one is written again for each table around it. An outer table with deeper
nesting counts as layout."""

MAX_CHARS, MAX_CHARS_UNMARKED = 3_000, 600
"""Maximum length of a cell in a data table with a header or caption, and in one without. A table with a longer cell is
layout."""

_BREAK = LineBreak()
_digit = re.compile(r"\d").search
_list_mark = re.compile(
    r"[•·●○◦▪■□–—*-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxlc]{1,6})[.)]|\[\d{1,3}\]|\d{1,3}(?:\.\d{1,3})+"
).fullmatch


def table(element: etree._Element, read: Read) -> Items:
    """Return a ``<table>`` as items: one :class:`Table`, or the content of its cells if it is a layout table.

    ``read`` is called once for each cell. Text outside of cells comes first, as in browsers. Rows and columns without
    content are dropped, and spans shrink accordingly; so are rows with nothing but rules, unless the table is a layout.
    ``<tfoot>`` goes to the end. If a table has no caption, a first row with one cell across all columns, above at least
    two rows, becomes the caption.
    """
    rows, captions, strays = _parts(element, read)
    placed = _place(rows, read)
    said = {cell.row for cell in placed if not all(isinstance(item, ThematicBreak) for item in cell.items)}
    grid, sections = _compact([one if one.row in said else replace(one, items=()) for one in placed], rows)
    caption = as_line([item for part in captions for item in read(part)])
    above = (Paragraph(caption),) if caption else ()
    if not caption and _begins_with_caption(grid):
        grid, sections, caption = grid[1:], sections[1:], as_line(grid[0][0].items)
    header_rows = _header_rows(grid, sections)
    if grid and not _is_layout(element, grid, header_rows, caption):
        return (*strays, _table(grid, header_rows, caption))
    return (*strays, *above, *_unwrapped(_compact(placed, rows)[0]))


# ---------------------------------------------------------------------- classification
def _header_rows(grid: Sequence[Sequence[Placed]], sections: Sequence[str]) -> int:
    """Return the number of header rows: those of ``<thead>``, else rows of header cells, else a row of labels."""
    n = 0
    while n < len(grid) and sections[n] == "thead":
        n += 1
    if not n:
        while n < len(grid) and all(cell.header for cell in grid[n] if cell.items):
            n += 1
    if n:
        if len(grid[0]) > 1:  # a header cell of the first row may span rows of ordinary cells
            n = max(n, *(cell.rowspan for cell in grid[0]))
        return n if n < len(grid) else 1
    if len(grid) > 1 and len(grid[0]) > 1 and not any(cell.header for cell in grid[0]):
        return int((_is_bold(grid[0]) and not _is_bold(grid[1])) or _is_above_numbers(grid))
    return 0


def _is_above_numbers(grid: Sequence[Sequence[Placed]]) -> bool:
    """Return True if the first of at least three rows has no numbers and a column below it only has numbers.

    There must be at least three columns, because the first of two columns often holds the names of the values.
    """
    width = len(grid[0])
    if len(grid) < 3 or width < 3 or any(cell.colspan > 1 or cell.rowspan > 1 for row in grid for cell in row):
        return False
    if any(not cell.items or _has_digit(cell.items) or _exceeds(cell.items, 60) for cell in grid[0]):
        return False
    columns: list[list[Placed]] = [[] for _ in grid[0]]
    for row in grid[1:]:
        for cell in row[:width]:
            if cell.items:
                columns[cell.column].append(cell)
    return any(len(column) > 1 and all(_has_digit(cell.items) for cell in column) for column in columns)


def _begins_with_caption(grid: Sequence[Sequence[Placed]]) -> bool:
    if len(grid) < 3 or len(grid[0]) != 1 or grid[0][0].rowspan > 1:
        return False
    first = grid[0][0]
    width = max(cell.column + cell.colspan for row in grid for cell in row)
    return first.colspan == width > 1 and len(first.items) == 1 and isinstance(first.items[0], (Paragraph, Title))


def _is_bold(row: Sequence[Placed]) -> bool:
    return all(
        isinstance(item, Paragraph) and all(isinstance(run, (Strong, LineBreak)) for run in item.runs)
        for cell in row
        for item in cell.items
    )


def _is_layout(element: etree._Element, grid: Sequence[Sequence[Placed]], header_rows: int, caption: Runs) -> bool:
    """Return True if a table is used for layout and does not hold data."""
    role = element.get("role")
    if role in ("presentation", "none"):
        return True
    cells = [cell for row in grid for cell in row if cell.items]
    marked = bool(header_rows or caption or role in ("table", "grid") or any(cell.header for cell in cells))
    if len(cells) < 2 or _nesting(item for cell in cells for item in cell.items) >= MAX_NESTING:
        return True
    columns = {cell.column for cell in cells}
    if len(grid) == 1 or len(columns) == 1:
        # A box with a title bar also has a header.
        return not marked or (len(columns) == 1 and len(cells) < 3)
    limit = MAX_CHARS if marked else MAX_CHARS_UNMARKED
    if any(_exceeds(cell.items, limit) for cell in cells):
        return True
    return not marked and (
        any(
            isinstance(item, (Title, Quote, ThematicBreak, Table, Video, Footnotes))
            for cell in cells
            for item in cell.items
        )
        or all(isinstance(item, Image) for cell in cells for item in cell.items)
        or (len(columns) == 2 and all(_list_mark(_plain(row[0].items)) for row in grid))
    )


def _nesting(items: Iterable[Item]) -> int:
    """Return the maximum nesting of data tables in items."""
    return max((isinstance(item, Table) + _nesting(inside(item)) for item in items), default=0)


def _exceeds(items: Items, limit: int) -> bool:
    return len(plain_text(items)) > limit


def _has_digit(items: Items) -> bool:
    return _digit(plain_text(items)) is not None


def _plain(items: Items) -> str:
    """Return the text of a cell with a single paragraph of plain text, or an empty string for other cells."""
    if len(items) == 1 and isinstance(items[0], Paragraph) and len(items[0].runs) == 1:
        run = items[0].runs[0]
        return run.text.strip() if isinstance(run, Text) else ""
    return ""


# ---------------------------------------------------------------------- output
def _unwrapped(grid: Sequence[Sequence[Placed]]) -> list[Item]:
    """Return the content of a layout table, row by row. A list marker is joined with the paragraph beside it."""
    items: list[Item] = []
    for row in grid:
        cells = [cell.items for cell in row if cell.items]
        first = cells[1][0] if len(cells) == 2 else None
        if isinstance(first, Paragraph) and _list_mark(_plain(cells[0])):
            items.append(Paragraph((Text(_plain(cells[0]) + " "), *first.runs)))
            items += cells[1][1:]
        else:
            items += [item for cell in cells for item in cell]
    return items


def _table(grid: Sequence[Sequence[Placed]], header_rows: int, caption: Runs) -> Table:
    simple = (
        header_rows <= 1
        and not is_mostly_padding(grid)
        and all(
            cell.rowspan == cell.colspan == 1 and all(_fits_a_line(item) for item in cell.items)
            for row in grid
            for cell in row
        )
    )
    rows = []
    width = max(len(row) for row in grid)
    for r, row in enumerate(grid):
        cells = []
        for cell in row:
            items = (Paragraph(as_line(cell.items)),) if simple and cell.items else cell.items
            cells.append(Cell(items, cell.rowspan, cell.colspan, cell.header or r < header_rows))
        if simple:
            cells += [Cell((), header=r < header_rows)] * (width - len(cells))
        rows.append(tuple(cells))
    return Table(tuple(rows), header_rows, caption, simple)


def _fits_a_line(item: Item) -> bool:
    if isinstance(item, CodeBlock):
        return "\n" not in item.text
    return isinstance(item, (Paragraph, Title, Formula, Image))


def as_line(items: Sequence[Item], between: Run = _BREAK) -> Runs:
    """Return items as the runs of one paragraph, with a run between them: a line for each item by default."""
    runs: list[Run] = []
    open_items = list(reversed(items))
    while open_items:
        item = open_items.pop()
        line: Runs = ()
        if isinstance(item, (Paragraph, Title)):
            line = item.runs
        elif isinstance(item, Formula):
            line = (replace(item, display=False),)
        elif isinstance(item, CodeBlock):
            line = (Code(item.text),)
        else:
            open_items += reversed(as_lines(item) if isinstance(item, (Image, Video, Audio)) else inside(item))
        if line:
            runs += (between, *line) if runs else line
    return tuple(runs)


# ---------------------------------------------------------------------- tables that Markdown cannot express
_TAGS: dict[type, str] = {Emphasis: "em", Strong: "strong", Deleted: "del", Sub: "sub", Sup: "sup"}
_marks = re.compile(r"\](?=[(\[:])|```|~~~").sub
_before_blank_line = re.compile(r"[\r\n](?=[ \t]*[\r\n])").sub


def table_html(table: Table, links: bool = True) -> str:
    """Return a table as HTML without blank lines, which would end the HTML in Markdown (CommonMark 4.6).

    Formulas are written in dollar signs, as in Markdown. Dollar signs in text become character references.
    ``links=False`` only keeps the text of links.
    """
    return _HtmlWriter(links).table(table)


def code_html(code: CodeBlock) -> str:
    """Return a code block as HTML without blank lines and without active Markdown syntax."""
    return _HtmlWriter(links=True).item(code)


class _HtmlWriter:
    """Writes items as HTML."""

    def __init__(self, links: bool) -> None:
        self.links = links

    def table(self, table: Table, line_break: str = "\n") -> str:
        lines = ["<table>"]
        if table.caption:
            lines.append(f"<caption>{self.runs(table.caption)}</caption>")
        head, body = table.rows[: table.header_rows], table.rows[table.header_rows :]
        for tag, rows in (("thead", head), ("tbody", body)):
            if rows:
                lines += [f"<{tag}>", *map(self.row, rows), f"</{tag}>"]
        lines.append("</table>")
        return line_break.join(lines)

    def row(self, cells: Sequence[Cell]) -> str:
        return f"<tr>{''.join(map(self.cell, cells))}</tr>"

    def cell(self, cell: Cell) -> str:
        tag = "th" if cell.header else "td"
        colspan = f' colspan="{cell.colspan}"' if cell.colspan > 1 else ""
        rowspan = f' rowspan="{cell.rowspan}"' if cell.rowspan > 1 else ""
        return f"<{tag}{colspan}{rowspan}>{self.content(cell.items)}</{tag}>"

    def content(self, items: Items) -> str:
        """Return the content of a cell or a list entry. A single paragraph gets no tags."""
        media = (Image, Video, Audio)
        items = tuple(chain(*(as_lines(item) if isinstance(item, media) else (item,) for item in items)))
        first = items[0] if items else None
        if isinstance(first, Paragraph) and (len(items) == 1 or (len(items) == 2 and isinstance(items[1], List))):
            return f"{self.runs(first.runs)}{''.join(map(self.item, items[1:]))}"
        return self.run(first) if len(items) == 1 and isinstance(first, Formula) else "".join(map(self.item, items))

    def item(self, item: Item) -> str:
        match item:
            case Paragraph():
                return f"<p>{self.runs(item.runs)}</p>"
            case Title():
                return f"<h{item.level}>{self.runs(item.runs)}</h{item.level}>"
            case CodeBlock():
                language = f' class="language-{_value(item.language)}"' if item.language else ""
                code = _before_blank_line("&#10;", _text(item.text))
                return f"<pre><code{language}>{code}</code></pre>"
            case Formula():
                return f"<p>{self.run(item)}</p>"
            case Table():
                return self.table(item, line_break="")
            case List():
                return self.list(item)
            case Image() | Video() | Audio():
                return "".join(map(self.item, as_lines(item)))
            case Quote():
                title = (Paragraph((Strong(item.caption),)),) if item.caption else ()
                return f"<blockquote>{''.join(map(self.item, (*title, *item.items)))}</blockquote>"
            case ThematicBreak() | Post():
                return "<hr>"
            case Card():
                return ""
            case Footnotes():
                return self.list(List("ordered", tuple(ListItem(note.items) for note in item.notes)))

    def list(self, item: List) -> str:
        entries = []
        for entry in item.items:
            if item.kind == "definition":
                entries += [f"<dt>{self.runs(term)}</dt>" for term in entry.terms if term]
                entries.append(f"<dd>{self.content(entry.items)}</dd>" if entry.items else "")
            else:
                value = "" if entry.number is None else f' value="{entry.number}"'
                box = "" if entry.checked is None else "[x] " if entry.checked else "[ ] "
                entries.append(f"<li{value}>{box}{self.content(entry.items)}</li>")
        tag = {"unordered": "ul", "ordered": "ol", "definition": "dl"}[item.kind]
        start = f' start="{item.start}"' if item.start != 1 else ""
        return f"<{tag}{start}>{''.join(entries)}</{tag}>"

    def runs(self, runs: Runs) -> str:
        return "".join(map(self.run, runs))

    def run(self, run: Run) -> str:
        match run:
            case Text():
                return _text(run.text)
            case Emphasis() | Strong() | Deleted() | Sub() | Sup():
                tag = _TAGS[type(run)]
                return f"<{tag}>{self.runs(run.runs)}</{tag}>"
            case Link():
                title = f' title="{_value(run.title)}"' if run.title else ""
                content = self.runs(run.runs)
                return f'<a href="{_value(run.href)}"{title}>{content}</a>' if self.links else content
            case Code():
                return f"<code>{_text(run.text)}</code>"
            case Formula():
                marks = "$$" if run.display else "$"
                return f"{marks}{_before_blank_line('&#10;', _inert(escape(run.latex, quote=False)))}{marks}"
            case Image():
                title = f' title="{_value(run.title)}"' if run.title else ""
                return f'<img src="{_value(run.src)}" alt="{_value(run.alt)}"{title}>'
            case LineBreak():
                return "<br>"
            case Ruby():
                return f"<ruby>{self.runs(run.runs)}<rt>{_text(run.reading)}</rt></ruby>"
            case FootnoteMark():
                return f"[^{_text(run.label)}]"


def _text(text: str) -> str:
    return _inert(escape(text, quote=False)).replace("$", "&#36;").replace("{", "&#123;")


def _value(value: str) -> str:
    """Escape the value of an attribute."""
    return _inert(escape(value)).replace("[", "&#91;").replace("\r", "&#13;").replace("\n", "&#10;")


def _inert(html: str) -> str:
    """Escape Markdown syntax and fences, since some renderers interpret Markdown inside HTML."""
    return _marks(lambda mark: "".join(f"&#{ord(char)};" for char in mark[0]), html)


def linear(table: Table) -> Table:
    """Return a table as a simple one. Only the first of several header rows stays a header row."""
    grid: dict[tuple[int, int], Cell] = {}
    left = MAX_PADDING * len(repr(table.rows))
    for r, row in enumerate(table.rows):
        column = 0
        for cell in row:
            while (r, column) in grid:
                column += 1
            line = Cell((Paragraph(as_line(cell.items, Text(" "))),) if cell.items else (), header=cell.header)
            repeated = cell.rowspan * cell.colspan
            left -= repeated * len(repr(line)) if repeated > 1 else 0
            rowspan, colspan = (cell.rowspan, cell.colspan) if left >= 0 else (1, 1)
            grid |= {(r + i, column + j): line for i in range(rowspan) for j in range(colspan)}
            column += colspan
    rows: list[list[Cell]] = [[] for _ in table.rows]
    for r, column in sorted(grid):
        if r < len(rows):
            rows[r].append(grid[r, column])
    return replace(table, rows=tuple(map(tuple, rows)), header_rows=min(table.header_rows, 1), simple=True)
