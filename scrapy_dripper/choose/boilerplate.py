"""Leave out what is within a text but not of it: controls of the page, texts for no scripts, and what stands beside a
text (:mod:`~scrapy_dripper.structures.asides`).

A model sees these as part of the text that they stand in. People read past them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from scrapy_dripper.choose.headings import may_be_price
from scrapy_dripper.choose.scored import LONGEST_LINE, ScoredPage
from scrapy_dripper.page.nodes import short_text
from scrapy_dripper.page.page import Bools, Flag, Tree
from scrapy_dripper.page.tags import tag_mask
from scrapy_dripper.page.vocabulary import CONTROLS, SHARING, TAG_LABELS, either
from scrapy_dripper.structures import NEAR, NEARLY_ALL
from scrapy_dripper.structures.asides import without_asides

MOST_BOILERPLATE = 400
"""Maximum number of words that are left out of a page however sure the model is of them."""
BUTTON_PROBABILITY = 0.4
"""Minimum probability of a button. A card that is main as a whole also has buttons that are no content."""

_control = re.compile(rf"(?:{either(CONTROLS)})\W*", re.I).fullmatch
_shares = re.compile(rf"(?:{either(SHARING)})\W*", re.I).fullmatch
_is_entry = tag_mask("dt", "td", "th")
_OPENS = ("aria-expanded", "aria-controls", "data-target", "data-toggle", "data-bs-toggle")
_unfolds = re.compile(r"^#\S|accord|collaps|faq", re.I).search
_tags = re.compile(rf"(?:{either(TAG_LABELS)})\s?[:：]\s*", re.I).match


def without_boilerplate(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels without controls, asides and, if more text is outside, the texts for no scripts."""
    labels: Bools = main.copy()
    labels[[*_controls(scored, main)]] = False
    # The texts of <noscript> ask for JavaScript, or stand in for something that a script has drawn by now.
    for_no_scripts = scored.flags & Flag.NOSCRIPT != 0
    if scored.chars[main & for_no_scripts].sum() < scored.chars[main & ~for_no_scripts].sum():
        labels &= ~for_no_scripts
    return without_asides(scored.page, labels, scored.names.matching)


def _controls(scored: ScoredPage, main: Bools) -> Iterator[int]:
    """Yield the short main blocks that only name what a click does, and lines of tags.

    A block is a control if it is a button that the model takes for no content, and opens nothing, is no entry of a
    table, and states no price and no question; if it is a button or a link with such a name; or if it names the
    sharing of a page.
    """
    blocks, flags = scored.page.blocks, scored.flags
    may_be = main & (scored.chars <= LONGEST_LINE) & (flags & (Flag.CODE | Flag.HEADING) == 0)
    is_button = flags & Flag.BUTTON != 0
    tree = scored.page.tree
    unlikely = is_button & (scored.probabilities < BUTTON_PROBABILITY)
    if unlikely.any():
        unlikely &= ~scored.page.within(np.flatnonzero(_is_entry[tree.tag]).tolist())
    for i in np.flatnonzero(may_be).tolist():
        text = blocks.text[i]
        tagged = _tags(text)
        rest = len(text) - tagged.end() if tagged else len(text)
        is_link = rest > 0 and blocks.link_chars[i] >= NEARLY_ALL * rest
        if (
            (is_link if tagged else _shares(text))
            or (unlikely[i] and not _is_said(text) and _acts(tree, int(blocks.leaf[i]), text))
            or ((is_button[i] or is_link) and _control(text))
        ):
            yield i


def _is_said(text: str) -> bool:
    """Return True for a price, and for a question, whose answer may follow."""
    return may_be_price(text) or "?" in text or "？" in text


def _acts(tree: Tree, node: int, text: str) -> bool:
    """Return True if a text is all of a button, given by a node in it, that opens no text and no panel."""
    for _ in range(NEAR):
        if not tree.flags[tree.parent[node]] & Flag.BUTTON:
            break
        node = int(tree.parent[node])
    opens = any(
        one.get("role") == "tab" or any(map(one.get, _OPENS)) or _unfolds(f"{one.get('href')} {one.get('class')}")
        for one in (tree.nodes[node], tree.nodes[tree.parent[node]])
    )
    return not opens and "".join((short_text(tree.nodes[node]) or "").split()) == "".join(text.split())
