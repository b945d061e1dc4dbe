"""Footnotes: the links that are reference marks, the elements that they lead to, and the items of these."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, islice

from lxml import etree

from scrapy_dripper.page.nodes import inner_text
from scrapy_dripper.structures import NEAR
from scrapy_dripper.structures.items import (
    Emphasis,
    Footnote,
    FootnoteMark,
    Footnotes,
    Item,
    Items,
    LineBreak,
    Link,
    Paragraph,
    Strong,
    Sup,
    Text,
    ThematicBreak,
    Title,
    line_text,
)

_mark_name = re.compile(
    r"#(?:user-content-)?(?:fn|footnote|ftnt?|_ftn|sdfootnote|cite_note|note|en|endnote)(?!ref|_ref)[-_:.a-z]*\d", re.I
).match
_mark_class = re.compile(r"foot-?note|note-?ref|cite_ref|reference|doc-noteref|sdfootnote|endnote", re.I).search
_mark_text = re.compile(r"[\[(]?\s*(\w{1,4}|[*†‡§¶#]{1,3})\s*[\])]?").fullmatch
_back_class = re.compile(r"back-?ref|back-?link|footnote-?(?:back|return)|reversefootnote|doc-backlink", re.I).search
_back_text = re.compile(r"[\W_]*(?:(?:[^\W_](?:\w?[^\W_])?|back|return|jump(?: up)?(?: to)?)[\W_]*)?", re.I).fullmatch
_word = re.compile(r"\w").search

_note_class = re.compile(r"(?:^|[\s_-])(?:foot-?note|endnote)s?(?=[\s_-]|$)", re.I).search

_HOLDERS = frozenset({"li", "p", "div", "dd", "aside"})
"""Elements that can be a footnote."""
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
"""Headings that hold the number of the footnote after them (Texinfo)."""

NOTE_IN_PLACE, NOTE_TAG, _NOTE_CONTENT = "ltx_note", "ltx_tag_note", "ltx_note_content"
"""Parts of the classes of a footnote that LaTeXML writes in place of its mark, of its number, and of its content."""
_LABEL_EDGES = " \xa0[]()^.:"
_LABELS = frozenset({Text, Sup, Strong, Emphasis, Link, LineBreak, FootnoteMark})


class FootnoteMarks:
    """The reference marks of a page found so far, and their footnotes."""

    def __init__(self, root: etree._Element) -> None:
        self._root = root
        self._targets: dict[str, etree._Element] | None = None
        self._labels: set[str] = set()
        self._marks: set[str] = set()  # ids and names of the marks found
        self.notes: dict[etree._Element, str] = {}
        """The label of each footnote, by its element or the heading before it."""

    def is_mark(self, link: etree._Element, href: str) -> bool:
        """Return True if a link within the page looks like a reference mark, even if the footnote is not on the
        page."""
        shown = self._shown(link, href)
        return shown is not None and (len(shown) == 1 or not shown.isalpha())

    def note(self, link: etree._Element, href: str) -> etree._Element | None:
        """Return the footnote, or the heading before it, that a link within the page leads to, or None."""
        note = self._target(href[1:]) if self._shown(link, href) is not None else None
        if note is None or note in (link, *islice(link.iterancestors(), 7)):
            return None
        named = _mark_name(href) is not None
        if note.tag in _HOLDERS and not (named or note.tag != "div" or _note_class(note.get("class") or "")):
            return None
        return note

    def label(self, link: etree._Element, href: str) -> str | None:
        """Return the label of the footnote that a link within the page leads to, or None."""
        shown, note = self._shown(link, href), self.note(link, href)
        if shown is None or note is None:
            return None
        for near in (link, *islice(link.iterancestors(), 2)):  # the link back can lead to an element around the mark
            if near.tag in _HOLDERS:
                break
            self._marks.update(filter(None, (near.get("id"), near.get("name"))))
        label = self.notes.get(note)
        if label is None:
            label = self.notes[note] = self.free_label(shown)
        return label

    def _shown(self, link: etree._Element, href: str) -> str | None:
        """Return the text of a reference mark without its brackets, or None for another link."""
        text = inner_text(link).strip()
        shown = _mark_text(text) if len(text) < 12 else None
        return shown[1] if shown and (_mark_name(href) is not None or self._is_marked(link)) else None

    def free_label(self, wanted: str) -> str:
        """Return an unused label, preferably the wanted one."""
        label = wanted if wanted.isalnum() else ""
        if not label or label in self._labels:
            label = str(len(self._labels) + 1)
            while label in self._labels:
                label += "a"
        self._labels.add(label)
        return label

    def leads_back(self, link: etree._Element, href: str | None) -> bool:
        """Return True if an element in a footnote is a link back to its mark, or only holds such links."""
        if link.tag != "a":
            return "mw-cite-backlink" in link.get("class", "")
        if not href or href[0] != "#":
            return False
        text = inner_text(link)
        if not _word(text) or href[1:] in self._marks:
            return True
        names = link.get("class", "") + " " + link.get("role", "")
        return _back_text(text) is not None and (_back_class(names) is not None or "ref" in href.lower())

    def _is_marked(self, link: etree._Element) -> bool:
        parent = link.getparent()
        if (parent is not None and parent.tag == "sup") or (len(link) == 1 and link[0].tag == "sup" and not link.text):
            return True
        return _mark_class(f"{link.get('class', '')} {link.get('role', '')} {link.get('rel', '')}") is not None

    def _target(self, name: str) -> etree._Element | None:
        if self._targets is None:
            self._targets = {}
            for element in self._root.iter(*_HOLDERS, "a", "span", "cite", "sup", "dt", "table"):
                key = element.get("id") or element.get("name")
                if key:
                    self._targets.setdefault(key, element)
        target = self._targets.get(name)
        for _ in range(4):
            if target is None or target.tag in _HOLDERS:
                return target
            if target.tag in _HEADINGS:
                return target if _mark_text(inner_text(target).strip()[:12]) else None
            if target.tag == "dt":  # older Sphinx releases write footnotes as definitions
                following = target.getnext()
                return following if following is not None and following.tag == "dd" else None
            if target.tag == "table":  # even older Sphinx releases write them as tables
                return target if _note_class(target.get("class") or "") else None
            target = target.getparent()
        return None


# ---------------------------------------------------------------------- notes as items


def note_in_place(element: etree._Element) -> tuple[etree._Element | None, str]:
    """Return the content of a footnote that is written in place of its mark, and the mark; None for other elements."""
    near = (node for node in islice(element.iter(), NEAR) if node.tag == "span")
    content = next((node for node in near if _NOTE_CONTENT in (node.get("class") or "")), None)
    mark = next(element.iter("sup"), None) if content is not None else None
    return content, inner_text(mark).strip() if mark is not None else ""


def footnotes(notes: list[tuple[str, Items]]) -> tuple[Footnotes, ...]:
    """Return an item with the notes that are not empty, if there are any."""
    kept = tuple(Footnote(label, items) for label, items in notes if items)
    return (Footnotes(kept),) if kept else ()


def without_label(items: Items, label: str) -> Items:
    """Return the items of a footnote without the number at their beginning."""
    for i, item in enumerate(items):
        if type(item) is not Paragraph:
            return items[i:]
        runs = item.runs
        n = 0
        while (
            n < len(runs) and type(runs[n]) in _LABELS and line_text(runs[n : n + 1]).strip(_LABEL_EDGES) in ("", label)
        ):
            n += 1
        first = runs[n] if n < len(runs) else None
        if type(first) is Text:
            rest = first.text.lstrip(_LABEL_EDGES) if n else _without_number(first.text, label)
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
    made: list[Sequence[Item]] = []
    labels: dict[int, str] = {}
    inside: list[Item] | None = None
    for item in items:
        if type(item) is Footnotes and not item.notes[0].items:
            labels[len(made)] = item.notes[0].label
            inside = []
            made.append(inside)
        elif inside is None or type(item) in (ThematicBreak, Title, Footnotes):
            inside = None
            made.append((item,))
        else:
            inside.append(item)
    for i, label in labels.items():
        made[i] = footnotes([(label, tuple(made[i]))])
    return tuple(chain.from_iterable(made))
