"""Simplify complex tables: repeat spanning cells in each slot, and write the content of each cell as one line."""

from __future__ import annotations

from dataclasses import replace

from scrapy_dripper.output.content_json import length
from scrapy_dripper.output.items import (
    Audio,
    Cell,
    Formula,
    Image,
    Items,
    Link,
    Paragraph,
    Run,
    Runs,
    Table,
    Text,
    Title,
    Video,
)
from scrapy_dripper.output.text import plain_text

FREE, FACTOR = 10_000, 4
"""The characters of repeated cells in a table: so many, and so many times those of the table. Further cells are not
repeated."""


def linear(table: Table) -> Table:
    """Return a table as a simple one. Only the first of several header rows stays a header row."""
    above: dict[int, tuple[Cell, int]] = {}  # column to the cell spanning from above, and its remaining rows
    rows: list[tuple[Cell, ...]] = []
    left = FREE + FACTOR * length(table.rows)
    for row in table.rows:
        cells: list[Cell] = []
        for cell in (*row, None):
            while len(cells) in above:
                spanning, more = above.pop(len(cells))
                if more > 1:
                    above[len(cells)] = spanning, more - 1
                cells.append(spanning)
            if cell is None:
                break
            line = Cell((Paragraph(_line(cell.items)),) if cell.items else (), header=cell.header)
            repeated = cell.rowspan * cell.colspan
            if repeated > 1:
                left -= repeated * length(line.items)
            columns, more = (cell.colspan, cell.rowspan - 1) if left >= 0 else (1, 0)
            for _ in range(columns):
                if more:
                    above[len(cells)] = line, more
                cells.append(line)
        rows.append(tuple(cells))
    return replace(table, rows=tuple(rows), header_rows=min(table.header_rows, 1), simple=True)


def _line(items: Items) -> Runs:
    """Write items as one line."""
    runs: list[Run] = []
    for item in items:
        part: Runs
        if isinstance(item, (Paragraph, Title)):
            part = item.runs
        elif isinstance(item, Formula):
            part = (replace(item, display=False),)
        elif isinstance(item, Image):
            part = (replace(item, caption=()), *((Text(" "), *item.caption) if item.caption else ()))
        elif isinstance(item, (Video, Audio)):
            part = (Link(item.src, item.caption or (Text(item.title or item.src),)),)
        else:
            text = " ".join(plain_text((item,)).split())
            part = (Text(text),) if text else ()
        if part:
            runs += (Text(" "), *part) if runs else part
    return tuple(runs)
