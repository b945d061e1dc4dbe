"""Write plain text: from the content list, from the blocks, or from an element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress, islice
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from lxml import etree

from scrapy_dripper.output.items import (
    Code,
    CodeBlock,
    Deleted,
    Emphasis,
    FootnoteMark,
    Formula,
    Image,
    Item,
    LineBreak,
    Link,
    Paragraph,
    Post,
    Ruby,
    Run,
    Strong,
    Sub,
    Sup,
    Table,
    Text,
    Title,
    inside,
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
        _add(item, lines)
    return "\n".join(lines)


def line_text(runs: Sequence[Run]) -> str:
    """Return the text of runs."""
    if len(runs) == 1:
        return _RUNS[type(runs[0])](runs[0])
    return "".join([_RUNS[type(run)](run) for run in runs])


def _add(item: Item, lines: list[str]) -> None:
    if isinstance(item, CodeBlock):
        lines.append(item.text)
    elif isinstance(item, Formula):
        lines.append(item.latex)
    elif isinstance(item, Table):
        lines += [line_text(item.caption)] if item.caption else []
        rows = ([plain_text(cell.items) for cell in row if cell.items] for row in item.rows)
        lines += [" ".join(cells) for cells in rows if cells]
    elif isinstance(item, Post):
        lines += [""] if lines else []
    elif isinstance(item, (Paragraph, Title)):
        text = line_text(item.runs)
        lines += [text] if text else []
    else:
        for inner in inside(item):
            _add(inner, lines)


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
