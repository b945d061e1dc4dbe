"""Handlers for block-level tags in the walk of a :class:`~scrapy_dripper.output.reader.Reader`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

from lxml import etree

from scrapy_dripper.output import inline_tags
from scrapy_dripper.output.anchors import anchor_of
from scrapy_dripper.output.callouts import alert_of, has_callout_class, title_of
from scrapy_dripper.output.code.blocks import code_block, has_code_class
from scrapy_dripper.output.footnotes import without_label
from scrapy_dripper.output.images import PLAYERS, caption_of, captioned, is_figure, player
from scrapy_dripper.output.inline_tags import add_formula
from scrapy_dripper.output.items import (
    Audio,
    Code,
    Footnote,
    Footnotes,
    Image,
    Items,
    List,
    ListItem,
    Paragraph,
    Quote,
    Rule,
    Runs,
    Strong,
    Table,
    Video,
)
from scrapy_dripper.output.math.formulas import has_math_class
from scrapy_dripper.output.math.mathml_tree import inner_text
from scrapy_dripper.output.reader import Enter, Leave, Reader, skip, stanzas
from scrapy_dripper.output.tables.table import table
from scrapy_dripper.page.tags import KINDS, Kind

MAX_TABLES = 20
"""Maximum nesting of tables, including layout tables. Deeper ones are read as plain blocks."""

_LEVELS = {f"h{level}": level for level in range(1, 7)}
_digits = re.compile(r"\s*(\d{1,9})\s*").fullmatch


def _block(reader: Reader, element: etree._Element) -> Leave:
    reader.flush()
    notes = reader.footnotes.notes
    return _note(reader, notes[element]) if notes and not reader.flat and element in notes else reader.flush


def block_with_class(reader: Reader, element: etree._Element) -> Leave:
    """Enter a ``<div>``, ``<p>`` or similar element, whose meaning can depend on its class."""
    name = element.get("class")
    if element.get("data-lang"):
        name = f"{name or ''} code"
    if name:
        if has_code_class(name) and add_code(reader, element):
            return skip
        if has_math_class(name) and add_formula(reader, element):
            return skip
        if is_figure(element):
            return _figure(reader, element)
        if reader.is_caption(element):
            return skip
        if has_callout_class(name) and reader.fits():
            return _callout(reader, element)
    return _block(reader, element)


def _callout(reader: Reader, element: etree._Element) -> Leave:
    alert = alert_of(element)
    if not alert:
        return _block(reader, element)
    found = title_of(element, alert)
    title: Runs = ()
    if found is not None and found not in reader.captions:
        title = reader.read_line(found)
        reader.captions[found] = -1
    return reader.hold(lambda items: (Quote(items, alert, title),) if items else (Paragraph(title),) if title else ())


def _details(reader: Reader, element: etree._Element) -> Leave:
    return _callout(reader, element) if element.get("class") and reader.fits() else _block(reader, element)


def _paragraph(reader: Reader, element: etree._Element) -> Leave:
    reader.begins_block()
    if reader.captions and reader.is_caption(element):
        return skip
    return block_with_class(reader, element)


def _heading(reader: Reader, element: etree._Element) -> Leave:
    if not reader.begins_block():
        return _block(reader, element)
    reader.flush()
    if element in reader.footnotes.notes:
        # An empty footnote, to which gathered() moves what follows.
        reader.items.append(Footnotes((Footnote(reader.footnotes.notes[element], ()),)))
        return skip
    reader.flat = True
    reader.title, reader.anchor = _LEVELS[element.tag], anchor_of(element)

    def leave() -> None:
        if reader.title:
            reader.end_title()
        else:
            reader.flush()

    return leave


def add_code(reader: Reader, element: etree._Element) -> bool:
    """Add an element as a code block. Return False if it is not one."""
    found = None if reader.flat and not reader.title else code_block(element, reader.guess)
    if found is None or not reader.begins_block():
        return False
    reader.flush()
    if found.text:
        reader.items.append(found)
    return True


def _preformatted(reader: Reader, element: etree._Element) -> Leave:
    if add_code(reader, element):
        return skip
    if not reader.flat:
        return _block(reader, element)
    text = " ".join(inner_text(element).split())
    if text:
        reader.line.run(Code(text))
    return skip


def _code(reader: Reader, element: etree._Element) -> Leave:
    return skip if add_code(reader, element) else inline_tags.code_tag(reader, element)


def _rule(reader: Reader, element: etree._Element) -> Leave:
    if element.get("role") in ("presentation", "none") or element.get("aria-hidden") == "true":
        reader.flush()
    elif reader.begins_block():
        reader.flush()
        reader.items.append(Rule())
    else:
        reader.flush()
    return skip


def _player(reader: Reader, element: etree._Element) -> Leave:
    found = player(element, reader.resolve)
    if found is not None:
        reader.begins_block()
        reader.flush()
        before = reader.items[-1] if reader.items else None
        if type(before) is not type(found) or before.src != found.src:
            reader.items.append(found)
        elif found.title and not before.title:  # the <noscript> copy of a lazily loaded player
            reader.items[-1] = found
    return skip


# ---------------------------------------------------------------------- containers
def _quote(reader: Reader, element: etree._Element) -> Leave:
    name = element.get("class")
    if name and has_callout_class(name) and reader.fits():
        return _callout(reader, element)
    return reader.hold(lambda items: (Quote(items),) if items else ()) if reader.fits() else _block(reader, element)


def _figure(reader: Reader, element: etree._Element) -> Leave:
    found = caption_of(element) if reader.fits() else None
    if found is None or found in reader.captions or _holds_blocks(found):
        return _block(reader, element)
    caption = reader.read_line(found)
    reader.captions[found] = -1
    if not caption:
        return _block(reader, element)
    return reader.hold(lambda items: _with_caption(items, caption, reader.captions[found]))


def _holds_blocks(caption: etree._Element) -> bool:
    """Return True for a caption that is a text in itself: with a heading, a list, or two paragraphs."""
    if next(caption.iter("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "table", "pre"), None) is not None:
        return True
    paragraphs = caption.iter("p")
    return next(paragraphs, None) is not None and next(paragraphs, None) is not None


def _with_caption(items: Items, caption: Runs, place: int) -> Items:
    """Attach the caption of a figure to its only item. Otherwise, insert it as a paragraph at its place."""
    if len(items) == 1 and isinstance(items[0], (Image, Video, Audio, Table)):
        return captioned(items, caption)
    return (*items[:place], Paragraph(caption), *items[place:]) if place >= 0 else (*items, Paragraph(caption))


def _figure_tag(reader: Reader, element: etree._Element) -> Leave:
    name = element.get("class")
    return skip if name and has_code_class(name) and add_code(reader, element) else _figure(reader, element)


def _picture(reader: Reader, element: etree._Element) -> Leave:
    return inline_tags.image_tag(reader, element) if caption_of(element) is None else _figure(reader, element)


def _caption(reader: Reader, element: etree._Element) -> Leave:
    return skip if reader.is_caption(element) else _block(reader, element)


def _note(reader: Reader, label: str) -> Leave:
    reader.in_note += 1
    leave = reader.hold(lambda items: _footnotes([(label, without_label(items, label))]))

    def leave_note() -> None:
        reader.in_note -= 1
        assert leave is not None
        leave()

    return leave_note


def _footnotes(notes: list[tuple[str, Items]]) -> tuple[Footnotes, ...]:
    """Return an item with the notes that are not empty, if there are any."""
    kept = tuple(Footnote(label, items) for label, items in notes if items)
    return (Footnotes(kept),) if kept else ()


def _summary(reader: Reader, element: etree._Element) -> Leave:
    if reader.is_caption(element):
        return skip
    reader.flush()
    opened = not reader.flat and reader.line.open(Strong)

    def leave() -> None:
        reader.flush()
        if opened:
            reader.line.close()

    return leave


def _table(reader: Reader, element: etree._Element) -> Leave:
    if element in reader.footnotes.notes and not reader.flat:
        return _block(reader, element)
    if add_code(reader, element):
        return skip
    name = element.get("class")
    if name and has_math_class(name) and add_formula(reader, element):
        return skip
    if not reader.begins_block() or reader.in_cell >= MAX_TABLES:
        return _block(reader, element)
    reader.flush()
    reader.in_cell += 1
    items = table(element, reader.read, reader.tables)
    reader.in_cell -= 1
    for item in items:
        if type(item) is Paragraph and not reader.in_cell:  # from a layout table
            reader.items.extend(stanzas(item))
        else:
            reader.items.append(item)
    return skip


# ---------------------------------------------------------------------- lists
def _list(reader: Reader, element: etree._Element) -> Leave:
    if element.get("class") and is_figure(element):
        return _figure(reader, element)
    if not reader.fits():
        return _block(reader, element)
    reader.flush()
    outer = (
        reader.items, reader.kind, reader.entries, reader.terms, reader.labels, reader.numbers, reader.number,
        reader.checked, reader.step,
    )  # fmt: skip
    reader.items, reader.entries, reader.terms, reader.labels, reader.numbers = [], [], [], {}, {}
    reader.checked = None
    kind: Literal["unordered", "ordered", "definition"]
    kind = "ordered" if element.tag == "ol" else "definition" if element.tag == "dl" else "unordered"
    number = _digits(element.get("start") or "") if kind == "ordered" else None
    start = int(number[1]) if number else 1
    step = 1
    if kind == "ordered" and element.get("reversed") is not None:
        step = -1
        start = start if number else sum(child.tag == "li" for child in element)
    numbered = step < 0 or (kind == "ordered" and any(child.get("value") for child in element if child.tag == "li"))
    reader.number = start if numbered else None
    reader.kind, reader.step = kind, step
    reader.nesting += 1

    def leave() -> None:
        _end_entry(reader)
        entries, labels, numbers = reader.entries, reader.labels, reader.numbers
        if any(reader.terms):
            entries.append(ListItem((), tuple(filter(None, reader.terms))))
        reader.items, reader.kind, reader.entries, reader.terms, reader.labels = outer[:5]
        reader.numbers, reader.number, reader.checked, reader.step = outer[5:]
        reader.nesting -= 1
        if labels:
            while reader.items and type(reader.items[-1]) is Rule:
                reader.items.pop()  # the rule between the text and its footnotes
            free = reader.footnotes.free_label
            named = [(labels.get(i) or free(str(i + 1)), entry.items) for i, entry in enumerate(entries)]
            reader.items += _footnotes([(label, without_label(items, label)) for label, items in named])
        elif entries:
            if kind == "unordered":
                entries = [one for entry in entries for one in _without_empty_level(entry)]
            reader.items.append(List(kind, _numbered(entries, numbers), numbers.get(0, start)))

    return leave


def _numbered(entries: list[ListItem], numbers: dict[int, int]) -> tuple[ListItem, ...]:
    """Return the entries of a list, with explicit numbers only where they break the sequence."""
    made: list[ListItem] = []
    before = None
    for i, entry in enumerate(entries):
        number = numbers.get(i, None if before is None else before + 1)
        made.append(entry if before is None or number == before + 1 else replace(entry, number=number))
        before = number
    return tuple(made)


def _without_empty_level(entry: ListItem) -> tuple[ListItem, ...]:
    """Replace an entry that only holds a list by the entries of that list. It may have lost a comment, for example."""
    if len(entry.items) == 1:
        only = entry.items[0]
        if type(only) is List and only.kind == "unordered":
            return only.items
    return (entry,)


def _end_entry(reader: Reader, label: str | None = None, number: int | None = None) -> None:
    """End a list entry, or the content between two entries."""
    reader.flush()
    if reader.items:
        if label is not None:
            reader.labels[len(reader.entries)] = label
        if number is not None:
            reader.numbers[len(reader.entries)] = number
        terms = tuple(filter(None, reader.terms)) or tuple(reader.terms[:1])
        reader.entries.append(ListItem(tuple(reader.items), terms, reader.checked))
        reader.items, reader.terms = [], []
    reader.checked = None


def _item(reader: Reader, element: etree._Element) -> Leave:
    if reader.flat or reader.kind not in ("ordered", "unordered"):
        return _block(reader, element)
    reader.flush()
    if reader.items and reader.entries and all(type(item) is List for item in reader.items):
        last = reader.entries[-1]  # a list between two entries belongs to the first one
        reader.entries[-1] = replace(last, items=(*last.items, *reader.items))
        reader.items = []
    _end_entry(reader)
    number = reader.number
    if number is not None:
        value = _digits(element.get("value") or "")
        number = int(value[1]) if value else number
        reader.number = number + reader.step
    label = reader.footnotes.notes.get(element) if reader.footnotes.notes else None
    if label is None:
        return lambda: _end_entry(reader, number=number)
    return _noted_entry(reader, label)


def _term(reader: Reader, element: etree._Element) -> Leave:
    if reader.flat or reader.kind != "definition":
        return _block(reader, element)
    _end_entry(reader)
    reader.terms.append(reader.read_line(element))  # empty if the term is not main content
    return skip


def _definition(reader: Reader, element: etree._Element) -> Leave:
    if reader.is_caption(element):
        return skip
    if reader.flat or reader.kind != "definition":
        return _block(reader, element)
    _end_entry(reader)
    label = reader.footnotes.notes.get(element)
    return (lambda: _end_entry(reader)) if label is None else _noted_entry(reader, label)


def _noted_entry(reader: Reader, label: str) -> Leave:
    """Read a list entry that is a footnote."""
    reader.in_note += 1

    def leave() -> None:
        reader.in_note -= 1
        _end_entry(reader, label)

    return leave


ENTER: dict[Any, Enter] = {
    **{tag: _block for tag, kind in KINDS.items() if kind is Kind.BLOCK},
    **dict.fromkeys(("div", "section", "article", "aside", "center"), block_with_class),
    **dict.fromkeys(("ul", "ol", "menu", "dir", "dl"), _list),
    **dict.fromkeys(("pre", "listing", "xmp", "plaintext"), _preformatted),
    **dict.fromkeys(_LEVELS, _heading),
    **dict.fromkeys(PLAYERS, _player),
    "p": _paragraph,
    "hr": _rule,
    "li": _item,
    "dt": _term,
    "dd": _definition,
    "blockquote": _quote,
    "figure": _figure_tag,
    "picture": _picture,
    "figcaption": _caption,
    "details": _details,
    "summary": _summary,
    "code": _code,
    "table": _table,
}
"""Handlers by tag."""
