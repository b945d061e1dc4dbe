"""Handlers for block-level tags in the walk of a :class:`~scrapy_dripper.output.reader.Reader`."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

from lxml import etree

from scrapy_dripper.output import inline_tags
from scrapy_dripper.output.code.blocks import code_block
from scrapy_dripper.output.footnotes import without_label
from scrapy_dripper.output.images import PLAYERS, player
from scrapy_dripper.output.inline_tags import add_formula
from scrapy_dripper.output.items import (
    Audio,
    Code,
    Footnote,
    Footnotes,
    Image,
    Items,
    Paragraph,
    Quote,
    Rule,
    Runs,
    Strong,
    Table,
    Text,
    Title,
    Video,
)
from scrapy_dripper.output.reader import MAX_NESTING, Enter, Leave, Reader, skip, stanzas
from scrapy_dripper.output.tables.table import table
from scrapy_dripper.output.text import inner_text
from scrapy_dripper.page.callouts import alert_of, has_callout_class, title_of
from scrapy_dripper.page.recognise import FIGURE_CLASSES, caption_of, has_code_class, has_math_class, is_figure
from scrapy_dripper.page.tags import KINDS, LONGEST_CLASS, Kind

MOST_CHARS = 300
"""Maximum length of an id. Nobody links to a longer one."""
MOST_INSIDE = 16
"""Maximum number of elements to search in a heading."""
_AROUND = frozenset({"section", "article", "div", "header", "hgroup"})
"""Elements that a heading can open, so that their id is that of the heading."""


def anchor_of(heading: etree._Element) -> str:
    """Return the id of a heading, or an empty string.

    It is the id of the heading itself, of an element in it (``<h2><a name="...">``), of an empty element right before
    it (``<a id="..."></a><h2>``), or of the element that the heading opens (Sphinx: ``<section id="..."><h2>``).
    """
    for element in islice(heading.iter(etree.Element), MOST_INSIDE):
        if found := _id(element):
            return found
    before = heading.getprevious()
    if before is not None:
        is_mark = before.tag in ("a", "span") and not len(before) and not (before.text or before.tail or "").strip()
        return _id(before) if is_mark else ""
    around = heading.getparent()
    if around is not None and around.tag in _AROUND and not (around.text or "").strip():
        return _id(around)
    return ""


def _id(element: etree._Element) -> str:
    found: str = element.get("id") or (element.get("name") if element.tag == "a" else "") or ""
    found = found.strip()
    return "" if len(found) > MOST_CHARS or any(map(str.isspace, found)) else found


MAX_TABLES = 20
"""Maximum nesting of tables, including layout tables. Deeper ones are read as plain blocks."""

MOST_ABOVE = 50
"""Number of items to search for the heading above a list of tabs."""

_LEVELS = {f"h{level}": level for level in range(1, 7)}


def block(reader: Reader, element: etree._Element) -> Leave:
    """Enter an element that is a block of its own, and may be a footnote, a panel or a list of tabs."""
    reader.flush()
    if element in reader.tabs.lists:
        return skip
    _open_panel(reader, element)
    return _note(reader, reader.footnotes.notes[element]) if _is_note(reader, element) else reader.flush


def _open_panel(reader: Reader, element: etree._Element) -> None:
    """Add the title of a tab panel, if it is one, one level below the heading above all panels."""
    title = reader.tabs.titles.get(element)
    if title is None:
        return
    reader.flush()
    own, runs = reader.tabs.runs, (Text(title),)
    above = (item for item in reversed(reader.items[-MOST_ABOVE:]) if type(item) is Title and item.runs not in own)
    if not reader.items or getattr(reader.items[-1], "runs", None) != runs:  # an element may be opened as two things
        reader.items.append(Title(min(next((item.level for item in above), 2) + 1, 6), runs))


def _is_note(reader: Reader, element: etree._Element) -> bool:
    """Return True if an element is a footnote to read as such. Of deeply nested ones, only the outer ones are."""
    notes, frame = reader.footnotes.notes, reader.frame
    return bool(notes) and not frame.flat and frame.notes < MAX_NESTING and element in notes


def block_with_class(reader: Reader, element: etree._Element) -> Leave:
    """Enter a ``<div>``, ``<p>`` or similar element, whose meaning can depend on its class."""
    name = element.get("class")
    if element.get("data-lang"):
        name = f"{name or ''} code"
    if name:
        plain = len(name) <= LONGEST_CLASS and _is_plain(name)
        if not plain:
            if has_code_class(name):
                _open_panel(reader, element)
                if add_code(reader, element):
                    return skip
            if has_math_class(name) and add_formula(reader, element):
                return skip
            if is_figure(element):
                return figure(reader, element)
        if reader.captions and reader.skip_caption(element):
            return skip
        if not plain and has_callout_class(name):
            return _callout(reader, element)
    return block(reader, element)


@lru_cache(4_096)
def _is_plain(name: str) -> bool:
    """Return True if a class attribute does not change the meaning of an element: most do not."""
    return not (
        has_code_class(name)
        or has_math_class(name)
        or has_callout_class(name)
        or not FIGURE_CLASSES.isdisjoint(name.split())
    )


def _callout(reader: Reader, element: etree._Element) -> Leave:
    reader.split_title()
    alert = alert_of(element) if reader.fits else ""
    if not alert:
        return block(reader, element)
    found = title_of(element, alert)
    title: Runs = ()
    if found is not None and found not in reader.captions:
        title = reader.read_line(found)
        reader.captions[found] = -1
    return reader.hold(lambda items: (Quote(items, alert, title),) if items else (Paragraph(title),) if title else ())


def _details(reader: Reader, element: etree._Element) -> Leave:
    return _callout(reader, element) if element.get("class") else block(reader, element)


def _paragraph(reader: Reader, element: etree._Element) -> Leave:
    reader.split_title()
    if reader.captions and reader.skip_caption(element):
        return skip
    return block_with_class(reader, element)


def _heading(reader: Reader, element: etree._Element) -> Leave:
    reader.split_title()
    if reader.frame.flat:
        return block(reader, element)
    reader.flush()
    if element in reader.footnotes.notes:
        # An empty footnote, to which gathered() moves what follows.
        reader.items.append(Footnotes((Footnote(reader.footnotes.notes[element], ()),)))
        return skip
    reader.push(reader.frame._replace(flat=True, title=_LEVELS[element.tag], anchor=anchor_of(element)))

    def leave() -> None:
        if reader.frame.title:
            reader.end_title()
        else:
            reader.flush()

    return leave


def add_code(reader: Reader, element: etree._Element) -> bool:
    """Add an element as a code block. Return False if it is not one."""
    found = None if reader.frame.flat and not reader.frame.title else code_block(element)
    if found is None:
        return False
    reader.split_title()
    if reader.frame.flat:
        return False
    reader.flush()
    if found.text:
        reader.items.append(found)
    return True


def _preformatted(reader: Reader, element: etree._Element) -> Leave:
    if add_code(reader, element):
        return skip
    if not reader.frame.flat:
        return block(reader, element)
    text = " ".join(inner_text(element).split())
    if text:
        reader.line.run(Code(text))
    return skip


def _code(reader: Reader, element: etree._Element) -> Leave:
    return skip if add_code(reader, element) else inline_tags.code_tag(reader, element)


def _rule(reader: Reader, element: etree._Element) -> Leave:
    if element.get("role") in ("presentation", "none") or element.get("aria-hidden") == "true":
        reader.flush()
        return skip
    reader.split_title()
    reader.flush()
    if not reader.frame.flat:
        reader.items.append(Rule())
    return skip


def _player(reader: Reader, element: etree._Element) -> Leave:
    found = player(element, reader.resolve)
    if found is not None:
        reader.split_title()
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
    if name and has_callout_class(name):
        return _callout(reader, element)
    reader.split_title()
    return reader.hold(lambda items: (Quote(items),) if items else ()) if reader.fits else block(reader, element)


def figure(reader: Reader, element: etree._Element) -> Leave:
    """Enter a figure. Its caption is read first."""
    reader.split_title()
    found = caption_of(element) if reader.fits else None
    if found is None or found in reader.captions or _holds_blocks(found):
        return block(reader, element)
    caption = reader.read_line(found)
    reader.captions[found] = -1
    if not caption:
        return block(reader, element)
    return reader.hold(lambda items: _with_caption(items, caption, reader.captions[found]))


def _holds_blocks(caption: etree._Element) -> bool:
    """Return True for a caption that is a text in itself: with a heading, a list, or two paragraphs."""
    if next(caption.iter("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "table", "pre"), None) is not None:
        return True
    paragraphs = caption.iter("p")
    return next(paragraphs, None) is not None and next(paragraphs, None) is not None


def _with_caption(items: Items, caption: Runs, place: int) -> Items:
    """Attach the caption of a figure to its only item. Otherwise, insert it as a paragraph at its place."""
    only = items[0] if len(items) == 1 else None
    if isinstance(only, (Image, Video, Audio, Table)) and not only.caption:
        return (replace(only, caption=caption),)
    return (*items[:place], Paragraph(caption), *items[place:]) if place >= 0 else (*items, Paragraph(caption))


def _figure_tag(reader: Reader, element: etree._Element) -> Leave:
    name = element.get("class")
    return skip if name and has_code_class(name) and add_code(reader, element) else figure(reader, element)


def _picture(reader: Reader, element: etree._Element) -> Leave:
    return inline_tags.image_tag(reader, element) if caption_of(element) is None else figure(reader, element)


def _caption(reader: Reader, element: etree._Element) -> Leave:
    return skip if reader.skip_caption(element) else block(reader, element)


def _note(reader: Reader, label: str) -> Leave:
    reader.push(reader.frame._replace(notes=reader.frame.notes + 1))
    leave = reader.hold(lambda items: footnotes([(label, without_label(items, label))]))

    def leave_note() -> None:
        assert leave is not None
        leave()
        reader.pop()

    return leave_note


def footnotes(notes: list[tuple[str, Items]]) -> tuple[Footnotes, ...]:
    """Return an item with the notes that are not empty, if there are any."""
    kept = tuple(Footnote(label, items) for label, items in notes if items)
    return (Footnotes(kept),) if kept else ()


def _summary(reader: Reader, element: etree._Element) -> Leave:
    if reader.skip_caption(element):
        return skip
    reader.flush()
    opened = not reader.frame.flat and reader.line.open(Strong)

    def leave() -> None:
        reader.flush()
        if opened:
            reader.line.close()

    return leave


def _table(reader: Reader, element: etree._Element) -> Leave:
    if _is_note(reader, element):
        return block(reader, element)
    if add_code(reader, element):
        return skip
    name = element.get("class")
    if name and has_math_class(name) and add_formula(reader, element):
        return skip
    reader.split_title()
    if reader.frame.flat or reader.frame.table_depth >= MAX_TABLES:
        return block(reader, element)
    reader.flush()
    reader.push(reader.frame._replace(table_depth=reader.frame.table_depth + 1))
    items = table(element, reader.read)
    reader.pop()
    for item in items:
        if type(item) is Paragraph and not reader.frame.table_depth:  # from a layout table
            reader.items.extend(stanzas(item))
        else:
            reader.items.append(item)
    return skip


ENTER: dict[Any, Enter] = {
    **{tag: block for tag, kind in KINDS.items() if kind is Kind.BLOCK},
    **dict.fromkeys(("div", "section", "article", "aside", "center"), block_with_class),
    **dict.fromkeys(("pre", "listing", "xmp", "plaintext"), _preformatted),
    **dict.fromkeys(_LEVELS, _heading),
    **dict.fromkeys(PLAYERS, _player),
    "p": _paragraph,
    "hr": _rule,
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
