"""The difficulty of a page: the complexity score of the Dripper paper (A.5), by the formulas of its benchmark.

The paper names four measures. Their formulas and weights are those of ``scripts/statics.py`` in
https://github.com/opendatalab/WebMainBench, except that kinds of content are told by tags and marks, and not by the
content list of another extractor.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from lxml.html import HtmlElement

LEVELS = ("simple", "mid", "hard")
CUTS = (0.3, 0.7)
"""Shares of the pages of a run, by their scores, that are below the second and the third level."""
DEEP, WIDE, CURVE = 20, 300, 0.7
"""Depth of the tree, and number of children of an element, from which on a page counts as fully complex, and the power
that makes smaller values count for more.
"""
WORTH = {"equation": 0.3, "code": 0.3, "table": 0.4}
"""Part of the diversity that both kinds of a type of content make: inline and display, or simple and complex."""

_UNREAD = ("script", "style", "template")
_display = re.compile(r"\$\$|\\\[|\\begin\{").search
_inline = re.compile(r"\\\(").search


def complexity(root: HtmlElement) -> float:
    """Return the score of a parsed page, 0 to 1: the mean of structure, sparsity, diversity and density of links."""
    depth = deepest = widest = inside = chars = linked = 0  # `inside` counts the open links
    has_text: list[bool] = []
    own: list[int] = []  # places in `has_text` of the open elements
    kinds: set[tuple[str, bool]] = set()

    def read(text: str | None, tag: object) -> None:
        nonlocal chars, linked
        if not text or not text.strip():
            return
        has_text[own[-1]] = True
        if tag not in _UNREAD:
            chars += len(text)
            linked += len(text) if inside else 0
            kinds.update(
                ("equation", display) for display, found in ((True, _display), (False, _inline)) if found(text)
            )

    for event, node in etree.iterwalk(root, events=("start", "end")):
        if not isinstance(node.tag, str):
            continue
        if event == "start":
            depth += 1
            deepest, widest = max(deepest, depth), max(widest, len(node))
            inside += node.tag == "a"
            own.append(len(has_text))
            has_text.append(False)
            if node.tag == "math":
                kinds.add(("equation", node.get("display") == "block"))
            elif node.tag in ("pre", "code"):
                kinds.add(("code", node.tag == "pre"))
            elif node.tag in ("td", "th"):
                kinds.add(("table", node.get("colspan") is not None or node.get("rowspan") is not None))
            read(node.text, node.tag)
        else:
            depth -= 1
            inside -= node.tag == "a"
            own.pop()
            if own:
                read(node.tail, None)
    structure = (min(deepest / DEEP, 1) ** CURVE + min(widest / WIDE, 1) ** CURVE) / 2
    sparsity = sum(one != other for one, other in pairwise(has_text)) / max(len(has_text), 1)
    diversity = sum(WORTH[kind] / 2 for kind, _ in kinds)
    return float(structure + sparsity + diversity + linked / max(chars, 1)) / 4


def levels(scores: Sequence[float]) -> list[str]:
    """Return the level of each page, by its place among the scores of these pages."""
    ordered = sorted(scores)
    cuts = [ordered[int(len(ordered) * share)] for share in CUTS] if ordered else []
    return [LEVELS[sum(score >= cut for cut in cuts)] for score in scores]
