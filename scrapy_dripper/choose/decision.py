"""Decide on the tree of a page which of its blocks are main, given their probabilities.

A model answers block by block. People see an article, a thread, a list or a table as one thing: 93 of 100 groups of
like siblings are wholly main or wholly not. So the decision takes the labels with the least energy:

    - sum over the main blocks of (words + 0.3) * (p - cut) * 100 / expected
    + sum over the units that are main in part of price * sqrt(children) * decay ** depth

The cut is that of the largest expected F1, for which the blocks with p > cut are the best labels without prices, but
at most that of the rule: a page of which the model is sure has a high one, which would leave out single lines.
Blocks in structures that authors write have at most half of that cut (:data:`SOFT_CUT`).
``expected`` is the expected number of main words. Units are the elements with several blocks and, between an element
and its children, each group of two and more of them with the same tag and class, but for cells of tables, and rows
with several blocks in a cell, which lay out a page. Only groups, elements whose children are all alike, and structures
of a text (:data:`IS_WHOLE`) have a price. The energy of a unit depends on the labels of its own blocks alone, so the
best labels are found from the leaves up, in linear time: a unit is main as a whole, not at all, or in part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Bools
from scrapy_dripper.page.tags import tag_mask

Floats = npt.NDArray[np.float32]

LEAST_WORDS = 0.3
"""Added to the words of each block, so that blocks without words count as well."""
SOFT_CUT = 0.25
"""Maximum cut for blocks in structures that authors write, such as code; at most half of that of other blocks. They are
rarely boilerplate, and models know them less well than prose."""
IS_WHOLE = tag_mask("pre", "dl", "blockquote", "details", "figure")
"""The tags of structures that readers see as one thing, although their parts differ. Tables are also used for layout:
only those of data are added, by the caller."""

RECALL_WEIGHTS: Mapping[str, float] = {
    "article": 0.4,
    "collection": 0.5,
    "documentation": 1.0,
    "forum": 0.45,
    "listing": 0.75,
    "product": 0.64,
    "service": 1.0,
}
"""The recall weight for :func:`best_cut` by page type. Content around an article is rarely part of it; content around
the text of a service page often is."""


Column = npt.NDArray[np.integer[Any]]


class TreeColumns(Protocol):
    """The columns of a page's tree (:class:`~scrapy_dripper.page.page.Tree`) that matter here."""

    @property
    def parent(self) -> Column: ...
    @property
    def tag(self) -> Column: ...
    @property
    def tag_class(self) -> Column: ...
    @property
    def block_start(self) -> Column: ...
    @property
    def block_end(self) -> Column: ...


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """The parameters for choosing labels. They are tuned on held-out folds and stored in the model's manifest, under
    ``decoding``."""

    recall_weights: Mapping[str, float] = field(default_factory=lambda: dict(RECALL_WEIGHTS))
    """The weight of the expected main words in the denominator of the expected F1, by page type. A higher weight keeps
    more blocks."""
    favor_precision: float = 0.4
    """Factor for the recall weights, and divisor of the maximum cut, with ``DRIPPER_FAVOR = "precision"``."""
    favor_recall: float = 2.5
    """The same with ``DRIPPER_FAVOR = "recall"``."""
    min_words: float = 10.0
    """If fewer words than this are expected to be main, no block is."""
    most_cut: float = 0.6
    """Maximum cut. That of a page of which the model is sure is higher, and would leave out single lines of a text."""
    price: float = 0.75
    """Price of a unit of which only a part is main, in percent of the page's expected main words."""
    decay: float = 0.9
    """Factor of the price for each level of the tree."""

    def favored(self, favor: str) -> float:
        """Return the factor of a value of ``DRIPPER_FAVOR``."""
        return {"precision": self.favor_precision, "recall": self.favor_recall}.get(favor, 1.0)

    def recall_of(self, types: Mapping[str, float], favor: str = "balanced") -> float:
        """Return the recall weight of a page: 1 if its type is unknown.

        ``types`` are the probabilities of the page types. ``favor`` is a value of ``DRIPPER_FAVOR``.
        """
        weights = np.array([self.recall_weights.get(name, 1.0) for name in types])
        return self.favored(favor) * (float(np.array([*types.values()]) @ weights) if types else 1.0)


BALANCED = DecisionRule()
"""The rule for engines that bring none."""


def best_cut(p: Floats, size: Floats, recall_weight: float, min_words: float) -> tuple[float, float] | None:
    """Return the cut of the largest expected word F1, and the expected number of main words; None if these are too few.

    ``p`` and ``size``, in words, have shape (n,). The blocks are ranked by probability. The expected F1 of the first
    blocks is ``2 S(p w) / (S(w) + recall_weight * T)``, where the sums S are over these blocks and T is the sum of
    ``p w`` over the page. The optimal decision under F1 takes the first blocks of this rank (Nan et al. 2012), which
    are those above half of the largest value (Dinkelbach 1967). The weight is the square of beta in the F-beta measure:
    below 1 it favors precision, above 1 recall.
    """
    chance, weight = p.astype(np.float64), size.astype(np.float64)
    expected = float(np.dot(chance, weight))
    if expected < min_words:
        return None
    order = np.argsort(-chance, kind="stable")
    gained, taken = np.cumsum((chance * weight)[order]), np.cumsum(weight[order])
    return float((gained / (taken + recall_weight * expected)).max()), expected


def decide(
    tree: TreeColumns,
    p: Floats,
    size: Floats,
    rule: DecisionRule,
    types: Mapping[str, float],
    favor: str = "balanced",
    *,
    soft: Bools | None = None,
    whole: Sequence[int] = (),
) -> Bools:
    """Return the labels with the least energy for the n blocks of a page.

    ``p`` and ``size``, in words, have shape (n,), and so has ``soft``: which blocks are in structures that authors
    write. ``types`` are the probabilities of the page types, and ``favor`` is a value of ``DRIPPER_FAVOR``. ``whole``
    are further nodes that readers see as one thing.
    """
    found = best_cut(p, size, rule.recall_of(types, favor), rule.min_words)
    if found is None:
        return np.zeros(len(p), dtype=np.bool_)
    cut, expected = min(found[0], rule.most_cut / rule.favored(favor)), found[1]
    cuts = cut if soft is None else np.where(soft, min(SOFT_CUT, cut / 2), cut)
    gain = (size.astype(np.float64) + LEAST_WORDS) * (p.astype(np.float64) - cuts) * 100 / expected
    return _labels(_page(tree, gain.tolist(), rule, whole), np.zeros(len(p), dtype=np.bool_))


class _Unit(NamedTuple):
    """A block, an element with several blocks, or a group of its children that are alike."""

    whole: float
    """Minus the energy if all of it is main."""
    best: float
    """The same with the best labels, which are those of its parts if this is more than all or nothing."""
    parts: Sequence[_Unit] = ()
    block: int = -1


def _page(tree: TreeColumns, gain: list[float], rule: DecisionRule, whole: Sequence[int]) -> _Unit:
    """Return the unit of a page. ``gain`` is minus the energy of each of its blocks if it is main."""
    n, start, end = len(gain), tree.block_start, tree.block_end
    up = np.maximum(tree.parent, 0)
    outermost = (start[up] != start) | (end[up] != end)  # of the elements around the same blocks
    outermost[0] = True
    # A cell of a table, a row that lays out others, and a block without an element of its own, is like no other.
    own = _is_cell[tree.tag]
    own[tree.parent[own & (end - start > 1)]] = True
    shape = np.where(own, -n - 1 - np.arange(len(tree.tag)), tree.tag_class).tolist()
    is_whole = IS_WHOLE[tree.tag]
    is_whole[list(whole)] = True
    shapes, around = np.arange(-n, 0), np.full(n, -1)
    alone = np.flatnonzero(outermost & (end - start == 1))
    shapes[start[alone]] = np.array(shape)[alone]
    elements = np.flatnonzero(outermost & (end - start > 1)).tolist()
    holder, depth = {}, {-1: -1}
    for node in elements:
        holder[node] = outer = int(around[start[node]])
        depth[node] = depth[outer] + 1
        around[start[node] : end[node]] = node
    # The children of each element that are alike.
    inside = defaultdict[int, defaultdict[int, list[_Unit]]](lambda: defaultdict(list))
    for block, (node, kind) in enumerate(zip(around.tolist(), shapes.tolist(), strict=True)):
        inside[node][kind].append(_Unit(gain[block], max(0.0, gain[block]), block=block))

    def unit(parts: Sequence[_Unit], depth: int, *, is_priced: bool) -> _Unit:
        all_of_it, mixed = sum([one.whole for one in parts]), sum([one.best for one in parts])
        price = rule.price * len(parts) ** 0.5 * rule.decay**depth if is_priced else 0
        return _Unit(all_of_it, max(0.0, all_of_it, mixed - price), parts)

    for node in reversed(elements):  # inner ones first
        groups, at = [*inside.pop(node).values()], depth[node]
        is_group = len(groups) == 1 and len(groups[0]) > 1
        if not is_group:
            groups = [some if len(some) == 1 else [unit(some, at + 1, is_priced=True)] for some in groups]
        made = unit([*chain.from_iterable(groups)], at, is_priced=is_group or bool(is_whole[node]))
        inside[holder[node]][shape[node]].append(made)
    ((page,),) = inside[-1].values()
    return page


def _labels(page: _Unit, main: Bools) -> Bools:
    """Return the best labels of the blocks, given room for them."""
    todo = [(page, False)]
    while todo:
        unit, is_main = todo.pop()
        is_main |= unit.whole > 0 and unit.whole >= unit.best
        if unit.block >= 0:
            main[unit.block] = is_main
        elif is_main or unit.best > 0:
            todo += [(part, is_main) for part in unit.parts]
    return main


_is_cell = tag_mask("td", "th")
