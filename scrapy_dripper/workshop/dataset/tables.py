"""Tables of figures: as aligned text, as Markdown, or as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scrapy_dripper.characters import on_one_line


def aligned(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a table with the first column left-aligned and the others right-aligned, without control characters."""
    lines = [list(map(on_one_line, line)) for line in (head, *body)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines
    )


def markdown_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with the first column left-aligned and the others right-aligned."""
    rule = "|".join(["---"] + ["---:"] * (len(head) - 1))
    first, *rest = (f"| {' | '.join(line)} |" for line in [head, *body])
    return "\n".join([first, f"|{rule}|", *rest])


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of values. Each column has a name and a format, such as ``.4f``. None and NaN become empty cells."""

    title: str
    columns: Mapping[str, str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    """What a reader has to know about the figures."""

    def cells(self) -> list[list[str]]:
        """Return the rows as text."""
        return [
            ["" if _unknown(value) else format(value, form) for value, form in zip(row, forms, strict=True)]
            for forms in [list(self.columns.values())]
            for row in self.rows
        ]

    def text(self) -> str:
        """Return the title, the table as aligned text, and the note."""
        return "\n".join(filter(None, [self.title, aligned(list(self.columns), self.cells()), self.note]))

    def markdown(self) -> str:
        """Return the table in Markdown."""
        return markdown_table(list(self.columns), self.cells())

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as JSON values, by the name of the column."""
        return [
            {name: None if _unknown(value) else value for name, value in zip(self.columns, row, strict=True)}
            for row in self.rows
        ]


def _unknown(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))
