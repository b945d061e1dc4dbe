"""Write plain text: from the content list, from the blocks, or from an element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress, islice
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from lxml import etree

from scrapy_dripper.output.items import (
    Audio,
    Code,
    CodeBlock,
    Deleted,
    Emphasis,
    FootnoteMark,
    Footnotes,
    Formula,
    Image,
    Item,
    LineBreak,
    Link,
    List,
    Paragraph,
    Post,
    Quote,
    Ruby,
    Rule,
    Run,
    Strong,
    Sub,
    Sup,
    Table,
    Text,
    Title,
    Video,
)
from scrapy_dripper.page.page import Page


def text(page: Page, main: npt.NDArray[np.bool_]) -> str:
    """Return the text of the main blocks, each on one or more lines. Outside preformatted text, white space
    collapses."""
    return "\n".join(compress(page.blocks.text, main.tolist()))


def plain_text(items: Sequence[Item]) -> str:
    """Return the text of items, each on one or more lines.

    Formulas are written as LaTeX and table rows as lines. Alternative texts of images are left out.
    """
    lines: list[str] = []
    for item in items:
        _ITEMS[type(item)](item, lines)
    return "\n".join(lines)


def line_text(runs: Sequence[Run]) -> str:
    """Return the text of runs."""
    if len(runs) == 1:
        return _RUNS[type(runs[0])](runs[0])
    return "".join([_RUNS[type(run)](run) for run in runs])


def _line(item: Any, lines: list[str]) -> None:
    written = line_text(item.runs)
    if written:
        lines.append(written)


def _caption(item: Any, lines: list[str]) -> None:
    if item.caption:
        lines.append(line_text(item.caption))


def _table(table: Table, lines: list[str]) -> None:
    _caption(table, lines)
    for row in table.rows:
        cells = [plain_text(cell.items) for cell in row if cell.items]
        if cells:
            lines.append(" ".join(cells))


def _list(item: List, lines: list[str]) -> None:
    for entry in item.items:
        lines.extend(line_text(term) for term in entry.terms if term)
        for one in entry.items:
            _ITEMS[type(one)](one, lines)


def _held(item: Any, lines: list[str]) -> None:
    for one in item.items:
        _ITEMS[type(one)](one, lines)


def _quote(item: Quote, lines: list[str]) -> None:
    _caption(item, lines)
    _held(item, lines)


def _notes(item: Footnotes, lines: list[str]) -> None:
    for note in item.notes:
        _held(note, lines)


_ITEMS: dict[type, Callable[[Any, list[str]], None]] = {
    Paragraph: _line,
    Title: _line,
    CodeBlock: lambda item, lines: lines.append(item.text),
    Formula: lambda item, lines: lines.append(item.latex),
    Table: _table,
    List: _list,
    Image: _caption,
    Video: _caption,
    Audio: _caption,
    Quote: _quote,
    Rule: lambda _item, _lines: None,
    Post: lambda _item, lines: lines.append("") if lines else None,
    Footnotes: _notes,
}
_RUNS: dict[type, Callable[[Any], str]] = {
    Text: lambda run: run.text,
    Code: lambda run: run.text,
    Formula: lambda run: run.latex,
    **dict.fromkeys((Link, Emphasis, Strong, Deleted, Sub, Sup), lambda run: line_text(run.runs)),
    Ruby: lambda run: f"{line_text(run.runs)}({run.reading})",
    LineBreak: lambda _: "\n",
    FootnoteMark: lambda run: f"[{run.label}]",
    Image: lambda _: "",
}

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
