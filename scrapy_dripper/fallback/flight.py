"""Read the state of Next.js's app router: React's "Flight" stream of rows, which scripts push in pieces.

A row is ``ID:JSON`` and a line feed. A capital letter before the JSON marks rows that are not plain data. A long text
has its own row, ``ID:TLENGTH,TEXT``, with its length in bytes. Other rows refer to it as ``"$ID"``. Source: React's
``ReactFlightClient``, Next.js's ``app-render``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from scrapy_dripper.fallback.budget import Budget

MOST_ROWS = 20_000

_push = re.compile(r"\s{0,99}(?:self|window)\.__next_f\.push\(").match
_row = re.compile(rb"([0-9a-f]{1,8}):(?:T([0-9a-f]{1,8}),)?").match


def flight(scripts: Iterable[str], budget: Budget) -> list[Any]:
    """Return the plain values of the rows that scripts push, with references replaced by their texts.

    Scripts that push nothing, and rows that are not JSON, are skipped. Takes linear time. A text is not copied for its
    references, so who reads the values has to count them.
    """
    data = "".join(map(_pushed, scripts)).encode("utf-8", "replace")
    values: list[Any] = []
    texts: dict[str, str] = {}
    at = 0
    for _ in range(MOST_ROWS):
        row = _row(data, at)
        if row is None:
            break
        if row[2] is not None:
            at = row.end() + int(row[2], 16)
            texts[f"${row[1].decode()}"] = data[row.end() : at].decode("utf-8", "replace")
            continue
        end = data.find(b"\n", row.end())
        end = len(data) if end < 0 else end
        if data[row.end() : row.end() + 1] in (b"[", b"{"):
            values += _loaded(data[row.end() : end])
        at = end + 1
    if texts:
        _refer(values, texts, budget)
    return values


def _pushed(script: str) -> str:
    """Return the piece of the stream that a script pushes."""
    found = _push(script)
    if found is None:
        return ""
    try:
        value = json.JSONDecoder(strict=False).raw_decode(script, found.end())[0]
    except (ValueError, RecursionError):
        return ""
    kind, piece = (*value, None, None)[:2] if isinstance(value, list) else (None, None)
    return piece if kind == 1 and isinstance(piece, str) else ""


def _loaded(row: bytes) -> list[Any]:
    try:
        return [json.loads(row)]
    except (ValueError, RecursionError):
        return []


def _refer(values: list[Any], texts: dict[str, str], budget: Budget) -> None:
    """Replace references by their texts, in place."""
    todo: list[Any] = [values]
    left = budget.values  # for a pass of its own, before the values are read
    while todo and left > 0:
        value = todo.pop()
        left -= len(value)
        for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
            if isinstance(inner, str):
                if inner in texts:
                    value[key] = texts[inner]
            elif isinstance(inner, (list, dict)):
                todo.append(inner)
