"""Handlers for inline tags in the walk of a :class:`~scrapy_dripper.output.reader.Reader`."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree

from scrapy_dripper.characters import unbroken
from scrapy_dripper.output.line import Format, Separator, numbers_of, tells_of_window
from scrapy_dripper.output.reader import Enter, Leave, Reader, skip
from scrapy_dripper.page.nodes import inner_text, short_text
from scrapy_dripper.structures.footnotes import NOTE_IN_PLACE, NOTE_TAG, note_in_place, without_label
from scrapy_dripper.structures.formulas import MATH_TAGS, formula, has_math_class
from scrapy_dripper.structures.headings import has_word, header_link, is_edit_link, is_self_link, self_link
from scrapy_dripper.structures.images import emoji, image, is_button, same_image
from scrapy_dripper.structures.items import (
    Deleted,
    Emphasis,
    Footnote,
    FootnoteMark,
    Link,
    Ruby,
    Run,
    Strong,
    Sub,
    Sup,
    Text,
)

_for_screen_readers = re.compile(
    r"(?:^|\s)(?:sr-only|screen-?reader(?:s?-?text|-only)?|(?:u-)?visually-?hidden|show-for-sr|a11y-hidden)(?:\s|$)",
    re.I,
).search
_word = re.compile(r"\w").search


def inline(reader: Reader, _element: etree._Element) -> Leave:
    """Enter an element that has no format of its own."""
    if reader.loose:
        reader.touch()
    return None


def _format(form: Format) -> Enter:
    def enter(reader: Reader, _element: etree._Element) -> Leave:
        if form not in (Sub, Sup):
            reader.touch()
        return reader.line.close if reader.line.open(form) else None

    return enter


def _span(reader: Reader, element: etree._Element) -> Leave:
    if reader.loose:
        reader.touch()
    name = element.get("class")
    if name:
        if has_math_class(name) and add_formula(reader, element):
            return skip
        if is_edit_link(name):  # in a heading or, since MediaWiki 1.43, beside it
            return skip
        for_screen_readers = _for_screen_readers(name)
        if for_screen_readers and _is_kind_of_frame(element):
            return skip
        if for_screen_readers and reader.line.begun:
            text = short_text(element)  # a longer text does not just repeat the line
            if text is not None and (tells_of_window(text) or reader.line.says(numbers_of(text))):
                return skip
            reader.line.separate(Separator.SPACE)
            return lambda: reader.line.separate(Separator.SPACE)
        if reader.frame.notes and reader.footnotes.leads_back(element, None):
            return skip
        if reader.frame.notes and NOTE_TAG in name:
            return skip
        if NOTE_IN_PLACE in name and _note_in_place(reader, element):
            return skip
    return None


def _is_kind_of_frame(element: etree._Element) -> bool:
    """Return True for what is alone in the caption of code, such as ``Terminal window`` in Expressive Code."""
    caption = element.getparent()
    if caption is None or caption.tag != "figcaption" or len(caption) > 1 or (caption.text or "").strip():
        return False
    code = caption.getnext()
    return code is not None and code.tag == "pre"


def _note_in_place(reader: Reader, element: etree._Element) -> bool:
    """Read a footnote that is written in place of its mark. Return False for other elements."""
    if reader.frame.notes or reader.frame.title:
        return False
    content, shown = note_in_place(element)
    if content is None:
        return False
    reader.push(reader.frame._replace(notes=1))
    items = without_label(reader.read(content), shown)
    reader.pop()
    if items:
        label = reader.footnotes.free_label(shown)
        reader.inline_notes.append(Footnote(label, items))
        reader.line.run(FootnoteMark(label))
    return True


def _anchor(reader: Reader, element: etree._Element) -> Leave:
    href = element.get("href")
    if href and href[0] == "#":
        return _anchor_here(reader, element, href)
    reader.touch()
    if not href or (reader.frame.title and is_self_link(element)):
        return skip if href else None
    url = reader.resolve(href)
    if reader.frame.title and reader.leads_here(url):
        return None  # the headline of a post, which themes link to the page that it is on
    return _link(reader, element, url)


def _link(reader: Reader, element: etree._Element, url: str) -> Leave:
    if not url or not reader.line.open(Link, url, unbroken(element.get("title") or "")):
        return None
    return reader.line.close


def _anchor_here(reader: Reader, element: etree._Element, href: str) -> Leave:
    """Enter a link to a place on the page: a mark of a footnote, the sign of a heading, or an ordinary link."""
    name = element.get("class")
    if name and header_link(name) and not has_word(element):
        return skip
    if reader.frame.notes and reader.footnotes.leads_back(element, href):
        return skip
    if reader.frame.title:
        reader.touch()
        return None if has_word(element) and not is_self_link(element) else skip
    label = reader.footnotes.label(element, href) if href != "#" else None
    if label is not None:
        reader.line.run(FootnoteMark(label))  # right behind the word
        return skip
    reader.touch()
    if href == "#" or reader.footnotes.is_mark(element, href):  # a mark whose footnote is not main content
        return None
    if name and self_link(name) and _is_unseen(element):
        return skip
    return _link(reader, element, reader.resolve(href))


def _is_unseen(element: etree._Element) -> bool:
    """Return True for a sign with a text for screen readers only."""
    seen = [element.text, *(child.tail for child in element)]
    others = (child for child in element if not _for_screen_readers(child.get("class") or ""))
    return not any(text and text.strip() for text in seen) and not any(map(has_word, others))


def code_tag(reader: Reader, element: etree._Element) -> Leave:
    """Read the content of an element as code."""
    reader.touch()
    name = element.get("class")
    if name and has_math_class(name) and add_formula(reader, element):
        return skip
    reader.line.open_code()
    return reader.line.close_code


def _quotation(reader: Reader, _element: etree._Element) -> Leave:
    reader.touch()
    reader.line.text("\u201c")

    def leave() -> None:
        reader.line.pending = Separator.NOTHING
        reader.line.text("\u201d")

    return leave


def _line_break(reader: Reader, _element: etree._Element) -> Leave:
    line = reader.line
    if reader.frame.flat:
        line.separate(Separator.SPACE)
    elif line.pending < Separator.BREAK:
        line.separate(Separator.BREAK)
    elif reader.frame.table_depth:
        line.separate(Separator.BREAKS)
    else:
        reader.flush()
    return None


def _ruby(reader: Reader, element: etree._Element) -> Leave:
    reader.touch()
    if reader.frame.ruby:
        return None
    line = reader.new_line()
    reader.push(reader.frame._replace(line=line, flat=True, ruby=True))
    line.text(element.text or "")
    parts: list[Run] = []
    for child in element:
        if child.tag in ("rt", "rtc"):
            base, reading = line.take(), "".join(inner_text(child).split())
            parts += [Ruby(base, reading)] if base and reading else base
        elif isinstance(child.tag, str) and child.tag != "rp":
            reader.walk(child)
        line.text(child.tail or "")
    parts += line.take()
    reader.pop()
    for part in parts:
        if type(part) is Text:
            reader.line.text(part.text)
        else:
            reader.line.run(part)
    return skip


def add_formula(reader: Reader, element: etree._Element) -> bool:
    """Add an element as a formula. Return False if it is not one."""
    made = formula(element)
    if made is None:
        return False
    if made.latex:
        reader.line.run(made)
    return True


def _math(reader: Reader, element: etree._Element) -> Leave:
    reader.touch()
    return skip if add_formula(reader, element) else None


def _script(reader: Reader, element: etree._Element) -> Leave:
    if element.get("type", "").strip().lower() == "math/asciimath" and (element.text or "").strip():
        reader.line.text(f"`{(element.text or '').strip()}`")  # as authors write AsciiMath in the text
    else:
        add_formula(reader, element)
    return skip


def image_tag(reader: Reader, element: etree._Element) -> Leave:
    """Add an element as an image."""
    if element.tag == "picture" and any(child.tag not in ("img", "source") for child in element):
        return None
    if add_formula(reader, element):
        return skip
    character = emoji(element)
    if _word(character):  # the name of an emoji
        character = ""
    picture = None if character else image(element, reader.resolve)
    if picture is None and reader.frame.table_depth and not reader.line.begun and not is_button(element):
        character = character or " ".join((element.get("alt") or "").split())  # a check mark or a cross
    if character:
        reader.line.text(character)
    elif picture is not None:
        reader.line.image(picture, same_image)
    return skip


def _box(reader: Reader, element: etree._Element) -> Leave:
    """Record the state of a task's checkbox, at the beginning of its list entry."""
    around = reader.frame.open_list
    if (
        (element.get("type") or "").lower() == "checkbox"
        and around is not None
        and around.kind != "definition"
        and not (reader.items or reader.line.begun or element.get("name"))
    ):
        around.checked = element.get("checked") is not None
    return skip


def _cite(reader: Reader, element: etree._Element) -> Leave:
    """Separate the name of a quoted person from the quotation, as the style sheets of forums do."""
    around = element.getparent()
    if around is not None and around.tag == "div":
        around = around.getparent()
    if reader.line.begun or around is None or around.tag != "blockquote":
        return None
    return lambda: reader.line.separate(Separator.LOOSE)


ENTER: dict[Any, Enter] = {
    "input": _box,
    **dict.fromkeys(("wbr", "rp", "source", "track"), lambda _reader, _element: skip),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), code_tag),
    **dict.fromkeys(("em", "i", "var", "dfn"), _format(Emphasis)),
    **dict.fromkeys(("strong", "b"), _format(Strong)),
    **dict.fromkeys(("del", "s", "strike"), _format(Deleted)),
    **dict.fromkeys(("img", "image", "picture"), image_tag),
    "sub": _format(Sub),
    "sup": _format(Sup),
    "span": _span,
    "a": _anchor,
    "q": _quotation,
    "cite": _cite,
    "br": _line_break,
    "ruby": _ruby,
    **dict.fromkeys(MATH_TAGS - {"img", "script"}, _math),
    "script": _script,
}
"""Handlers by tag."""
