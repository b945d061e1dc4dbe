"""Turn labels of blocks into a mask of nodes: which elements, images and texts of a page are written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scrapy_dripper.choose.pictures import pictures
from scrapy_dripper.page.page import Bools, Mask, Page, Tree, by_owner, is_gap
from scrapy_dripper.page.tags import TAGS, UNSEEN, tag_mask
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
    kept_of = _kept_owners(main)
    text, tail, own = kept_of[tree.text_owner], kept_of[tree.tail_owner], kept_of[tree.self_owner]
    hidden = hidden_nodes(tree) if hidden is None else hidden
    own[pictures(page, main, np.flatnonzero(is_gap(tree.self_owner) & ~own).tolist())] = True
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
    in_formula = np.zeros(len(tree.tag), dtype=np.bool_)
    for i in np.flatnonzero(tree.tag == TAGS["math"]).tolist():
        if not in_formula[i]:
            in_formula[i : tree.end[i]] = True
    for i in silent:
        tag = tree.nodes[i].tag
        if (tag == "script" and in_formula[i]) or (tag == "iframe" and player(tree.nodes[i], str) is None):
            yield i


def _kept_owners(main: Bools) -> Bools:
    """Return for each owner whether it is kept, to be indexed with the owner columns."""
    n = len(main)
    gaps = np.zeros(n + 1, dtype=np.bool_)
    gaps[1:n] = main[:-1] & main[1:]
    gaps[0] = gaps[n] = main.all()
    return by_owner(main, gaps, nobody=False)


def _kept_nodes(
    tree: Tree,
    main: Bools,
    text: Bools,
    tail: Bools,
    own: Bools,
) -> Bools:
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
