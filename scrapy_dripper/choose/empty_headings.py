"""Leave out headings whose content is not main, such as "Related links" as the last line of an article."""

from __future__ import annotations

import numpy as np

from scrapy_dripper.choose.given import UNSEEN, Bools, Given
from scrapy_dripper.page.tags import TAGS

MOST_HEADINGS = 3
"""Maximum number of such headings on a page. More of them are content themselves, such as the names on cards."""
LONGEST_HEADING = 12
"""Maximum number of words of such a heading. A longer one says something by itself."""
MOST_WORDS = MOST_HEADINGS * LONGEST_HEADING
"""Maximum number of words that are left out of a page."""

_RANKS = np.zeros(max(TAGS.values()) + 1, dtype=np.int8)
_RANKS[[TAGS[f"h{rank}"] for rank in range(1, 7)]] = range(1, 7)


def without_empty_headings(given: Given, main: Bools) -> Bools:
    """Return the labels without headings that were followed by content of which nothing is main.

    The content of a heading are the blocks up to the next heading of its rank or above. A heading stays if it is the
    first main block, a link, or the heading of an image. All arrays have shape (n,).
    """
    page = given.page
    blocks, n = page.blocks, len(main)
    ranks = heading_ranks(given)
    seen = given.flags & UNSEEN == 0
    found: list[int] = []
    after = n  # the next main block that stays
    for i in np.flatnonzero(main)[:0:-1].tolist():
        bare = ranks[i] and not blocks.links[i] and len(blocks.text[i].split()) <= LONGEST_HEADING
        if bare and (after == n or 0 < ranks[after] <= ranks[i]):
            end = next((j for j in range(i + 1, after) if 0 < ranks[j] <= ranks[i]), after)
            if seen[i + 1 : end].any() and not blocks.images[i + 1 : end + 1].any():
                found.append(i)
                continue
        after = i
    if not 0 < len(found) <= MOST_HEADINGS:
        return main
    labels: Bools = main.copy()
    labels[found] = False
    return labels


def heading_ranks(given: Given) -> list[int]:
    """Return the rank of the heading that each block is in, 1 to 6; 0 for other blocks."""
    tree, inner = given.page.tree, given.page.blocks.context
    around = np.maximum(tree.parent[inner], 0)
    own, outer = _RANKS[tree.tag[inner]], _RANKS[tree.tag[around]]
    ranks: list[int] = np.where(own, own, outer).tolist()
    return ranks
