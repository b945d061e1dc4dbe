"""Decide on the tree of a page which of its blocks are main, given their probabilities.

A model answers block by block. People see an article, a thread, a list or a table as one thing: 93 of 100 groups of
like siblings are wholly main or wholly not. So each unit of a page is main as a whole, not at all, or in part, as its
parts are by themselves. It takes what has the least energy:

    - sum over the main blocks of (words + 0.3) * (p - cut) * 100 / expected
    + price * sqrt(parts) * decay ** depth, if it is in part

The cut is that of the largest expected F1, for which the blocks with p > cut are the best labels without prices, but
at most that of the rule: a page of which the model is sure has a high one, which would leave out single lines.
Blocks in structures that authors write have at most half of that cut (:data:`SOFT_CUT`).
``expected`` is the expected number of main words. Units are the elements with several blocks and, between an element
and its children, each group of two and more of them with the same tag and class, but for cells of tables, and rows
with several blocks in a cell, which lay out a page. Only groups and structures of a text (:data:`IS_WHOLE`) have a
price. Each post of a thread may have a text and buttons: if nearly all parts of a group there are in part themselves,
only the others count. The labels are found from the leaves up, in linear time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Bools
from scrapy_dripper.page.tags import tag_mask
from scrapy_dripper.structures import NEARLY_ALL

Floats = npt.NDArray[np.float32]

LEAST_WORDS = 0.3
"""Added to the words of each block, so that blocks without words count as well."""
SOFT_CUT = 0.25
"""Maximum cut for blocks in structures that authors write, such as code; at most half of that of other blocks. They are
rarely boilerplate, and models know them less well than prose."""
IS_WHOLE = tag_mask("pre", "dl", "blockquote", "details", "figure")
"""The tags of structures that readers see as one thing, although their parts differ. Tables are also used for layout:
only those of data are added, by the caller."""

MAYBE_FORUM = 0.25
"""Minimum probability of a page to be a forum for its groups to be those of a thread."""

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
    """Return the labels with which each unit of the n blocks of a page has the least energy.

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
    return _Units(tree, gain.tolist(), rule, whole, is_thread=types.get("forum", 0) >= MAYBE_FORUM).labels()


class _Units:
    """The units of a page of n blocks, which are the first n units. Parts come before their wholes."""

    def __init__(
        self, tree: TreeColumns, gain: list[float], rule: DecisionRule, whole: Sequence[int], *, is_thread: bool
    ) -> None:
        """``gain`` is minus the energy of each block if it is main."""
        self._rule, self._n, self._is_thread = rule, len(gain), is_thread
        self._total = list(gain)
        """Minus the energy of each unit if all of it is main."""
        self._best = [max(0.0, one) for one in gain]
        """The same with the best labels."""
        self._parts: list[Sequence[int]] = [()] * len(gain)
        self._in_part = [False] * len(gain)
        """Whether the best labels of a unit are those of its parts, instead of all or nothing."""
        n = self._n
        start, end = tree.block_start, tree.block_end
        up = np.maximum(tree.parent, 0)
        outermost = (start[up] != start) | (end[up] != end)  # of the elements around the same blocks
        outermost[0] = True
        alone = np.flatnonzero(outermost & (end - start == 1))
        # A cell of a table, a row that lays out others, and a block without an element of its own, is like no other.
        own = _is_cell[tree.tag]
        own[tree.parent[own & (end - start > 1)]] = True
        kinds = np.where(own, -n - 1 - np.arange(len(tree.tag)), tree.tag_class)
        shapes = np.arange(-n, 0)
        shapes[start[alone]] = kinds[alone]
        shape = shapes.tolist()
        nodes = np.flatnonzero(outermost & (end - start > 1))
        is_whole = IS_WHOLE[tree.tag]
        is_whole[list(whole)] = True
        columns = (start[nodes], end[nodes], kinds[nodes], is_whole[nodes])
        elements = [*zip(*(column.tolist() for column in columns), strict=True), (n, n + 1, 0, False)]
        inside: list[tuple[int, int, bool, dict[int, list[int]]]] = []  # the elements around the next block
        at = 0
        for first, last, own, is_whole in elements:
            while inside and inside[-1][0] <= first:
                stop, of_shape, priced, alike = inside.pop()
                for block in range(at, stop):
                    alike.setdefault(shape[block], []).append(block)
                at = stop
                unit = self._element(alike, priced, len(inside))
                if inside:
                    inside[-1][3].setdefault(of_shape, []).append(unit)
            for block in range(at, first if inside else at):
                inside[-1][3].setdefault(shape[block], []).append(block)
            at = first
            inside.append((last, own, is_whole, {}))

    def _element(self, alike: Mapping[int, list[int]], is_whole: bool, depth: int) -> int:
        """Add the unit of an element, and those of the groups of its children that are alike."""
        groups = ([self._unit(some, depth + 1)] if len(some) > 1 else some for some in alike.values())
        return self._unit(list(chain.from_iterable(groups)), depth if is_whole else None)

    def _unit(self, parts: Sequence[int], depth: int | None) -> int:
        """Add a unit, which has a price if its depth matters, and return its number."""
        total, best = self._total, self._best
        whole, mixed = sum([total[i] for i in parts]), sum([best[i] for i in parts])
        if depth is not None:
            in_part = sum([self._in_part[i] for i in parts]) if self._is_thread else 0
            counted = len(parts) - (in_part if in_part >= NEARLY_ALL * len(parts) else 0)
            mixed -= self._rule.price * counted**0.5 * self._rule.decay**depth
        pure = max(0.0, whole)
        self._parts.append(parts)
        self._in_part.append(mixed > pure)
        total.append(whole)
        best.append(max(mixed, pure))
        return len(total) - 1

    def labels(self) -> Bools:
        """Return the best labels of the blocks."""
        main: Bools = np.zeros(self._n, dtype=np.bool_)
        todo = [(len(self._total) - 1, False)]  # the page, which is the last unit
        while todo:
            i, is_main = todo.pop()
            if i < self._n:
                main[i] = is_main or self._total[i] > 0
            elif self._in_part[i] and not is_main:
                todo += [(part, False) for part in self._parts[i]]
            elif is_main or self._total[i] > 0:
                todo += [(part, True) for part in self._parts[i]]
        return main


_is_cell = tag_mask("td", "th")
