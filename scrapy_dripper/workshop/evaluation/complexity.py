"""The difficulty of a page, following the complexity score of the Dripper paper (A.5).

The paper names four measures, which are normalized and summed with weights, and cuts at the 30th and 70th percentiles.
It does not give formulas or weights. This is our interpretation: see ``docs/guides/evaluation.md``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from lxml import etree

if TYPE_CHECKING:
    from lxml.html import HtmlElement

LEVELS = ("simple", "mid", "hard")
CUTS = (30.0, 70.0)
"""Percentiles of the score, over the pages of a run, that separate the levels."""

_UNSEEN = ("script", "style", "noscript", "template", "svg", "head")
_RICH = {
    "table": "table",
    "pre": "code",
    "code": "code",
    "math": "formula",
    "img": "image",
    "picture": "image",
    "video": "video",
    "iframe": "video",
    "audio": "audio",
    "ul": "list",
    "ol": "list",
    "dl": "list",
    "blockquote": "quotation",
    "form": "form",
}
_latex = re.compile(r"\$\$|\\\[|\\\(|\\begin\{").search


@dataclass(frozen=True, slots=True)
class Complexity:
    """The four measures of a page, before they are normalized over a set of pages."""

    structure: float
    """Logarithm of depth times width: the maximum depth, and the maximum number of elements at the same depth."""
    sparsity: float
    """Share of steps through the tree, in document order, from text to something else or back."""
    diversity: float
    """Number of kinds of rich content: table, code, formula, image, video, audio, list, quotation, form."""
    links: float
    """Share of the text's characters that are in links."""


def complexity(root: HtmlElement) -> Complexity:
    """Return the measures of a parsed page. Scripts, styles and the like are removed from the tree."""
    etree.strip_elements(root, *_UNSEEN, etree.Comment, etree.ProcessingInstruction, etree.Entity, with_tail=False)
    widths: dict[int, int] = {}
    depth = inside = 0  # `inside` counts the open links
    chars = linked = 0
    steps: list[bool] = []
    rich: set[str] = set()
    pieces: list[str] = []

    def text(value: str | None) -> None:
        nonlocal chars, linked
        if value and (n := len(value.strip())):
            chars += n
            linked += n if inside else 0
            steps.append(True)
            pieces.append(value)

    for event, node in etree.iterwalk(root, events=("start", "end")):
        if event == "start":
            depth += 1
            widths[depth] = widths.get(depth, 0) + 1
            inside += node.tag == "a"
            steps.append(False)
            if node.tag in _RICH:
                rich.add(_RICH[node.tag])
            text(node.text)
        else:
            depth -= 1
            inside -= node.tag == "a"
            if depth:
                text(node.tail)
    if _latex("\n".join(pieces)):
        rich.add("formula")
    changes = sum(one != other for one, other in pairwise(steps))
    return Complexity(
        structure=math.log(max(widths, default=1) * max(widths.values(), default=1)),
        sparsity=changes / max(len(steps) - 1, 1),
        diversity=float(len(rich)),
        links=linked / max(chars, 1),
    )


def scores(measures: Sequence[Complexity]) -> list[float]:
    """Return the score of each page, 0 to 1: the mean of its measures, scaled to 0 to 1 over these pages."""
    if not measures:
        return []
    table = np.array([astuple(one) for one in measures])
    low, high = table.min(axis=0), table.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    result: list[float] = ((table - low) / span).mean(axis=1).tolist()
    return result


def levels(measures: Sequence[Complexity]) -> list[str]:
    """Return the level of each page, by the percentiles :data:`CUTS` of the scores of these pages."""
    values = scores(measures)
    if not values:
        return []
    cuts = np.percentile(values, CUTS)
    return [LEVELS[int(np.searchsorted(cuts, value, side="left"))] for value in values]
