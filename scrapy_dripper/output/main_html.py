"""Build Main-HTML, which is what the mask of a choice keeps of a page, as a new tree, in linear time.

Main-HTML has no styles, so what only styles say (bold, italics, titles, numerals, lines) gets the tags and attributes
that mean the same.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from itertools import islice
from typing import cast

import numpy as np
from lxml import etree

from scrapy_dripper.characters import without_controls
from scrapy_dripper.declared.elements import LOOSE
from scrapy_dripper.output.urls import resolver, script_url, unsafe_source_set, unsafe_url
from scrapy_dripper.page.nodes import ends_line, in_sentence, inner_text
from scrapy_dripper.page.page import Flag, Mask, Page, Styles, Tree
from scrapy_dripper.page.tags import KINDS, LONGEST_CLASS, SILENT, TAGS, Kind, tag_mask
from scrapy_dripper.structures import NEAR
from scrapy_dripper.structures.code import has_code_class

_bold = re.compile(r"font-weight\s*:\s*(?:bold|[6-9]00)\b", re.I).search
_regular = re.compile(r"font-weight\s*:\s*(?:normal|[1-4]00)\b", re.I).search
_italic = re.compile(r"font-style\s*:\s*(?:italic|oblique)\b", re.I).search
_TITLES = {"title": "h1", "MsoTitle": "h1", "subtitle": "h2", "MsoSubtitle": "h2"}
"""The classes of titles in Google Docs, beside numbered classes, and in Microsoft Word."""
_LEVELS = frozenset("123456")
_numerals = re.compile(r"list-style(?:-type)?\s*:[^;]{0,99}\b(lower|upper)-(alpha|latin|roman)\b", re.I).search
_made_up = re.compile(r"c\d{1,4}|Mso\w{1,40}").fullmatch


def tag_of(element: etree._Element, tag: str, known: Styles) -> str:
    """Return the tag that an inline element is to be written with: ``b`` or ``i`` for what its style shows so.

    A ``<b>`` of normal weight, as Google Docs copies it around a whole text, is a ``span``.
    """
    style = element.get("style") or ""
    if known:
        style += ";" + ";".join(known.get(name, "") for name in (element.get("class") or "")[:LONGEST_CLASS].split())
    if not style:
        return tag
    if tag in ("b", "strong"):
        return "span" if _regular(style) else tag
    if _bold(style):
        return "b"
    return "i" if _italic(style) else tag


def heading_of(element: etree._Element) -> str | None:
    """Return the tag of a heading for an element without blocks that ARIA marks as one, by default ``h2`` (WAI-ARIA,
    5.4), and for a paragraph that a word processor has marked as the title or subtitle.
    """
    if element.get("role") == "heading":
        level = (element.get("aria-level") or "").strip()
        inside = islice(element.iterdescendants(), NEAR)
        holds_blocks = any(KINDS.get(node.tag) == Kind.BLOCK and node.tag != "button" for node in inside)
        return None if holds_blocks else f"h{level if level in _LEVELS else 2}"
    names = (element.get("class") or "")[:LONGEST_CLASS].split()
    if not any(_made_up(name) for name in names):
        return None
    return next((_TITLES[name] for name in names if name in _TITLES), None)


def numerals_of(element: etree._Element) -> str | None:
    """Return the ``type`` of an ordered list whose style names letters or Roman numerals."""
    match = _numerals(element.get("style") or "")
    if match is None:
        return None
    letter = "i" if match[2].lower() == "roman" else "a"
    return letter.upper() if match[1].lower() == "upper" else letter


ATTRIBUTES = frozenset(
    "abbr accent align alt alttext aria-controls aria-hidden aria-label aria-labelledby "
    "axis bevelled block border cellpadding cellspacing char "
    "charoff checked cite class clear close color colspan columnalign columnlines columns compact content controls "
    "coords data datetime dir disabled display eeimg encoding face fence form headers height href hreflang hspace id "
    "inline ismap itemprop itemscope itemtype kind label lang linebreak linethickness lquote mathvariant media minsize "
    "movablelimits name noshade notation nowrap open playlabel poster property rel reversed role rows rowspan rquote "
    "rules scope selection separators shape size sizes span src srclang srcset start stretchy summary title translate "
    "type usemap valign value videoid vspace width".split()
)
"""Attributes that Main-HTML keeps, besides ``data-*``. None of them can load or run anything, or set styles."""

URL_ATTRIBUTES = frozenset({"href", "src", "cite", "poster", "data"})

_harmless = ATTRIBUTES - URL_ATTRIBUTES - {"srcset", "name", "id"}

# DOM clobbering: with a name, an element can replace a property of its document (HTML standard, 3.1.6); with a name or
# id, one of its form (4.10.3). The names of anchors are harmless.
_hides_by_id = frozenset({"button", "fieldset", "img", "input", "object", "output", "select", "textarea"})

MATHML = frozenset(
    "math annotation annotation-xml maction menclose merror mfenced mfrac mglyph mi mlabeledtr mmultiscripts mn mo "
    "mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr "
    "munder munderover none semantics".split()
)
"""Tags inside a formula."""

# Elements whose content would be raw text when parsed again, or which a browser with scripts does not show.
WRITTEN = {tag: tag for tag in TAGS} | {"xmp": "pre", "listing": "pre", "plaintext": "pre", "noscript": "div"}

_name = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*", re.I).fullmatch
_blank_lines = re.compile(r"\n\s*\n").sub
_custom = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+").fullmatch
_ends_script = re.compile(r"<(?=!--|/?script)", re.I).sub
# libxml2 before 2.14 copies the content of these marks into an attribute without escaping (CVE-2018-8048).
_raw_in_attribute = re.compile(r"<(?=!--)|&(?=\{)").sub

_STYLED = frozenset({"span", "font", "b", "strong"})
_NONE: Styles = {}
_items = cast("Callable[[etree._Element], list[tuple[str, str]]]", etree._Element.items)


def to_html(tree: etree._Element) -> str:
    """Return a tree as HTML."""
    return etree.tostring(tree, method="html", encoding="unicode")


def main_tree(page: Page, mask: Mask, made: dict[int, etree._Element] | None = None) -> etree._Element:
    """Return the Main-HTML of a page: what a mask keeps of it, from ``<html>`` down, as a new tree.

    * ``<noscript>`` becomes ``<div>``, because browsers do not show it. Tags that are neither HTML, MathML nor custom
      elements become ``<span>``.
    * Scripts and frames are only formulas in ``<script type="math/...">``, which browsers do not run, and players,
      whose URL is moved to ``data-src``.
    * Relative URLs stay relative.

    ``made`` is filled with the elements of the new tree, by the numbers of their nodes on the page.
    """
    tree, known, sources, nodes = page.tree, page.styles, page.tree.nodes, mask.nodes
    made = {} if made is None else made
    kept, code = kept_lines(tree, known)
    last: dict[int, etree._Element] = {}  # parent to its last child so far
    pieces: dict[int, list[str]] = {-1: []}  # parent to the text after that child, or at its beginning
    # True after a dropped element that style sheets would have set apart from its neighbours.
    loose: dict[int, bool] = {}
    # All children of kept nodes are visited, because a dropped node can have a tail that is kept.
    wanted = np.flatnonzero(nodes | nodes[np.maximum(tree.parent, 0)])
    columns = (wanted, tree.parent[wanted], nodes[wanted], mask.text[wanted], mask.tail[wanted])
    for i, up, is_kept, text_kept, tail_kept in zip(*(column.tolist() for column in columns), strict=True):
        source = sources[i]
        tag = source.tag
        after = source.tail if up >= 0 else None
        if up in loose:
            dropped = loose.pop(up) or not is_kept
            if dropped and KINDS.get(tag, Kind.INLINE) == Kind.INLINE and not tree.flags[i] & Flag.CODE:
                pieces[up].append(" ")
        if not after and tag in LOOSE and (up in last or pieces.get(up)):
            loose[up] = not is_kept
        if is_kept:
            if pieces[up]:
                _write(made[up], last.get(up), pieces[up], bool(kept) and kept[up])
            made[i] = last[up] = _element(source, made.get(up), known, i in code)
            pieces[up] = [after] if after and (tail_kept or after.isspace()) else []
            inner = source.text
            pieces[i] = [inner] if inner and (text_kept or inner.isspace() or tag == "script") else []
        elif after and tail_kept:
            if up in last or any(not piece.isspace() for piece in pieces[up]):
                in_lines, start, end = bool(kept) and kept[up], tree.block_start[i], tree.block_end[i]
                held_blocks = bool(start < end) and not start <= tree.tail_owner[i] < end  # but it may be in one
                _keep_apart(source, made[up], up, last, pieces, in_lines, held_blocks)
            pieces[up].append(after)
        elif after and after.isspace() and not (pieces[up] and pieces[up][-1][-1].isspace()):
            pieces[up].append(" ")  # a single space replaces the white space between dropped nodes
    for i, left in pieces.items():
        if left:
            _write(made[i], last.get(i), left, bool(kept) and kept[i])
    return made[0]


def _keep_apart(
    source: etree._Element,
    parent: etree._Element,
    up: int,
    last: dict[int, etree._Element],
    pieces: dict[int, list[str]],
    in_lines: bool,
    held_blocks: bool,
) -> None:
    """Keep two texts apart that a dropped element separated: by a space or, for a block, an empty copy of it."""
    if KINDS.get(source.tag) == Kind.BLOCK:
        if pieces[up]:
            _write(parent, last.get(up), pieces[up], in_lines)
        last[up] = _element(source, parent)
        pieces[up] = []
    elif held_blocks:
        pieces[up].append(" ")


def _write(parent: etree._Element, before: etree._Element | None, pieces: list[str], in_lines: bool) -> None:
    """Add text after a child of the parent, or at its beginning. With ``in_lines``, its line breaks are shown."""
    text = without_controls("".join(pieces))
    if not in_lines and before is not None:
        before.tail = text
        return
    if before is None and parent.tag == "script":
        text = _ends_script("< ", text)  # it must not affect the end of the element either
    lines = [text]
    if in_lines and "\n" in text and not (text.isspace() and (before is None or ends_line(before.tag))):
        lines = _blank_lines("\n\n", text).split("\n")
        if before is not None and before.tag == "br" and not lines[0].strip():
            del lines[0]  # one line break, in the source and as a tag
    if before is None:
        parent.text = lines[0]
    else:
        before.tail = lines[0]
    for line in lines[1:]:
        etree.SubElement(parent, "br").tail = line


def _element(
    source: etree._Element, parent: etree._Element | None, known: Styles = _NONE, is_code: bool = False
) -> etree._Element:
    tag = WRITTEN.get(source.tag)
    if tag is None:
        tag = str(source.tag)
        tag = tag if tag in MATHML or tag in SILENT or _custom(tag) else "span"
    is_apart = tag == "dt" and getattr(source.getprevious(), "tag", "") == "dd"
    if is_apart and parent is not None and len(parent) and parent[-1].tag == "dt":
        etree.SubElement(parent, "dd")  # or the next definition would also be that of the term before
    attributes: dict[str, str] = {}
    if is_code:
        tag = "pre"
    elif tag in _STYLED:
        tag = tag_of(source, tag, known)
    elif tag in ("p", "div") and (source.get("role") or (tag == "p" and source.get("class"))):
        tag = heading_of(source) or tag
    elif tag == "ol" and (numerals := numerals_of(source)):
        attributes["type"] = numerals
    for name, value in _items(source):
        if name in _harmless or _keeps(tag, name, value):
            if name == "src" and tag in SILENT:
                name = "data-src"  # does not load anything
            if not value.isprintable() or "<" in value or "&{" in value:
                value = _raw_in_attribute(r"\g<0> ", without_controls(value))
            attributes[name] = value
    return etree.Element(tag, attributes) if parent is None else etree.SubElement(parent, tag, attributes)


def _keeps(tag: str, name: str, value: str) -> bool:
    if name[:5] == "data-":  # only scripts use their values as URLs
        return _name(name) is not None and not script_url(value)
    if name not in ATTRIBUTES:
        return False
    if name in URL_ATTRIBUTES:
        return not unsafe_url(value)
    if name == "srcset":
        return not unsafe_source_set(value)
    if name == "name":
        return tag == "a"
    return name != "id" or tag not in _hides_by_id


_ATTRIBUTES = URL_ATTRIBUTES | {"data-src"}
_candidates = re.compile(r"(?:^|(?<=,))(\s*)(\S+)").sub
"""Matches the URLs of a ``srcset`` (HTML standard, 4.8.4.2.1). A URL ends at white space, or at commas before it."""


def make_absolute(tree: etree._Element, base_url: str, growth: int = sys.maxsize) -> None:
    """Make the URLs of a tree absolute, in place. Links within the page (``#...``) stay unchanged.

    ``growth`` limits the characters that this adds in total. Once it is used up, URLs are not changed.
    """
    resolve = resolver(base_url, growth)

    def resolved(candidate: re.Match[str]) -> str:
        url = candidate[2].rstrip(",")
        return candidate[1] + resolve(url) + candidate[2][len(url) :]

    for element in tree.iter(etree.Element):
        for name, value in _items(element):
            if name in _ATTRIBUTES and value[:1] != "#":
                element.set(name, resolve(value))
            elif name == "srcset":
                element.set(name, _candidates(resolved, value))


# ---------------------------------------------------------------------- lines that only a style keeps
KEEPING = frozenset({"pre", "pre-wrap", "pre-line", "break-spaces", "preserve", "preserve-breaks"})
"""Values of ``white-space`` and ``white-space-collapse`` that show a line break of the source as one."""
_value = re.compile(r"white-space(?:-collapse)?\s{0,9}:\s{0,9}([a-z-]{1,20})", re.I).findall
_class = re.compile(
    r"(?:^|\s)(?:(?:[a-z]{1,12}-)?pre-(?:wrap|line)|(?:white-?space|ws)-(?:pre|break-spaces))(?=\s|$)"
).search
"""Finds the class of a framework for such a value, such as ``whitespace-pre-wrap`` of Tailwind CSS."""
_OF_CLASSES = ("pre-wrap", "pre-line", "space-pre", "ws-pre", "-break-spaces")
"""Parts of such classes."""
_CODE = frozenset({"code", "samp", "kbd", "tt"})
_is_preformatted = tag_mask("pre", "listing", "xmp", "plaintext")


def kept_lines(tree: Tree, known: Styles) -> tuple[list[bool], set[int]]:
    """Return for each node whether line breaks in its text are shown, and which nodes hold lines of code and no block.

    Both are empty if no style keeps lines.
    """
    decided = _decided(tree, known)
    kept: list[bool] = []
    code: set[int] = set()
    asked = 0  # the end of an element that could be code; each one is read to its end once
    for i, up in enumerate(tree.parent.tolist() if decided else ()):
        keeps = decided.get(i, i > 0 and kept[up])
        element = tree.nodes[i]
        if keeps and i >= asked and (element.tag in _CODE or has_code_class(element.get("class") or "")):
            asked = tree.end[i]
            has_lines = "\n" in inner_text(element).strip() and not any(
                ends_line(node.tag) for node in islice(element.iter(), 1, None)
            )
            if has_lines and not in_sentence(element):
                code.add(i)
            keeps = i not in code and element.tag not in _CODE
        kept.append(keeps)
    return kept, code


def _decided(tree: Tree, known: Styles) -> dict[int, bool]:
    """Return for each node whose tag, style or class decides it whether line breaks in its text are to be kept."""
    named = {name: _last(rule) for name, rule in known.items() if "white-space" in rule}
    found: dict[int, bool] = {}
    distinct = set(tree.names)
    by_class = any(map(" ".join(distinct).__contains__, _OF_CLASSES))
    if named or by_class:
        said = {names: [named[name] for name in names.split() if name in named] for names in distinct}
        told = {names: not rules or rules[-1] for names, rules in said.items() if rules or (by_class and _class(names))}
        found = {i: told[names] for i, names in enumerate(tree.names) if names in told}
    for i in tree.may_hide:
        style = tree.nodes[i].get("style") or ""
        if "white-space" in style:
            found[i] = _last(style)
    if not any(found.values()):
        return {}
    # What is preformatted has its own lines.
    outside = {i: kept for i, kept in found.items() if not tree.flags[i] & Flag.PREFORMATTED}
    return outside | dict.fromkeys(np.flatnonzero(_is_preformatted[tree.tag]).tolist(), False)


def _last(declarations: str) -> bool:
    values = _value(declarations)
    return bool(values) and values[-1].lower() in KEEPING
