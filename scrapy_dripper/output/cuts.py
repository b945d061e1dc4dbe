"""Cut items that are too long for a chunk.

Paragraphs are cut between sentences, code between lines, tables between rows, and lists between their entries. Each
part is a complete item: code has its own fence, a table repeats its header, and a list continues its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import Any, TypeAlias, TypeVar

from scrapy_dripper.output.items import (
    Audio,
    Code,
    CodeBlock,
    Deleted,
    Emphasis,
    Footnote,
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
    Quote,
    Rule,
    Run,
    Runs,
    Strong,
    Table,
    Text,
    Title,
    Video,
    assert_never,
)
from scrapy_dripper.output.reader import trimmed

T = TypeVar("T")
Fits: TypeAlias = "Callable[[Items, int], bool]"
"""Returns whether items fit into a fraction of the available space: ``fits(items, 2)`` means one half."""

_WRAPPERS = (Link, Emphasis, Strong, Deleted)
# Zero-width matches after the end of a sentence. The space before the next sentence belongs to that sentence.
_sentences = re.compile(
    r"(?<=[.!?…])(?=\s)|(?<=[.!?…][\"'”’)\]])(?=\s)|(?<=[。！？｡])(?![。！？｡」』”’）])|(?<=[。！？｡][」』”’）])"
).split
_words = re.compile(r"(?<=\S)(?=\s)").split
# For scripts without spaces, such as Thai. Combining characters stay with their base character.
_characters = re.compile(r"(?s).{1,8}[\u0300-\u036f\u093a-\u094f\u0e31-\u0e4e\u200d\ufe0f]*").findall
_LEVELS: tuple[Callable[[str], list[str]], ...] = (_sentences, _words, _characters)


def cut(item: Item, fits: Fits) -> list[Items]:
    """Cut an item into parts that are as long as fits, and return them in order, each as items.

    An item that cannot be cut is returned as its only part: a formula, a line of code, a row of a table. The header of
    a table is repeated in every part, unless it takes more than half of the space. Everything else occurs in one part
    only.
    """
    if fits((item,), 1):
        return [(item,)]
    match item:
        case Paragraph():
            return [(Paragraph(runs),) for runs in _cut_runs(item.runs, fits, 0)]
        case CodeBlock():
            lines = item.text.split("\n")
            return [(part,) for part in _packed(lines, lambda some, _: replace(item, text="\n".join(some)), fits)]
        case Table():
            return _cut_table(item, fits)
        case List():
            return _cut_list(item, fits)
        case Quote():
            return _cut_quote(item, fits)
        case Footnotes():
            return _cut_footnotes(item, fits)
        case Title() | Formula() | Image() | Video() | Audio() | Rule():
            return [(item,)]
        case _:
            return assert_never(item)


def last_sentences(paragraph: Paragraph, fits: Fits) -> Items:
    """Return as many whole sentences from the end of a paragraph as fit, or nothing if not even one does."""
    pieces = _units(paragraph.runs, 0)
    none, some = len(pieces), 0  # binary search for the first sentence that fits
    while some < none:
        middle = (some + none) // 2
        if fits((Paragraph(_joined(pieces[middle:])),), 1):
            none = middle
        else:
            some = middle + 1
    runs = _joined(pieces[none:])
    return (Paragraph(runs),) if runs else ()


def _groups(units: Sequence[T], fit: Callable[[Sequence[T]], bool]) -> list[Sequence[T]]:
    """Group units, with as many in each group as fit. Units that do not fit are in a group of their own.

    ``fit`` is called with at most twice as many units as the group gets, so n units take n log n steps in total.
    """
    groups: list[Sequence[T]] = []
    start = 0
    while start < len(units):
        step = 1
        while start + step < len(units) and fit(units[start : start + 2 * step]):
            step *= 2
        most = min(start + 2 * step, len(units))
        end = start + step
        while most - end > 1:
            middle = (end + most) // 2
            if fit(units[start:middle]):
                end = middle
            else:
                most = middle
        groups.append(units[start:end])
        start = end
    return groups


def _packed(units: Sequence[T], make: Callable[[Sequence[T], bool], Item], fits: Fits) -> list[Item]:
    """Return the items made from groups of units. The second argument of ``make`` is True for the first group."""
    groups = _groups(units, lambda some: fits((make(some, True),), 1))
    return [make(group, not number) for number, group in enumerate(groups)]


# ---------------------------------------------------------------------- lines of text
def _cut_runs(runs: Runs, fits: Fits, level: int) -> Iterator[Runs]:
    def fit(units: Sequence[list[Run]]) -> bool:
        return fits((Paragraph(_joined(units)),), 1)

    for group in _groups(_units(runs, level), fit):
        joined = _joined(group)
        if len(group) == 1 and level + 1 < len(_LEVELS) and not fit(group):
            yield from _cut_runs(joined, fits, level + 1)
        elif joined:
            yield joined


def _units(runs: Runs, level: int) -> list[list[Run]]:
    """Split runs into sentences, words or characters. Each part keeps its formats and links."""
    units: list[list[Run]] = []
    anywhere = level + 1 == len(_LEVELS)
    for run, begins in _fragments(runs, _LEVELS[level]):
        if begins or anywhere or not units:
            units.append([run])
        else:
            units[-1].append(run)
    return units


def _fragments(runs: Runs, split: Callable[[str], list[str]]) -> Iterator[tuple[Run, bool]]:
    """Yield the parts of runs, and whether the text was split before each part."""
    for run in runs:
        if type(run) is Text:
            yield from ((Text(text), number > 0) for number, text in enumerate(split(run.text)))
        elif type(run) is Code and split is _words:  # inline code may be a log with thousands of characters
            yield from ((Code(text), number > 0) for number, text in enumerate(split(run.text)))
        elif isinstance(run, _WRAPPERS):
            yield from ((replace(run, runs=(inner,)), begins) for inner, begins in _fragments(run.runs, split))
        else:
            yield run, type(run) is LineBreak


def _joined(units: Sequence[Sequence[Run]]) -> Runs:
    """Merge fragments to runs, without white space at both ends."""
    return _trimmed(_merged(list(chain.from_iterable(units))))


def _merged(pieces: Sequence[Run]) -> Runs:
    runs: list[Run] = []
    for _, group in groupby(pieces, _format):
        first, *others = group
        if isinstance(first, (Text, Code)):
            runs.append(replace(first, text="".join([first.text, *(one.text for one in others)])))  # type: ignore[union-attr]
        elif isinstance(first, _WRAPPERS):
            inner = chain(first.runs, *(one.runs for one in others))  # type: ignore[union-attr]
            runs.append(replace(first, runs=_merged(tuple(inner))))
        else:
            runs += [first, *others]
    return tuple(runs)


def _format(run: Run) -> Any:
    """Return a key that is equal for all runs of the same format."""
    return replace(run, runs=()) if isinstance(run, _WRAPPERS) else type(run)


def _trimmed(runs: Runs) -> Runs:
    runs = trimmed(runs)
    for end in (0, -1):
        outer = runs[end] if runs else None
        if isinstance(outer, _WRAPPERS):
            inner = replace(outer, runs=_trimmed(outer.runs))
            runs = (inner, *runs[1:]) if end == 0 else (*runs[:-1], inner)
    return runs


# ---------------------------------------------------------------------- containers
def _cut_items(items: Items, wrap: Callable[[Items], Item], fits: Fits) -> Iterator[Items]:
    """Yield groups of items that fit once they are wrapped. Cut items that do not fit."""

    def inside(some: Items, share: int) -> bool:
        return fits((wrap(some),), share)

    for group in _groups(items, lambda some: inside(tuple(some), 1)):
        if len(group) == 1:
            yield from cut(group[0], inside)
        else:
            yield tuple(group)


def _cut_quote(quote: Quote, fits: Fits) -> list[Items]:
    parts = _cut_items(quote.items, lambda some: replace(quote, items=some), fits)
    return [(replace(quote, items=part, caption=() if number else quote.caption),) for number, part in enumerate(parts)]


def _cut_list(item: List, fits: Fits) -> list[Items]:
    numbers: list[int] = []
    for entry in item.items:
        numbers.append(entry.number if entry.number is not None else numbers[-1] + 1 if numbers else item.start)
    units: list[list[tuple[ListItem, int]]] = []  # entries, or terms with all their definitions
    for entry, number in zip(item.items, numbers, strict=True):
        if units and item.kind == "definition" and not entry.terms:
            units[-1].append((entry, number))
        else:
            units.append([(entry, number)])

    def make(some: Sequence[Sequence[tuple[ListItem, int]]]) -> List:
        (first, start), *others = chain.from_iterable(some)
        entries = (replace(first, number=None), *(entry for entry, _ in others))
        return replace(item, items=entries, start=start if item.kind == "ordered" else item.start)

    parts: list[Items] = []
    for group in _groups(units, lambda some: fits((make(some),), 1)):
        made = make(group)
        if len(group) > 1 or fits((made,), 1):
            parts.append((made,))
        elif len(group[0]) > 1:
            for one in group[0]:
                parts += _cut_entry(make([[one]]), fits)
        else:
            parts += _cut_entry(made, fits)
    return parts


def _cut_entry(item: List, fits: Fits) -> list[Items]:
    """Cut a list with a single entry. The first part keeps the list marker; the others are the entry's content."""
    entry = item.items[0]
    parts = list(_cut_items(entry.items, lambda some: replace(item, items=(replace(entry, items=some),)), fits))
    first = replace(item, items=(replace(entry, items=parts[0] if parts else ()),))
    return [(first,), *parts[1:]]


def _cut_footnotes(footnotes: Footnotes, fits: Fits) -> list[Items]:
    parts: list[Items] = []
    for group in _groups(footnotes.notes, lambda some: fits((Footnotes(tuple(some)),), 1)):
        note = group[0]
        if len(group) > 1 or not note.items:
            parts.append((Footnotes(tuple(group)),))
            continue
        label = note.label
        first, *others = _cut_items(note.items, lambda some, label=label: Footnotes((Footnote(label, some),)), fits)  # type: ignore[misc]
        parts += [(Footnotes((Footnote(label, first),)),), *others]
    return parts


def _cut_table(table: Table, fits: Fits) -> list[Items]:
    head, body = table.rows[: table.header_rows], table.rows[table.header_rows :]
    # A header that takes most of the space is not repeated; its rows are treated like the others.
    repeated = bool(head) and fits((_with_rows(table, head, len(head), False),), 2)
    rows = body if repeated else table.rows
    units: list[list[tuple[Any, ...]]] = []
    spanned = 0  # number of rows that a cell above spans
    for row in rows:
        if spanned > 0:
            units[-1].append(row)
        else:
            units.append([row])
        spanned = max(spanned - 1, max((cell.rowspan for cell in row), default=1) - 1)

    def make(some: Sequence[list[tuple[Any, ...]]], first: bool) -> Table:
        inside = tuple(chain.from_iterable(some))
        if repeated:
            return _with_rows(table, (*head, *inside), len(head), first)
        return _with_rows(table, inside, table.header_rows if first and len(inside) > len(head) else 0, first)

    return [(part,) for part in _packed(units, make, fits)] if units else [(table,)]


def _with_rows(table: Table, rows: tuple[Any, ...], header_rows: int, first: bool) -> Table:
    return replace(table, rows=rows, header_rows=header_rows, caption=table.caption if first else ())
