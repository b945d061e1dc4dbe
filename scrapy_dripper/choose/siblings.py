"""Give blocks the label of those that they belong to: their neighbours, their siblings, and blocks of the same shape.

All steps here only add blocks. A model answers block by block, so it can leave a line out of a text, stop in the middle
of a long one, or be unsure of one card of a list.
"""

from __future__ import annotations

import re
from collections import deque

import numpy as np

from scrapy_dripper.choose.scored import ELSEWHERE, UNSEEN, Bools, ScoredPage
from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.tags import LONGEST_CLASS, tag_mask
from scrapy_dripper.page.vocabulary import CAROUSELS, either

LONGEST_HOLE = 6
"""Maximum number of blocks in a hole between main blocks that is filled."""
HOLE_MEAN, HOLE_LEAST = 0.5, 0.4
"""Minimum mean probability of the blocks in such a hole, and minimum probability of each of them."""

SHARE_OF_SHAPE = 0.7
"""If at least this share of the blocks of the same shape is main, the others may become main, too."""
LEAST_ALIKE = 4
"""Minimum number of blocks of the same shape."""
ALIKE_PROBABILITY = 0.3
"""Minimum probability for a block to follow the others of its shape."""

PARAGRAPH_WORDS = 8
"""Minimum size of a paragraph. Shorter blocks between two paragraphs are passed over."""
PARAGRAPH_PROBABILITY = 0.3
"""Minimum probability of a paragraph that continues a text."""
SHARPEST_FALL = 0.15
"""Maximum fall of the probability from one paragraph to the next."""

PART_PROBABILITY = 0.4
"""Minimum probability of a part to follow its siblings."""
PART_SPREAD = 0.2
"""Maximum distance of its probability from that of the least likely sibling that is main."""
PART_LEVELS = 3
"""Number of levels above a block at which it may have siblings."""

LONGEST_TITLE = 200
"""Maximum length of the title of a panel, in characters."""
TITLE_PROBABILITY = 0.2
"""Minimum probability of such a title, if most of the panel is main."""
MOST_REFERENCES = 2_000
"""Maximum number of elements whose references are followed."""

_is_text = tag_mask("p", "h1", "h2", "h3", "h4", "h5", "h6")
_REFERENCES = ("aria-controls", "data-target", "data-bs-target", "href")
_of_carousel = re.compile(rf"(?:^|[\s_-])(?:{either(CAROUSELS)})", re.I).search


def with_holes(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with small holes between main blocks filled, if the blocks in the hole are likely to be main.

    With a low recall weight, the best cut can leave out a line of code or a formula of which the model is fairly sure.
    Readers miss content in the middle of a text more than at its end.
    """
    labels: Bools = main.copy()
    places = np.flatnonzero(main)
    size = np.diff(places) - 1
    holes = np.flatnonzero((size > 0) & (size <= LONGEST_HOLE))
    for a, b in zip(places[holes].tolist(), places[holes + 1].tolist(), strict=True):
        between = scored.probabilities[a + 1 : b]
        if between.mean() >= HOLE_MEAN and between.min() >= HOLE_LEAST:
            labels[a + 1 : b] = True
    return labels


def with_alike(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with blocks added that have the same shape as others, most of which are main.

    Blocks have the same shape if they have the same depth, and if their elements and the two around them have the same
    tags and classes. Examples are the posts of a thread and the titles of cards in a listing.
    """
    tree, inner = scored.page.tree, scored.page.blocks.context
    follow = ~main & (scored.probabilities >= ALIKE_PROBABILITY) & (scored.flags & (UNSEEN | ELSEWHERE) == 0)
    if not main.any() or not follow.any():
        return main
    outer = np.maximum(tree.parent[inner], 0)
    outest = np.maximum(tree.parent[outer], 0)
    shape = tree.depth[inner]
    for nodes in (inner, outer, outest):  # each pair gets a number, which is faster than np.unique with an axis
        _, shape = np.unique(shape * len(tree.nodes) + tree.tag_class[nodes], return_inverse=True)
    alike, kept = np.bincount(shape)[shape], np.bincount(shape, weights=main)[shape]
    labels: Bools = main | (follow & (alike >= LEAST_ALIKE) & (kept >= SHARE_OF_SHAPE * alike))
    return labels


def with_continued(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with each paragraph added that continues a main one.

    The probabilities of a long text sink towards its end, where there is less and less around a paragraph that speaks
    for it. The labels of largest expected F1 then stop in the middle of the text. A text rarely stops between two
    paragraphs of the same shape and parent without a sharp fall of the probability.
    """
    page, p = scored.page, scored.probabilities
    assert scored.size is not None
    paragraphs = np.flatnonzero((scored.size >= PARAGRAPH_WORDS) & (scored.flags & (UNSEEN | ELSEWHERE) == 0))
    before, after = paragraphs[:-1], paragraphs[1:]
    shape = page.tree.tag_class[page.blocks.context]
    may_follow = (
        ~main[after]
        & (p[after] >= PARAGRAPH_PROBABILITY)
        & (p[before] - p[after] < SHARPEST_FALL)
        & (shape[before] == shape[after])
    )
    labels: Bools = main.copy()
    for a, b in zip(before[may_follow].tolist(), after[may_follow].tolist(), strict=True):
        labels[b] = labels[a] and page.holder(a) == page.holder(b)
    return labels


def with_parts(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with parts of lists and of panels added that have siblings of the same shape, mostly main.

    Siblings have an element up to three levels above in common. The paragraphs of a text are none.
    """
    tree, inner = scored.page.tree, scored.page.blocks.context
    flags, p = scored.flags, scored.probabilities
    may_follow = ~main & (p >= PART_PROBABILITY) & (flags & ELSEWHERE == 0) & (flags & (UNSEEN | Flag.LIST) != 0)
    if not main.any() or not may_follow.any():
        return main
    labels: Bools = main.copy()
    holder = inner
    is_text = _is_text[tree.tag[inner]]
    for level in range(PART_LEVELS):
        holder = np.maximum(tree.parent[holder], 0)
        _, group = np.unique(
            (holder.astype(np.int64) * len(tree.nodes) + tree.tag_class[inner]) * 2 + (flags & UNSEEN != 0),
            return_inverse=True,
        )
        size, kept = np.bincount(group), np.bincount(group, weights=main)
        least = np.full(len(size), np.inf)
        np.minimum.at(least, group[main], p[main])
        joins = (size > 1) & (kept > 0) & (2 * kept >= size)
        found = may_follow & joins[group] & (p >= least[group] - PART_SPREAD)
        labels |= found & ~is_text if level == 0 else found
    return labels


def with_titles(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with the titles added that open a panel whose text is mostly main.

    Such a title is a short text in a button or a link, which the model takes for a control of the page. What turns the
    slides of a carousel is such a control.
    """
    opened = _panels(scored.page)
    if not opened or not main.any():
        return main
    tree, texts = scored.page.tree, scored.page.blocks.text
    total = np.concatenate([[0], np.cumsum(main)])
    labels: Bools = main.copy()
    for opener, panel in opened:
        a, b = int(tree.block_start[panel]), int(tree.block_end[panel])
        owners = tree.text_owner[opener : tree.end[opener]]
        own = set(owners[owners >= 0].tolist())
        if len(own) != 1 or a >= b or 2 * (total[b] - total[a]) <= b - a:
            continue
        (i,) = own
        if main[i] or scored.flags[i] & (UNSEEN | ELSEWHERE) or _turns(scored.page, opener, panel):
            continue
        labels[i] = scored.probabilities[i] >= TITLE_PROBABILITY and len(texts[i]) <= LONGEST_TITLE
    return labels


def _turns(page: Page, opener: int, panel: int) -> bool:
    """Return True for a control of a carousel, by names and by the attributes for slides."""
    if any(_of_carousel(page.tree.names[node][:LONGEST_CLASS]) for node in (opener, panel)):
        return True
    get = page.tree.nodes[opener].get
    is_slide = page.tree.nodes[panel].get("aria-roledescription") in ("slide", "carousel")
    return is_slide or any(get(name) for name in ("data-slide", "data-bs-slide", "data-slide-to", "data-bs-slide-to"))


def _panels(page: Page) -> list[tuple[int, int]]:
    """Return the elements that open a panel, and the panel of each: an element behind it to which it refers by id."""
    tree = page.tree
    wanted: dict[str, int] = {}
    for i in tree.refers[:MOST_REFERENCES]:
        node = tree.nodes[i]
        toggles = node.get("aria-expanded") or node.get("data-toggle") or node.get("data-bs-toggle")
        if not toggles and node.get("role") not in ("tab", "button") and node.tag != "button":
            continue
        target = next(filter(None, map(node.get, _REFERENCES)), "").lstrip("#")
        if target and len(target) <= LONGEST_TITLE:
            wanted.setdefault(target, i)
    # An id is the end of a name, which is read sooner than the attribute.
    names = enumerate(tree.names if wanted else ())
    number = {tree.nodes[i].get("id"): i for i, name in names if name.rpartition(" ")[2] in wanted}
    opened = [(opener, number[name]) for name, opener in wanted.items() if number.get(name, -1) > opener]
    return opened + _in_place(page)


def _in_place(page: Page) -> list[tuple[int, int]]:
    """Return the tabs that refer to no panel, and their panels, in the same order behind each list of tabs."""
    found: list[tuple[int, int]] = []
    waiting: deque[int] = deque()
    panels = 0
    for i in page.tree.tabs:
        node = page.tree.nodes[i]
        role = node.get("role")
        if role == "tab":
            if panels:
                waiting.clear()
            panels = 0
            if node.get("aria-controls") is None:
                waiting.append(i)
        elif role == "tabpanel":
            panels += 1
            if waiting:
                found.append((waiting.popleft(), i))
    return found[:MOST_REFERENCES]
