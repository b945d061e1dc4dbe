"""Choose LaTeX environments for MathML tables."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from scrapy_dripper.output.math.mathml_tree import children, has_lines

if TYPE_CHECKING:
    from lxml.etree import _Element

_MATRICES = {
    "()": "pmatrix", "[]": "bmatrix", "{}": "Bmatrix", "||": "vmatrix", "∣∣": "vmatrix", "‖‖": "Vmatrix",
    "∥∥": "Vmatrix", "{": "cases",
}  # fmt: skip


def matrix_of(opening: str, closing: str) -> str | None:
    """Return the name of the environment for a table between two delimiters, or None."""
    return _MATRICES.get(opening + closing)


def environment(table: _Element, columns: int, labelled: bool) -> tuple[str, str]:
    """Return the name of the environment for a table without delimiters, and its argument in braces."""
    aligned = _alignment(table, columns)
    if labelled:
        return "align", ""
    if aligned[:2] == ["right", "left"]:
        return "aligned", ""
    if has_lines(table) or "left" in aligned or "right" in aligned:
        return "array", f"{{{_columns(table, aligned)}}}"
    return ("gathered" if columns < 2 else "matrix"), ""


def _alignment(table: _Element, columns: int) -> list[str]:
    """Return the alignment of each column, from the table or the cells of its first row; empty if unknown."""
    aligned = (table.get("columnalign") or "").split()
    rows = children(table)
    if not aligned and rows:
        aligned = [cell.get("columnalign") or _by_class(cell.get("class") or "") for cell in children(rows[0])]
    return [*aligned, *aligned[-1:] * (columns - len(aligned))][:columns]


def _by_class(name: str) -> str:
    """Return the alignment from a class of Temml."""
    return "right" if "tml-right" in name else "left" if "tml-left" in name else ""


def _columns(table: _Element, aligned: list[str]) -> str:
    """Return the argument of an array, such as ``rc|l``."""
    lines = (table.get("columnlines") or "").split()
    lines += lines[-1:] * (len(aligned) - 1 - len(lines))
    bars = ["|" if line in ("solid", "dashed") else "" for line in lines[: max(0, len(aligned) - 1)]]
    letters = [align[:1] if align in ("left", "right") else "c" for align in aligned]
    return "".join(letter + bar for letter, bar in zip_longest(letters, bars, fillvalue=""))
