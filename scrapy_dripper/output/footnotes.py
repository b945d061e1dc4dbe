"""Footnotes: which links of a page are their marks, and which elements they lead to."""

from __future__ import annotations

import re

from lxml import etree

from scrapy_dripper.output.math.mathml_tree import inner_text

_mark_name = re.compile(
    r"#(?:user-content-)?(?:fn|footnote|ftnt?|_ftn|sdfootnote|cite_note|note|en|endnote)(?!ref|_ref)[-_:.a-z]*\d", re.I
).match
_mark_class = re.compile(r"foot-?note|note-?ref|cite_ref|reference|doc-noteref|sdfootnote|endnote", re.I).search
_mark_text = re.compile(r"[\[(]?\s*(\w{1,4}|[*†‡§¶#]{1,3})\s*[\])]?").fullmatch
_back_class = re.compile(r"back-?ref|back-?link|footnote-?(?:back|return)|reversefootnote|doc-backlink", re.I).search
_back_text = re.compile(r"[\W_]*(?:(?:[^\W_](?:\w?[^\W_])?|back|return|jump(?: up)?(?: to)?)[\W_]*)?", re.I).fullmatch
_word = re.compile(r"\w").search

_HOLDERS = frozenset({"li", "p", "div", "dd", "aside"})
"""Elements that a footnote can be."""


class FootnoteMarks:
    """The marks of a page that were found so far, and the elements that the footnotes are."""

    def __init__(self, root: etree._Element) -> None:
        self._root = root
        self._targets: dict[str, etree._Element] | None = None
        self._labels: set[str] = set()
        self.notes: dict[etree._Element, str] = {}
        """The label of each element that is a footnote."""

    def is_mark(self, link: etree._Element, href: str) -> bool:
        """Return True if a link within the page looks like the mark of a footnote, be that on the page or not."""
        shown = self._shown(link, href)
        return shown is not None and (len(shown) == 1 or not shown.isalpha())

    def label(self, link: etree._Element, href: str) -> str | None:
        """Return the label of the footnote that a link within the page leads to; None if it leads to none."""
        shown = self._shown(link, href)
        if shown is None:
            return None
        named = _mark_name(href) is not None
        note = self._target(href[1:])
        if note is None or self._is_inside(link, note) or not (named or note.tag != "div"):
            return None
        label = self.notes.get(note)
        if label is None:
            label = self.notes[note] = self.free_label(shown)
        return label

    def _shown(self, link: etree._Element, href: str) -> str | None:
        """Return what the mark of a footnote shows, without its brackets; None for another link."""
        text = inner_text(link).strip()
        shown = _mark_text(text) if len(text) < 12 else None
        return shown[1] if shown and (_mark_name(href) is not None or self._is_marked(link)) else None

    def free_label(self, wanted: str) -> str:
        """Return a label that no footnote has: the one that is wanted, if it can be."""
        label = wanted if wanted.isalnum() else ""
        if not label or label in self._labels:
            label = str(len(self._labels) + 1)
            while label in self._labels:
                label += "a"
        self._labels.add(label)
        return label

    @staticmethod
    def leads_back(link: etree._Element, href: str | None) -> bool:
        """Return True if an element in a footnote is a link back to its mark, or holds nothing but such links."""
        if link.tag != "a":
            return "mw-cite-backlink" in link.get("class", "")
        if not href or href[0] != "#":
            return False
        text = inner_text(link)
        if not _word(text):
            return True
        names = link.get("class", "") + " " + link.get("role", "")
        return _back_text(text) is not None and (_back_class(names) is not None or "ref" in href.lower())

    def _is_marked(self, link: etree._Element) -> bool:
        parent = link.getparent()
        if parent is not None and parent.tag == "sup":
            return True
        return _mark_class(f"{link.get('class', '')} {link.get('role', '')} {link.get('rel', '')}") is not None

    def _target(self, name: str) -> etree._Element | None:
        if self._targets is None:
            self._targets = {}
            for element in self._root.iter(*_HOLDERS, "a", "span", "cite", "sup"):
                key = element.get("id") or element.get("name")
                if key:
                    self._targets.setdefault(key, element)
        target = self._targets.get(name)
        for _ in range(4):
            if target is None or target.tag in _HOLDERS:
                return target
            target = target.getparent()
        return None

    @staticmethod
    def _is_inside(link: etree._Element, note: etree._Element) -> bool:
        node: etree._Element | None = link
        for _ in range(8):
            if node is None:
                break
            if node is note:
                return True
            node = node.getparent()
        return False
