"""Put footnotes together, which are recognised in :mod:`scrapy_dripper.page.footnotes`."""

from __future__ import annotations

from collections.abc import Sequence

from scrapy_dripper.output.items import (
    Emphasis,
    Footnote,
    FootnoteMark,
    Footnotes,
    Item,
    Items,
    LineBreak,
    Link,
    Paragraph,
    Rule,
    Strong,
    Sup,
    Text,
    Title,
)
from scrapy_dripper.output.text import line_text

_MARKS = " \xa0[]()^.:"
_LABELS = frozenset({Text, Sup, Strong, Emphasis, Link, LineBreak, FootnoteMark})


def without_label(items: Items, label: str) -> Items:
    """Return the items of a footnote without the number at their beginning."""
    for i, item in enumerate(items):
        if type(item) is not Paragraph:
            return items[i:]
        runs = item.runs
        n = 0
        while n < len(runs) and type(runs[n]) in _LABELS and line_text(runs[n : n + 1]).strip(_MARKS) in ("", label):
            n += 1
        first = runs[n] if n < len(runs) else None
        if type(first) is Text:
            rest = first.text.lstrip(_MARKS) if n else _without_number(first.text, label)
            runs = (Text(rest), *runs[n + 1 :]) if rest else runs[n + 1 :]
        else:
            runs = runs[n:]
        if runs:
            return (Paragraph(runs), *items[i + 1 :])
    return ()


def _without_number(text: str, label: str) -> str:
    """Return a text without a number written by hand, or without the full stop after a number that was a link."""
    rest = text.lstrip("[(").removeprefix(label)
    cut = rest.lstrip("])^.:")
    return cut.lstrip() if cut != rest and cut[:1].isspace() else text


def gathered(items: Sequence[Item]) -> Items:
    """Move the items after the heading of a footnote into it, up to a rule, a title or the next footnote.

    Such a heading was read as an empty footnote.
    """
    if not any(type(item) is Footnotes and not item.notes[0].items for item in items):
        return tuple(items)
    made: list[Item] = []
    note: Footnote | None = None
    inside: list[Item] = []
    for item in (*items, None):
        begins = type(item) is Footnotes and len(item.notes) == 1 and not item.notes[0].items
        if note is not None and (item is None or begins or type(item) in (Rule, Title, Footnotes)):
            if inside:
                made.append(Footnotes((Footnote(note.label, tuple(inside)),)))
            note, inside = None, []
        if begins:
            assert type(item) is Footnotes
            note = item.notes[0]
        elif note is not None and item is not None:
            inside.append(item)
        elif item is not None:
            made.append(item)
    return tuple(made)
