"""Handlers for the tags of lists in the walk of a :class:`~scrapy_dripper.output.reader.Reader`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from lxml import etree

from scrapy_dripper.output.block_tags import block, figure, footnotes
from scrapy_dripper.output.footnotes import without_label
from scrapy_dripper.output.items import List, ListItem, Paragraph, Rule, Text
from scrapy_dripper.output.reader import Enter, Leave, OpenList, Reader, skip
from scrapy_dripper.page.recognise import is_figure

MOST_JOINED = 500
"""Maximum number of entries of a list that gets another level, because its entries are copied each time."""

_digits = re.compile(r"\s*(\d{1,9})\s*").fullmatch
_of_docs = re.compile(r"(?:^|\s)lst-kix_(\w{1,64})-(\d)(?=\s|$)").search
"""Matches the class of a list in a published Google Docs document, with its name and level."""


def _list(reader: Reader, element: etree._Element) -> Leave:
    if element.get("class") and is_figure(element):
        return figure(reader, element)
    reader.split_title()
    if not reader.fits or element in reader.tabs.lists:
        return block(reader, element)
    reader.flush()
    opened = _opened(element)
    reader.push(reader.frame._replace(items=[], open_list=opened, nesting=reader.frame.nesting + 1))

    def leave() -> None:
        _end_entry(reader, opened)
        reader.pop()
        _add_list(reader, opened, _level_after(element))

    return leave


def _level_after(element: etree._Element) -> int | None:
    """Return the level at which a list of Google Docs continues the list before it; None for other lists.

    Google Docs writes a nested list as lists side by side that share a name.
    """
    before = element.getprevious()
    own, other = (_of_docs((e.get("class") or "")[:512]) if e is not None else None for e in (element, before))
    return int(own[2]) if own and other and own[1] == other[1] else None


def _opened(element: etree._Element) -> OpenList:
    """Return the list that an element begins, without entries."""
    if element.tag == "dl":
        return OpenList("definition")
    if element.tag != "ol":
        return OpenList("unordered")
    written = _digits(element.get("start") or "")
    start, step = int(written[1]) if written else 1, 1
    if element.get("reversed") is not None:
        step = -1
        start = start if written else sum(child.tag == "li" for child in element)
    kind = (element.get("type") or "").strip()
    letters = kind if kind in ("a", "A", "i", "I") else None
    numbered = step < 0 or letters or any(child.get("value") for child in element if child.tag == "li")
    return OpenList("ordered", start, step, start if numbered else None, letters)


def _add_list(reader: Reader, ended: OpenList, level: int | None = None) -> None:
    """Add a list, or the footnotes that it consists of. With a level, it continues the list before it."""
    entries = ended.entries
    if any(ended.terms):
        entries.append(ListItem((), tuple(filter(None, ended.terms))))
    if ended.labels:
        while reader.items and type(reader.items[-1]) is Rule:
            reader.items.pop()  # the rule between the text and its footnotes
        free = reader.footnotes.free_label
        named = [(ended.labels.get(i) or free(str(i + 1)), entry.items) for i, entry in enumerate(entries)]
        reader.items.extend(footnotes([(label, without_label(items, label)) for label, items in named]))
    elif entries:
        if ended.kind == "unordered":
            entries = [one for entry in entries for one in _without_empty_level(entry)]
        numbers = ended.numbers
        if ended.numeral is not None:
            marks = (numeral(number, ended.numeral) for _, number in sorted(numbers.items()))
            lettered = tuple(_marked(entry, f"{mark}. ") for entry, mark in zip(entries, marks, strict=True))
            made = List("unordered", lettered)
        else:
            made = List(ended.kind, _numbered(entries, numbers), numbers.get(0, ended.start))
        before = reader.items[-1] if reader.items and level is not None else None
        if level is not None and type(before) is List and 0 < len(before.items) < MOST_JOINED:
            made = _joined(before, made, level)
            reader.items.pop()
        reader.items.append(made)


def _joined(around: List, inner: List, level: int) -> List:
    """Return a list with another one at a level of its last entry, or with its entries after its own at level 0."""
    *entries, last = around.items
    if not level or not last.items:
        return replace(around, items=(*around.items, *inner.items))
    *items, below = last.items
    if type(below) is List and below.items:
        items.append(_joined(below, inner, level - 1))
    else:
        items += below, inner
    return replace(around, items=(*entries, replace(last, items=tuple(items))))


def _numbered(entries: list[ListItem], numbers: dict[int, int]) -> tuple[ListItem, ...]:
    """Return the entries of a list, with explicit numbers only where they break the sequence."""
    made: list[ListItem] = []
    before = None
    for i, entry in enumerate(entries):
        number = numbers.get(i, None if before is None else before + 1)
        made.append(entry if before is None or number == before + 1 else replace(entry, number=number))
        before = number
    return tuple(made)


def _marked(entry: ListItem, mark: str) -> ListItem:
    """Return an entry whose text begins with its mark, because lists in Markdown only have numbers."""
    first, *rest = entry.items
    if type(first) is Paragraph:
        return replace(entry, items=(Paragraph((Text(mark), *first.runs)), *rest))
    return replace(entry, items=(Paragraph((Text(mark.rstrip()),)), first, *rest))


def _without_empty_level(entry: ListItem) -> tuple[ListItem, ...]:
    """Replace an entry that only holds a list by the entries of that list. It may have lost a comment, for example."""
    if len(entry.items) == 1:
        only = entry.items[0]
        if type(only) is List and only.kind == "unordered":
            return only.items
    return (entry,)


def _end_entry(reader: Reader, around: OpenList, label: str | None = None, number: int | None = None) -> None:
    """End a list entry, or the content between two entries."""
    reader.flush()
    if reader.items:
        if label is not None:
            around.labels[len(around.entries)] = label
        if number is not None:
            around.numbers[len(around.entries)] = number
        terms = tuple(filter(None, around.terms)) or tuple(around.terms[:1])
        around.entries.append(ListItem(tuple(reader.items), terms, around.checked))
        reader.items.clear()
        around.terms.clear()
    around.checked = None


def _item(reader: Reader, element: etree._Element) -> Leave:
    around = reader.frame.open_list
    if reader.frame.flat or around is None or around.kind == "definition":
        return block(reader, element)
    reader.flush()
    if reader.items and around.entries and all(type(item) is List for item in reader.items):
        last = around.entries[-1]  # a list between two entries belongs to the first one
        around.entries[-1] = replace(last, items=(*last.items, *reader.items))
        reader.items.clear()
    _end_entry(reader, around)
    number = around.number
    if number is not None:
        value = _digits(element.get("value") or "")
        number = int(value[1]) if value else number
        around.number = number + around.step
    label = reader.footnotes.notes.get(element) if reader.footnotes.notes else None
    return _entry(reader, around, label, number)


def _term(reader: Reader, element: etree._Element) -> Leave:
    around = reader.frame.open_list
    if reader.frame.flat or around is None or around.kind != "definition":
        return block(reader, element)
    _end_entry(reader, around)
    around.terms.append(reader.read_line(element))  # empty if the term is not main content
    return skip


def _definition(reader: Reader, element: etree._Element) -> Leave:
    if reader.skip_caption(element):
        return skip
    around = reader.frame.open_list
    if reader.frame.flat or around is None or around.kind != "definition":
        return block(reader, element)
    _end_entry(reader, around)
    return _entry(reader, around, reader.footnotes.notes.get(element))


def _entry(reader: Reader, around: OpenList, label: str | None, number: int | None = None) -> Leave:
    """Begin a list entry. With a label, it is a footnote."""
    if label is None:
        return lambda: _end_entry(reader, around, None, number)
    reader.push(reader.frame._replace(notes=reader.frame.notes + 1))

    def leave() -> None:
        reader.pop()
        _end_entry(reader, around, label)

    return leave


ENTER: dict[Any, Enter] = {
    **dict.fromkeys(("ul", "ol", "menu", "dir", "dl"), _list),
    "li": _item,
    "dt": _term,
    "dd": _definition,
}
"""Handlers by tag."""


_ROMAN = (
    *((1_000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_LARGEST = 3_999


def numeral(number: int, kind: str) -> str:
    """Return a number as browsers show a list of type ``a``, ``A``, ``i`` or ``I``; numbers that a system does not have
    are decimal."""
    if kind in ("i", "I"):
        text = _roman(number) if 0 < number <= _LARGEST else ""
    else:
        text = _letters(number) if number > 0 else ""
    if not text:
        return str(number)
    return text.upper() if kind in ("A", "I") else text


def _letters(number: int) -> str:
    text = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


def _roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        times, number = divmod(number, value)
        text += letters * times
    return text
