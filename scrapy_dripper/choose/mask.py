"""Turn labels of blocks into a mask of nodes: which elements, images and texts of a page are written.

An image or a player at the edge of the main content, between a main block and one that is not, belongs to one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from lxml import etree

from scrapy_dripper.page.page import Bools, Flag, Mask, Page, Tree, block_behind, by_owner, is_gap
from scrapy_dripper.page.tags import LONGEST_CLASS, MEDIA, PLAYERS, TAGS, UNSEEN, tag_mask
from scrapy_dripper.page.vocabulary import BESIDE, either
from scrapy_dripper.structures import NEARLY_ALL
from scrapy_dripper.structures.code import has_code_class
from scrapy_dripper.structures.hidden import hidden_nodes
from scrapy_dripper.structures.images import player

_WHOLE = frozenset({"math", "mjx-container", "pre"})
_is_cell = tag_mask("td", "th")
_is_column = tag_mask("colgroup", "col")
_is_term = tag_mask("dt", "dd")
_row, _col, _term = TAGS["tr"], TAGS["col"], TAGS["dt"]
_input, _list_item = TAGS["input"], TAGS["li"]


def mask_of(page: Page, main: Bools, hidden: Bools | None = None) -> Mask:
    """Return what is written of a page: the main blocks, and all their ancestors.

    * Images, rules and other parts that are not blocks are kept if the blocks on both sides are. Images and players at
      the edge of the main content are also kept if they are closer to it than to other content.
    * A row that keeps a cell, or has a cell that spans others, keeps all its cells, so that columns do not shift. The
      other cells are empty. A definition keeps its term, possibly empty, so that it is not taken for another term's.
    * Scripts and frames are left out, except formulas in ``<script type="math/...">`` and players.
    * Hidden text (:mod:`~scrapy_dripper.structures.hidden`) is left out: that of the nodes of ``hidden``, of shape (m,)
      for m nodes, or all that is found without it.
    """
    tree = page.tree
    n = len(main)
    gaps = np.zeros(n + 1, dtype=np.bool_)
    gaps[1:n] = main[:-1] & main[1:]
    gaps[0] = gaps[n] = main.all()
    kept_of = by_owner(main, gaps, nobody=False)
    text, tail, own = kept_of[tree.text_owner], kept_of[tree.tail_owner], kept_of[tree.self_owner]
    hidden = hidden_nodes(tree) if hidden is None else hidden
    own[pictures(page, main, np.flatnonzero(is_gap(tree.self_owner) & ~own).tolist())] = True
    in_dialog = tree.flags & Flag.DIALOG != 0
    if not in_dialog[page.blocks.context[main]].any():
        own &= ~in_dialog  # pictures to look at after a click
    if hidden.any():
        text &= ~hidden
        tail &= ~hidden[np.maximum(tree.parent, 0)]
        own &= ~hidden
    dropped = list(_dropped(tree, np.flatnonzero(own & (tree.tag == 0)).tolist()))
    own[dropped] = False
    nodes = _kept_nodes(tree, main, text, tail, own)
    nodes[dropped] = False
    return Mask(nodes, text, tail)


def _dropped(tree: Tree, silent: list[int]) -> Iterator[int]:
    """Yield those of some nodes that are frames without players, or scripts inside a formula.

    Inside a formula, browsers parse the content of a script as markup (HTML standard, 13.2.6.5).
    """
    for i in silent:
        node = tree.nodes[i]
        in_formula = node.tag == "script" and next(node.iterancestors("math"), None) is not None
        if in_formula or (node.tag == "iframe" and player(node, str) is None):
            yield i


def _kept_nodes(tree: Tree, main: Bools, text: Bools, tail: Bools, own: Bools) -> Bools:
    """Return for each node whether it is kept: for its content, or for its place in a table, code or formula."""
    parent = np.maximum(tree.parent, 0)
    count = (text | own).astype(np.int64)
    np.add.at(count, parent, tail)
    total = np.concatenate([[0], np.cumsum(count)])
    nodes: Bools = total[tree.end] > total[:-1]
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
    placed: Bools = nodes | cells | columns | terms
    return placed


def _boxes(tree: Tree, nodes: Bools) -> Iterator[int]:
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


def _terms(tree: Tree, nodes: Bools) -> Iterator[int]:
    """Yield the terms of kept definitions."""
    last: dict[int, int] = {}  # parent to the last term in it
    for i in np.flatnonzero(_is_term[tree.tag]).tolist():
        parent = int(tree.parent[i])
        if tree.tag[i] == _term:
            last[parent] = i
        elif nodes[i] and parent in last:
            yield last[parent]


def _keep_whole(tree: Tree, nodes: Bools, main: Bools) -> None:
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


_CAPTIONS = 2
"""Maximum number of blocks beside an image, such as captions, if it is to belong to the text around it."""
_LEAD_BLOCKS, _SMALLEST = 3, 120
"""Most main blocks above a lead picture, and most blocks between; and its least width and height in pixels."""
_CONTROLS = 5
"""Most links and buttons that may be between them as well, above a picture that is in no link, list or table."""
_PART_OF_OTHER = Flag.LINK | Flag.LIST | Flag.TABLE

_media = frozenset(TAGS[tag] for tag in MEDIA)
_players = PLAYERS | {"iframe", "mjx-container"}
_beside = re.compile(rf"(?:^|[\s_-])(?:{either(BESIDE)})(?=[\s_-]|$)").search
_parts = re.compile(r"[/.?&=]+").sub


def pictures(page: Page, main: Bools, left: list[int]) -> list[int]:
    """Return those of the nodes in gaps that belong to main content on one side, such as the first image of an article.

    The smallest element with blocks around a node decides. Nodes with a class or id of icons, advertisements and the
    like are skipped.
    """
    tree = page.tree
    before: list[int] = np.concatenate([[0], np.cumsum(main)]).tolist()  # how many blocks before each one are main
    found: list[int] = []
    holders: dict[int, int] = {}  # element without blocks to the smallest element with blocks around it, or -1
    for i in left:
        if not (tree.tag[i] in _media or tree.nodes[i].tag in _players):
            continue
        gap = block_behind(int(tree.self_owner[i]))
        if not (0 < before[gap] <= _LEAD_BLOCKS or before[min(gap + 1, len(main))] > before[max(gap - 1, 0)]):
            continue  # it neither leads main text nor is beside it
        way, at = [], i
        while (is_bare := tree.block_start[at] == tree.block_end[at]) and at not in holders:
            if _is_beside(tree.names[at]):
                break
            way.append(at)
            at = int(tree.parent[at])
        around = holders.get(at, -1 if is_bare else at)
        holders |= dict.fromkeys(way, around)
        if around >= 0 and _belongs(page, main, before, i, around):
            found.append(i)
    return found


def _belongs(page: Page, main: Bools, before: list[int], node: int, around: int) -> bool:
    """Return True if a node belongs to main content, given the smallest element with blocks around it.

    It leads the text, with only a byline or a caption between them; or all text of its element is main, or the main
    text beside it and not the other text; or it is a figure with its caption, between main texts or at their end.
    """
    tree, n = page.tree, len(main)
    gap, a, b = block_behind(int(tree.self_owner[node])), int(tree.block_start[around]), int(tree.block_end[around])
    is_named = _is_beside(tree.names[around])
    leads = not is_named and 0 < before[gap] <= _LEAD_BLOCKS and _leads(page, main, node, gap)
    if leads and _is_picture(tree.nodes[node]):
        return True
    if not main[max(gap - 1, 0) : gap + 1].any():
        return False
    above, below = a <= gap - 1 < b, a <= gap < b
    kept = before[b] - before[a]
    if kept == b - a or (0 < gap < n and above != below and main[gap - 1 if above else gap]):
        return True
    if b - a > _CAPTIONS:
        return False
    if a > 0 and b < n and main[a - 1] and main[b] and not kept:
        return not (page.blocks.links[a:b].any() or is_named)
    # A figure with a caption that is not main, right behind main text in the same element.
    return tree.nodes[around].tag == "figure" and int(tree.block_start[tree.parent[around]]) < a and bool(main[a - 1])


def _leads(page: Page, main: Bools, node: int, gap: int) -> bool:
    """Return True for a node with main blocks a few blocks above and below it."""
    near = max(0, gap - 1 - _LEAD_BLOCKS - _CONTROLS)
    above, below = near + np.flatnonzero(main[near:gap]), gap + np.flatnonzero(main[gap : gap + 1 + _CAPTIONS])
    if not (len(above) and len(below)) or page.blocks.links[gap : below[0]].any():
        return False
    is_apart = not page.tree.flags[node] & _PART_OF_OTHER
    between = range(int(above[-1]) + 1, gap)
    return sum(not (is_apart and _is_control(page, block)) for block in between) <= _LEAD_BLOCKS


def _is_control(page: Page, block: int) -> bool:
    """Return True for a block that is a button, or nothing but links."""
    blocks = page.blocks
    is_button = bool(page.tree.flags[blocks.context[block]] & Flag.BUTTON)
    return is_button or bool(blocks.link_chars[block] >= NEARLY_ALL * len(blocks.text[block]))


def _is_picture(element: etree._Element) -> bool:
    """Return True for an image that is large enough for a picture, judging by its attributes."""
    if element.tag != "img" or _beside(" " + _parts(" ", (element.get("src") or "")[:LONGEST_CLASS].lower())):
        return False
    sizes = [
        int(value) for name in ("width", "height") if (value := element.get(name, "")).isdecimal() and len(value) < 6
    ]
    return min(sizes, default=_SMALLEST) >= _SMALLEST


def _is_beside(names: str) -> bool:
    return _beside(names[:LONGEST_CLASS].lower()) is not None
