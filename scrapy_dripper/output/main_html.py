"""Build Main-HTML: the main blocks and their ancestors as a new tree, in linear time.

Main-HTML has no styles, so what only styles say (bold, italics, titles, numerals) gets the tags and attributes that
mean the same.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import cast

import numpy as np
import numpy.typing as npt
from lxml import etree

from scrapy_dripper.characters import without_controls
from scrapy_dripper.output.urls import resolver, script_url, unsafe_source_set, unsafe_url
from scrapy_dripper.page.page import Flag, Page, Styles, Tree, block_behind, by_owner, is_gap
from scrapy_dripper.page.tags import KINDS, LOOSE, MEDIA, PLAYERS, SILENT, TAGS, UNSEEN, Kind, tag_mask
from scrapy_dripper.page.vocabulary import BESIDE, either
from scrapy_dripper.structures.code import has_code_class
from scrapy_dripper.structures.hidden import hidden_nodes
from scrapy_dripper.structures.images import player

_bold = re.compile(r"font-weight\s*:\s*(?:bold|[6-9]00)\b", re.I).search
_regular = re.compile(r"font-weight\s*:\s*(?:normal|[1-4]00)\b", re.I).search
_italic = re.compile(r"font-style\s*:\s*(?:italic|oblique)\b", re.I).search
_TITLES = {"title": "h1", "MsoTitle": "h1", "subtitle": "h2", "MsoSubtitle": "h2"}
"""The classes of titles in Google Docs, beside numbered classes, and in Microsoft Word."""
_numerals = re.compile(r"list-style(?:-type)?\s*:[^;]{0,99}\b(lower|upper)-(alpha|latin|roman)\b", re.I).search
_made_up = re.compile(r"c\d{1,4}|Mso\w{1,40}").fullmatch


def tag_of(element: etree._Element, tag: str, known: Styles) -> str:
    """Return the tag that an inline element is to be written with: ``b`` or ``i`` for what its style shows so.

    A ``<b>`` of normal weight, as Google Docs copies it around a whole text, is a ``span``.
    """
    style = element.get("style") or ""
    if known:
        style += ";" + ";".join(known.get(name, "") for name in (element.get("class") or "")[:512].split())
    if not style:
        return tag
    if tag in ("b", "strong"):
        return "span" if _regular(style) else tag
    if _bold(style):
        return "b"
    return "i" if _italic(style) else tag


def heading_of(element: etree._Element) -> str | None:
    """Return ``h1`` or ``h2`` for a paragraph that a word processor has marked as the title or subtitle."""
    names = (element.get("class") or "")[:512].split()
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
_custom = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+").fullmatch
_ends_script = re.compile(r"<(?=!--|/?script)", re.I).sub
# libxml2 before 2.14 copies the content of these marks into an attribute without escaping (CVE-2018-8048).
_raw_in_attribute = re.compile(r"<(?=!--)|&(?=\{)").sub
_WHOLE = frozenset({"math", "mjx-container", "pre"})
_is_cell = tag_mask("td", "th")
_is_column = tag_mask("colgroup", "col")
_is_term = tag_mask("dt", "dd")
_row, _col, _term = TAGS["tr"], TAGS["col"], TAGS["dt"]
_input, _list_item = TAGS["input"], TAGS["li"]
_media = frozenset(TAGS[tag] for tag in MEDIA)
_players = PLAYERS | {"iframe", "mjx-container"}
_beside = re.compile(rf"(?:^|[\s_-])(?:{either(BESIDE)})(?=[\s_-]|$)").search

_STYLED = frozenset({"span", "font", "b", "strong"})
_NONE: Styles = {}

_CAPTIONS = 2
"""Maximum number of blocks beside an image, such as captions, if it is to belong to the text around it."""
_LONGEST_CAPTION = 600
_FIRST_BLOCKS, _BYLINES, _SMALLEST = 3, 3, 120
"""Most main blocks above a lead picture, most blocks between it and these, and its least width and height in pixels."""
_CONTROLS, _LINKED_SHARE = 5, 0.8
"""Most links and buttons that may be between them as well, above a picture that is in no link, list or table."""
_PART_OF_OTHER = Flag.LINK | Flag.LIST | Flag.TABLE
_parts = re.compile(r"[/.?&=]+").sub


def to_html(tree: etree._Element) -> str:
    """Return a tree as HTML."""
    return etree.tostring(tree, method="html", encoding="unicode")


def main_tree(
    page: Page,
    main: npt.NDArray[np.bool_],
    hidden: npt.NDArray[np.bool_] | None = None,
    made: dict[int, etree._Element] | None = None,
) -> etree._Element:
    """Return the Main-HTML of a page: the main blocks and all their ancestors from ``<html>`` down, as a new tree.

    * Images, rules and other parts that are not blocks are kept if the blocks on both sides are. Images and players at
      the edge of the main content are also kept if they are closer to it than to other content.
    * A row that keeps a cell, or has a cell that spans others, keeps all its cells, so that columns do not shift. The
      other cells are empty. A definition keeps its term, possibly empty, so that it is not taken for another term's.
    * ``<noscript>`` becomes ``<div>``, because browsers do not show it. Tags that are neither HTML, MathML nor custom
      elements become ``<span>``.
    * Scripts and frames are removed, except formulas in ``<script type="math/...">``, which browsers do not run, and
      players, whose URL is moved to ``data-src``.
    * Relative URLs stay relative. Hidden text (:mod:`~scrapy_dripper.structures.hidden`) is left out: that of the nodes
      of ``hidden``, of shape (m,) for m nodes, or all that is found without it.

    ``made`` is filled with the elements of the new tree, by the numbers of their nodes on the page.
    """
    tree = page.tree
    kept_of = _kept_owners(main)
    text, tail, own = kept_of[tree.text_owner], kept_of[tree.tail_owner], kept_of[tree.self_owner]
    hidden = hidden_nodes(tree) if hidden is None else hidden
    own[list(_at_edges(page, main, np.flatnonzero(is_gap(tree.self_owner) & ~own).tolist()))] = True
    if hidden.any():
        text &= ~hidden
        tail &= ~hidden[np.maximum(tree.parent, 0)]
        own &= ~hidden
    dropped = list(_dropped(tree, np.flatnonzero(own & (tree.tag == 0)).tolist()))
    own[dropped] = False
    nodes = _kept_nodes(tree, main, text, tail, own)
    nodes[dropped] = False
    return _build(tree, nodes, text, tail, page.styles, {} if made is None else made)


def _dropped(tree: Tree, silent: list[int]) -> Iterator[int]:
    """Yield those of some nodes that are frames without players, or scripts inside a formula.

    Inside a formula, browsers parse the content of a script as markup (HTML standard, 13.2.6.5).
    """
    in_formula = np.zeros(len(tree.tag), dtype=np.bool_)
    for i in np.flatnonzero(tree.tag == TAGS["math"]).tolist():
        if not in_formula[i]:
            in_formula[i : tree.end[i]] = True
    for i in silent:
        tag = tree.nodes[i].tag
        if (tag == "script" and in_formula[i]) or (tag == "iframe" and player(tree.nodes[i], str) is None):
            yield i


def _kept_owners(main: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return for each owner whether it is kept, to be indexed with the owner columns."""
    n = len(main)
    gaps = np.zeros(n + 1, dtype=np.bool_)
    gaps[1:n] = main[:-1] & main[1:]
    gaps[0] = gaps[n] = main.all()
    return by_owner(main, gaps, nobody=False)


def _at_edges(page: Page, main: npt.NDArray[np.bool_], left: list[int]) -> Iterator[int]:
    """Yield those of the nodes in gaps that belong to main content on one side, such as the first image of an article.

    The smallest element with blocks around a node decides. All its blocks must be main; or it must hold the main block
    beside the node but not the block on the other side. Or it is between main blocks and only has one or two short
    blocks without links, such as a caption that is not main. Or it is in a figure that ends a text, with such a
    caption. Or it is a picture near the beginning, and only a few short blocks, such as a byline and a caption, part it
    from the headline and the text. Nodes with a class or id of icons, advertisements and the like are skipped.
    """
    tree, blocks = page.tree, page.blocks
    total: list[int] = np.concatenate([[0], np.cumsum(main)]).tolist()  # how many blocks before each one are main
    start, end, parent, owner = (
        column.tolist() for column in (tree.block_start, tree.block_end, tree.parent, tree.self_owner)
    )
    n = len(main)
    holders: dict[int, int] = {}  # element without blocks to the smallest element with blocks around it, or -1
    for i in left:
        if not (tree.tag[i] in _media or tree.nodes[i].tag in _players):
            continue
        gap = block_behind(owner[i])
        controls = 0 if tree.flags[i] & _PART_OF_OTHER else _CONTROLS
        beside, leads = bool(main[max(gap - 1, 0) : gap + 1].any()), _leads(page, main, total, gap, controls)
        if not (beside or leads):
            continue
        way = []
        at = i
        while at not in holders and start[at] == end[at] and not _is_beside(tree.names[at]):
            way.append(at)
            at = parent[at]
        around = holders.get(at, at if start[at] < end[at] else -1)
        holders |= dict.fromkeys(way, around)
        if around < 0:
            continue
        a, b = start[around], end[around]
        before, behind = a <= gap - 1 < b, a <= gap < b
        if leads and not _is_beside(tree.names[around]) and _is_picture(tree.nodes[i]):
            yield i
        elif not beside:
            continue
        elif total[b] - total[a] == b - a or (
            0 < gap < n and before != behind and bool(main[gap - 1 if before else gap])
        ):
            yield i
        elif b - a <= _CAPTIONS and a > 0 and b < n and main[a - 1] and main[b] and total[b] == total[a]:
            short = all(len(text) <= _LONGEST_CAPTION for text in blocks.text[a:b])
            if short and not blocks.links[a:b].any() and not _is_beside(tree.names[around]):
                yield i
        elif _ends_text(tree, around, main) and all(len(text) <= _LONGEST_CAPTION for text in blocks.text[a:b]):
            yield i


def _ends_text(tree: Tree, around: int, main: npt.NDArray[np.bool_]) -> bool:
    """Return True for a figure with a caption that is not main, right behind main text in the same element."""
    a, up = int(tree.block_start[around]), int(tree.parent[around])
    is_figure = tree.nodes[around].tag == "figure" and int(tree.block_end[around]) - a <= _CAPTIONS
    return is_figure and up >= 0 and int(tree.block_start[up]) < a and bool(main[a - 1])


def _leads(page: Page, main: npt.NDArray[np.bool_], total: list[int], gap: int, controls: int) -> bool:
    """Return True for a gap near the beginning of the main content, with main blocks a few short blocks away."""
    if not 0 < total[min(gap, len(main))] <= _FIRST_BLOCKS:
        return False
    first = next((k for k in range(gap - 1, max(-1, gap - 2 - _BYLINES - controls), -1) if main[k]), -1)
    last = next((k for k in range(gap, min(len(main), gap + 1 + _CAPTIONS)) if main[k]), -1)
    if first < 0 or last < 0 or page.blocks.links[gap:last].any():
        return False
    lines = sum(not _is_control(page, k) for k in range(first + 1, gap)) if controls else gap - 1 - first
    return lines <= _BYLINES and all(len(text) <= _LONGEST_CAPTION for text in page.blocks.text[first + 1 : last])


def _is_control(page: Page, block: int) -> bool:
    """Return True for a block that is a button, or nothing but links."""
    blocks = page.blocks
    is_button = bool(page.tree.flags[blocks.context[block]] & Flag.BUTTON)
    return is_button or bool(blocks.link_chars[block] >= _LINKED_SHARE * len(blocks.text[block]))


def _is_picture(element: etree._Element) -> bool:
    """Return True for an image that is large enough for a picture, judging by its attributes."""
    if element.tag != "img" or _beside(" " + _parts(" ", (element.get("src") or "")[:512].lower())):
        return False
    sizes = [
        int(value) for name in ("width", "height") if (value := element.get(name, "")).isdecimal() and len(value) < 6
    ]
    return min(sizes, default=_SMALLEST) >= _SMALLEST


def _is_beside(names: str) -> bool:
    return _beside(names[:512].lower()) is not None


def _kept_nodes(
    tree: Tree,
    main: npt.NDArray[np.bool_],
    text: npt.NDArray[np.bool_],
    tail: npt.NDArray[np.bool_],
    own: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:
    """Return for each node whether it is kept: for its content, or for its place in a table, code or formula."""
    parent = np.maximum(tree.parent, 0)
    count = (text | own).astype(np.int64)
    np.add.at(count, parent, tail)
    total = np.concatenate([[0], np.cumsum(count)])
    nodes: npt.NDArray[np.bool_] = total[tree.end] > total[:-1]
    nodes[0] = True
    _keep_whole(tree, nodes, main)
    is_cell = _is_cell[tree.tag] & (tree.tag[parent] == _row)
    for i in np.flatnonzero(is_cell & ~nodes[parent] & nodes[parent[parent]]).tolist():
        if tree.nodes[i].get("rowspan", "1") != "1":
            nodes[parent[i]] = True
    cells = is_cell & nodes[parent]
    columns = _is_column[tree.tag] & nodes[parent]
    columns |= (tree.tag == _col) & columns[parent]
    terms = np.zeros_like(nodes)
    terms[list(_terms(tree, nodes))] = True
    nodes[list(_boxes(tree, nodes))] = True
    placed: npt.NDArray[np.bool_] = nodes | cells | columns | terms
    return placed


def _boxes(tree: Tree, nodes: npt.NDArray[np.bool_]) -> Iterator[int]:
    """Yield the checkboxes of tasks in kept lists, and the nodes between a checkbox and its list entry."""
    for i in np.flatnonzero(tree.tag == _input).tolist():
        box = tree.nodes[i]
        if (box.get("type") or "").lower() != "checkbox" or box.get("name") or box.get("value"):
            continue
        way = [i]
        while len(way) < 4 and tree.tag[tree.parent[way[-1]]] != _list_item:
            way.append(int(tree.parent[way[-1]]))
        if nodes[tree.parent[way[-1]]] and tree.tag[tree.parent[way[-1]]] == _list_item:
            yield from way


def _terms(tree: Tree, nodes: npt.NDArray[np.bool_]) -> Iterator[int]:
    """Yield the terms of kept definitions."""
    last: dict[int, int] = {}  # parent to the last term in it
    for i in np.flatnonzero(_is_term[tree.tag]).tolist():
        parent = int(tree.parent[i])
        if tree.tag[i] == _term:
            last[parent] = i
        elif nodes[i] and parent in last:
            yield last[parent]


def _keep_whole(tree: Tree, nodes: npt.NDArray[np.bool_], main: npt.NDArray[np.bool_]) -> None:
    """Keep all nodes of kept code and formulas, because empty nodes there are blank lines, spaces or marks."""
    unseen = np.zeros(len(nodes), dtype=np.bool_)  # scripts, styles and fields, which trees of the profile v1.0 keep
    for i in np.flatnonzero((tree.tag == 0) & ~nodes).tolist():
        node = tree.nodes[i]
        if unseen[i] or node.tag not in UNSEEN:
            continue
        if node.tag != "svg" or next(node.iterancestors("mjx-container"), None) is None:  # that MathJax drew
            unseen[i : tree.end[i]] = True
    others = np.concatenate([[0], np.cumsum(~main)])
    candidates = np.flatnonzero(nodes & (others[tree.block_start] == others[tree.block_end]))
    done = 0
    for i in candidates.tolist():
        if i >= done and (tree.nodes[i].tag in _WHOLE or (tree.names[i] and has_code_class(tree.names[i]))):
            done = int(tree.end[i])
            nodes[i:done] |= ~unseen[i:done]


def _build(
    tree: Tree,
    nodes: npt.NDArray[np.bool_],
    text: npt.NDArray[np.bool_],
    tail: npt.NDArray[np.bool_],
    known: Styles,
    made: dict[int, etree._Element],
) -> etree._Element:
    sources = tree.nodes
    last: dict[int, etree._Element] = {}  # parent to its last child so far
    pieces: dict[int, list[str]] = {-1: []}  # parent to the text after that child, or at its beginning
    # True after a dropped element that style sheets would have set apart from its neighbours.
    loose: dict[int, bool] = {}
    # All children of kept nodes are visited, because a dropped node can have a tail that is kept.
    wanted = np.flatnonzero(nodes | nodes[np.maximum(tree.parent, 0)])
    columns = (wanted, tree.parent[wanted], nodes[wanted], text[wanted], tail[wanted])
    for i, up, is_kept, text_kept, tail_kept in zip(*(column.tolist() for column in columns), strict=True):
        source = sources[i]
        tag = source.tag
        after = source.tail if up >= 0 else None
        if up in loose:
            dropped = loose.pop(up) or not is_kept
            if dropped and KINDS.get(tag, Kind.INLINE) is Kind.INLINE and not tree.flags[i] & Flag.CODE:
                pieces[up].append(" ")
        if not after and tag in LOOSE and (up in last or pieces.get(up)):
            loose[up] = not is_kept
        if is_kept:
            if pieces[up]:
                _write(made[up], last.get(up), pieces[up])
            made[i] = last[up] = _element(source, made.get(up), known)
            pieces[up] = [after] if after and (tail_kept or after.isspace()) else []
            inner = source.text
            pieces[i] = [inner] if inner and (text_kept or inner.isspace() or tag == "script") else []
        elif after and tail_kept:
            if up in last or any(not piece.isspace() for piece in pieces[up]):
                _keep_apart(source, made[up], up, last, pieces, bool(tree.block_end[i] > tree.block_start[i]))
            pieces[up].append(after)
        elif after and after.isspace() and not (pieces[up] and pieces[up][-1][-1].isspace()):
            pieces[up].append(" ")  # a single space replaces the white space between dropped nodes
    for i, left in pieces.items():
        if left:
            _write(made[i], last.get(i), left)
    return made[0]


def _keep_apart(
    source: etree._Element,
    parent: etree._Element,
    up: int,
    last: dict[int, etree._Element],
    pieces: dict[int, list[str]],
    held_blocks: bool,
) -> None:
    """Keep two texts apart that a dropped element separated: by a space or, for a block, an empty copy of it."""
    if KINDS.get(source.tag) is Kind.BLOCK:
        if pieces[up]:
            _write(parent, last.get(up), pieces[up])
        last[up] = _element(source, parent)
        pieces[up] = []
    elif held_blocks:
        pieces[up].append(" ")


def _write(parent: etree._Element, before: etree._Element | None, pieces: list[str]) -> None:
    """Add text after a child of the parent, or at its beginning."""
    text = without_controls("".join(pieces))
    if before is None and parent.tag == "script":
        text = _ends_script("< ", text)  # it must not affect the end of the element either
    if before is None:
        parent.text = text
    else:
        before.tail = text


def _element(source: etree._Element, parent: etree._Element | None, known: Styles = _NONE) -> etree._Element:
    tag = WRITTEN.get(source.tag)
    if tag is None:
        tag = str(source.tag)
        tag = tag if tag in MATHML or tag in SILENT or _custom(tag) else "span"
    attributes: dict[str, str] = {}
    if tag in _STYLED:
        tag = tag_of(source, tag, known)
    elif tag == "p" and source.get("class"):
        tag = heading_of(source) or tag
    elif tag == "ol" and (numerals := numerals_of(source)):
        attributes["type"] = numerals
    for name, value in cast("list[tuple[str, str]]", source.items()):
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
        for name, value in cast("list[tuple[str, str]]", element.items()):
            if name in _ATTRIBUTES and value[:1] != "#":
                element.set(name, resolve(value))
            elif name == "srcset":
                element.set(name, _candidates(resolved, value))
