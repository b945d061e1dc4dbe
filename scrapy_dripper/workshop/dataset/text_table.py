"""Format tables as aligned text or as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

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
