"""Keep what belongs together in accordions and lists of alike parts: a title with its panel, and the parts themselves.

A title that opens a panel is a short text in a button or a link, which the model takes for a control of the page.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.whole import ELSEWHERE, UNSEEN
from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.tags import tag_mask

Bools = npt.NDArray[np.bool_]

LONGEST_TITLE = 200
"""Maximum length of the title of a panel, in characters."""
OPENS = 0.2
"""Minimum probability of such a title, if most of the panel is main."""
PART = 0.4
"""Minimum probability of a part to follow its siblings."""
SPREAD = 0.2
"""Maximum distance of its probability from that of the least likely sibling that is main."""
LEVELS = 3
"""Number of levels above a block at which it may have siblings."""
MOST_REFERENCES = 2_000
"""Maximum number of elements whose references are followed."""
_is_text = tag_mask("p", "h1", "h2", "h3", "h4", "h5", "h6")
_REFERENCES = ("aria-controls", "data-target", "data-bs-target", "href")


def with_titles(page: Page, probabilities: npt.NDArray[np.float32], main: Bools) -> Bools:
    """Return the labels with the titles added that open a panel whose text is mostly main.

    All arrays have shape (n,) for the page's n blocks.
    """
    opened = _panels(page)
    if not opened or not main.any():
        return main
    tree = page.tree
    flags = tree.flags[page.blocks.context] | tree.flags[page.blocks.leaf]
    total = np.concatenate([[0], np.cumsum(main)])
    labels: Bools = main.copy()
    for opener, panel in opened:
        a, b = int(tree.block_start[panel]), int(tree.block_end[panel])
        owners = tree.text_owner[opener : tree.end[opener]]
        own = set(owners[owners >= 0].tolist())
        if len(own) != 1 or a >= b or 2 * (total[b] - total[a]) <= b - a:
            continue
        (i,) = own
        if main[i] or flags[i] & (UNSEEN | ELSEWHERE):
            continue
        labels[i] = probabilities[i] >= OPENS and len(page.blocks.text[i]) <= LONGEST_TITLE
    return labels


def _panels(page: Page) -> list[tuple[int, int]]:
    """Return the elements that open a panel, and the panel of each: an element behind it to which it refers by id."""
    tree = page.tree
    wanted: dict[str, int] = {}
    for i in tree.refers[:MOST_REFERENCES]:
        node = tree.nodes[i]
        if node.get("aria-expanded") is None and node.get("role") not in ("tab", "button") and node.tag != "button":
            continue
        target = next(filter(None, map(node.get, _REFERENCES)), "").lstrip("#")
        if target and len(target) <= LONGEST_TITLE:
            wanted.setdefault(target, i)
    if not wanted:
        return []
    number = {node.get("id"): i for i, node in enumerate(tree.nodes) if node.get("id") in wanted}
    return [(opener, number[name]) for name, opener in wanted.items() if number.get(name, -1) > opener]


def with_parts(page: Page, probabilities: npt.NDArray[np.float32], main: Bools) -> Bools:
    """Return the labels with parts of lists and of panels added that have siblings of the same shape, mostly main.

    Siblings have an element up to three levels above in common. The paragraphs of a text are none.
    All arrays have shape (n,).
    """
    tree, inner = page.tree, page.blocks.context
    flags = tree.flags[inner] | tree.flags[page.blocks.leaf]
    may_follow = ~main & (probabilities >= PART) & (flags & ELSEWHERE == 0) & (flags & (UNSEEN | Flag.LIST) != 0)
    if not main.any() or not may_follow.any():
        return main
    labels: Bools = main.copy()
    holder = inner
    is_text = _is_text[tree.tag[inner]]
    for level in range(LEVELS):
        holder = np.maximum(tree.parent[holder], 0)
        _, group = np.unique(
            (holder.astype(np.int64) * len(tree.nodes) + tree.signature[inner]) * 2 + (flags & UNSEEN != 0),
            return_inverse=True,
        )
        size, kept = np.bincount(group), np.bincount(group, weights=main)
        least = np.full(len(size), np.inf)
        np.minimum.at(least, group[main], probabilities[main])
        joins = (size > 1) & (kept > 0) & (2 * kept >= size)
        found = may_follow & joins[group] & (probabilities >= least[group] - SPREAD)
        labels |= found & ~is_text if level == 0 else found
    return labels
