"""Rules of the user's, applied to labels: whatever a model says, these elements are main content, and those are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Page
from scrapy_dripper.rules import Rule, Rules, find

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Found:
    """The elements that a rule selects on a page, as numbers of nodes, and the blocks that it takes."""

    rule: Rule
    nodes: list[int]
    blocks: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """What the rules of a page say of its n blocks."""

    says: npt.NDArray[np.int8]
    """Shape (n,): 1 where a block is main, -1 where it is not, 0 where no rule says."""
    whole: bool = False
    """True if a rule says what the whole main content is."""
    blocks: Mapping[str, int] | None = None
    """Blocks that rules of each kind have taken; None if there are no rules for the page."""

    def on(self, main: Bools) -> Bools:
        """Return the labels of an engine with those of the rules in their place, where they say something."""
        labels: Bools = np.where(self.says == 0, main, self.says > 0)
        return labels

    def on_result(self, before: Bools, after: Bools) -> Bools:
        """Return the labels at the end, of what was made of those of :meth:`on`: nothing is added to a whole."""
        return before & after if self.whole else self.on(after)


def found(page: Page, rules: Rules | None) -> list[Found]:
    """Return what each rule of a page's URL selects on it.

    A rule takes the blocks inside of an element. To keep an element inside of a block is to keep the block; to drop one
    takes nothing, because the block has other text.
    """
    own = rules.of(page.url) if rules else []
    if not own:
        return []
    nodes, parents = page.tree.nodes, page.tree.parent.tolist()
    selected = [(rule, find(rule.selector)(nodes, parents)) for rule in own]
    return [Found(rule, hits, _blocks(page, hits, all_of_it=rule.kind == "drop")) for rule, hits in selected]


def marks(page: Page, rules: Rules | None) -> Marks:
    """Return the labels that rules give.

    Where elements are inside of each other, the innermost one counts; where two rules have the same element, to drop it
    counts.
    """
    n = len(page.blocks)
    says = np.zeros(n, dtype=np.int8)
    taken = found(page, rules)
    if not taken:
        return Marks(says)
    wholes = [one for one in taken if one.rule.kind == "whole" and one.blocks]
    if wholes:
        says[:] = -1
        for one in wholes:
            says[one.blocks] = 1
    others = {(node, one.rule.kind == "drop") for one in taken if one.rule.kind != "whole" for node in one.nodes}
    for node, drop in sorted(others):  # in document order, so that what is inside comes later
        says[_inside(page, node, all_of_it=drop)] = -1 if drop else 1
    counts: dict[str, int] = {}
    for one in taken:
        if one.blocks:
            counts[one.rule.kind] = counts.get(one.rule.kind, 0) + len(one.blocks)
    return Marks(says, bool(wholes), counts)


def _blocks(page: Page, nodes: Sequence[int], *, all_of_it: bool) -> list[int]:
    """Return the blocks inside of any of some nodes, which are in document order."""
    taken: set[int] = set()
    done = 0
    for node in nodes:
        if node >= done:  # it is not in the one before
            done = int(page.tree.end[node])
            taken.update(_inside(page, node, all_of_it=all_of_it).tolist())
    return sorted(taken)


def _inside(page: Page, node: int, *, all_of_it: bool) -> npt.NDArray[np.int64]:
    """Return the blocks of a node; with ``all_of_it``, those that have nothing outside of it."""
    tree, context = page.tree, page.blocks.context
    start, end = int(tree.block_start[node]), int(tree.block_end[node])
    blocks = np.arange(start, end)
    if all_of_it:
        within: npt.NDArray[np.int64] = blocks[(context[start:end] >= node) & (context[start:end] < tree.end[node])]
        return within
    owner = int(tree.text_owner[node])
    return np.append(blocks, owner) if owner >= 0 else blocks
