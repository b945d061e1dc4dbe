"""Apply the user's rules to labels: they decide which elements are main content, whatever the model says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrapy_dripper.choose.scored import Marks, ScoredPage
from scrapy_dripper.page.page import Bools, Page
from scrapy_dripper.rules import DROP, KEEP, MODEL, WHOLE, Rules, SiteRule, find

_ORDER = (KEEP, MODEL, DROP)
"""The kinds for parts of a page. Their labels are 1, 0 (the label of the model) and -1."""


@dataclass(frozen=True, slots=True)
class Found:
    """The nodes that a rule selects on a page, by number, and the blocks that it applies to."""

    rule: SiteRule
    nodes: list[int]
    blocks: list[int]


def with_rules(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels, replaced by those of the rules where a rule applies."""
    if scored.marks is None:
        return main
    labels: Bools = np.where(scored.marks.says == 0, main, scored.marks.says > 0)
    return labels


def with_rules_again(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels after the steps that carry out options.

    If a rule selects the whole main content, no block is added to it, but options may have dropped some.
    """
    if scored.marks is not None and scored.marks.whole:
        return main & (scored.marks.says >= 0)
    return with_rules(scored, main)


def found(page: Page, rules: Rules | None) -> list[Found]:
    """Return what each rule for the page's URL selects.

    A rule applies to the blocks inside an element. If the element is only a part of a block, keeping the element keeps
    the block, but dropping the element has no effect, because the block has other text.
    """
    own = rules.of(page.url) if rules else []
    if not own:
        return []
    numbers = {node: i for i, node in enumerate(page.tree.nodes)}
    selected = [(rule, find(rule.selector, numbers)) for rule in own]
    return [Found(rule, hits, _blocks(page, hits, all_of_it=rule.kind == "drop")) for rule, hits in selected]


def marks(page: Page, rules: Rules | None) -> Marks | None:
    """Return the labels that rules give, or None if there are no rules for the page's URL.

    Of nested elements, the innermost one counts. If rules both keep and drop the same element, it is dropped. If they
    both keep it and leave it to the model, it is left to the model.
    """
    taken = found(page, rules)
    if not taken:
        return None
    wholes = [block for one in taken if one.rule.kind == WHOLE for block in one.blocks]
    says = np.full(len(page.blocks), -1 if wholes else 0, dtype=np.int8)
    says[wholes] = 1
    others = {(node, _ORDER.index(one.rule.kind)) for one in taken if one.rule.kind in _ORDER for node in one.nodes}
    for node, kind in sorted(others):  # in document order, so that inner elements come later
        says[_inside(page, node, all_of_it=_ORDER[kind] == DROP)] = 1 - kind
    counts = Counter(one.rule.kind for one in taken for _ in one.blocks)
    return Marks(says, bool(wholes), dict(counts))


def _blocks(page: Page, nodes: Sequence[int], *, all_of_it: bool) -> list[int]:
    """Return the blocks inside any of the nodes, which are in document order."""
    taken: set[int] = set()
    done = 0
    for node in nodes:
        if node >= done:  # not inside the previous one
            done = int(page.tree.end[node])
            taken.update(_inside(page, node, all_of_it=all_of_it).tolist())
    return sorted(taken)


def _inside(page: Page, node: int, *, all_of_it: bool) -> npt.NDArray[np.int64]:
    """Return the blocks of a node or, with ``all_of_it``, only the blocks that are entirely inside it."""
    tree, context = page.tree, page.blocks.context
    start, end = int(tree.block_start[node]), int(tree.block_end[node])
    blocks = np.arange(start, end)
    if all_of_it:
        within: npt.NDArray[np.int64] = blocks[(context[start:end] >= node) & (context[start:end] < tree.end[node])]
        return within
    owner = int(tree.text_owner[node])
    return np.append(blocks, owner) if owner >= 0 else blocks
