"""Keep a heading with its content, and leave it out without, such as "Related links" as the last line of an article.

The content of a heading, its section, are the blocks up to the next heading of its rank or above.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from scrapy_dripper.choose.scored import ELSEWHERE, UNSEEN, Bools, ScoredPage
from scrapy_dripper.declared.facts import CHECKED, FactIndex, tokens
from scrapy_dripper.page.page import Flag
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.page.vocabulary import REPLIES, either

HEADING_PROBABILITY, OPENING_PROBABILITY, DECLARED_PROBABILITY = 0.3, 0.2, 0.1
"""Minimum probability for a heading to follow its section, the rest of its element, and facts of the page."""
SECTION_SHARE = 0.8
"""Minimum share of the words of its section that are main."""
CONTROLS = 4
"""Maximum number of blocks, such as buttons for units, between a heading and facts that the page declares."""
MOSTLY_DECLARED = 0.5
"""A block states a fact if facts cover this share of its words."""

MOST_HEADINGS = 3
"""Maximum number of headings without content on a page. More of them are content themselves, such as names on cards."""
LONGEST_HEADING = 12
"""Maximum number of words of a heading. A longer one says something by itself."""
LONGEST_ASKING = 60
"""Maximum length of a heading that asks for a comment, in characters."""
MOST_WORDS = MOST_HEADINGS * LONGEST_HEADING
"""Maximum number of words that are left out of a page."""

_asks = re.compile(rf"(?:{either(REPLIES)})\W*(?:cancel reply\W*)?", re.I).fullmatch
_RANKS = np.zeros(max(TAGS.values()) + 1, dtype=np.int8)
_RANKS[[TAGS[f"h{rank}"] for rank in range(1, 7)]] = range(1, 7)


def with_headings(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with headings added that stand right above main content, if most of their section is.

    A heading that ends its element heads nothing. One that opens an element of which all else is main, such as a box in
    a text, may be less likely. So may one that stands above facts of the page, such as "Ingredients", and it may have
    buttons below it.
    """
    flags, p = scored.flags, scored.probabilities
    tree, texts = scored.page.tree, scored.page.blocks.text
    barred = UNSEEN | ELSEWHERE | Flag.LINK | Flag.BUTTON
    ranks = heading_ranks(scored)
    likely = (flags & barred == 0) & ~main & (p >= (DECLARED_PROBABILITY if scored.page.facts else OPENING_PROBABILITY))
    headings = [i for i in np.flatnonzero(likely).tolist() if ranks[i] and len(texts[i].split()) <= LONGEST_HEADING]
    if not headings:
        return main
    ends = _section_ends(ranks)
    seen = flags & UNSEEN == 0
    words = scored.chars * seen
    total, kept = (np.concatenate([[0], np.cumsum(part)]) for part in (words, words * main))
    shown = np.flatnonzero(seen)
    facts = FactIndex(fact for fact in scored.page.facts if fact.kind in CHECKED) if scored.page.facts else None
    labels: Bools = main.copy()
    for i in headings:
        a, b = i + 1, int(ends[i])
        around = scored.page.holder(i)
        end = int(tree.block_end[around])
        if a >= b or end == a or kept[b] - kept[a] < SECTION_SHARE * (total[b] - total[a]):
            continue
        at = int(np.searchsorted(shown, a))
        first = next((j for j in shown[at : at + 1 + CONTROLS].tolist() if j < b and main[j]), None)
        if first is None:
            continue
        opens = tree.block_start[around] == i and kept[end] - kept[a] == total[end] - total[a]
        if first == shown[at] and p[i] >= (OPENING_PROBABILITY if opens else HEADING_PROBABILITY):
            labels[i] = True
        elif facts is not None:
            of_text = tokens(texts[first])
            labels[i] = facts.cover(of_text, np.array([len(of_text)])).max() >= MOSTLY_DECLARED
    return labels


def without_empty_headings(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels without headings that were followed by content of which nothing is main, or by a form for a
    comment.

    A heading stays if it is the first main block, a link, or the heading of an image. All arrays have shape (n,).
    """
    page = scored.page
    blocks, n = page.blocks, len(main)
    ranks = heading_ranks(scored)
    ends = _section_ends(ranks)
    seen = scored.flags & UNSEEN == 0
    found: list[int] = []
    after = n  # the next main block that stays
    for i in np.flatnonzero(main)[:0:-1].tolist():
        bare = ranks[i] and not blocks.links[i] and len(blocks.text[i].split()) <= LONGEST_HEADING
        if bare and (after == n or 0 < ranks[after] <= ranks[i]):
            end = min(ends[i], after)
            asks = len(blocks.text[i]) <= LONGEST_ASKING and _asks(blocks.text[i]) is not None
            if (asks or seen[i + 1 : end].any()) and not blocks.images[i + 1 : end + 1].any():
                found.append(i)
                continue
        after = i
    if not 0 < len(found) <= MOST_HEADINGS:
        return main
    labels: Bools = main.copy()
    labels[found] = False
    return labels


def heading_ranks(scored: ScoredPage) -> list[int]:
    """Return the rank of the heading that each block is in, 1 to 6; 0 for other blocks."""
    tree, inner = scored.page.tree, scored.page.blocks.context
    around = np.maximum(tree.parent[inner], 0)
    own, outer = _RANKS[tree.tag[inner]], _RANKS[tree.tag[around]]
    ranks: list[int] = np.where(own, own, outer).tolist()
    return ranks


def _section_ends(ranks: list[int]) -> npt.NDArray[np.int64]:
    """Return where the section of each block ends if it is a heading; its own number for other blocks."""
    ends = np.arange(len(ranks))
    next_of_rank = [len(ranks)] * 7
    for i in range(len(ranks) - 1, -1, -1):
        if rank := ranks[i]:
            ends[i] = min(next_of_rank[1 : rank + 1])
            next_of_rank[rank] = i
    return ends
