"""Leave out what is within a text but not of it: controls of the page, signatures in a forum, texts for no scripts, and
what stands beside a text (:mod:`~scrapy_dripper.structures.asides`).

A model sees these as part of the text that they stand in. People read past them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from scrapy_dripper.choose.comments import FORUM
from scrapy_dripper.choose.scored import LONGEST_LINE, ScoredPage
from scrapy_dripper.page.page import Bools, Flag, Tree
from scrapy_dripper.page.tags import tag_mask
from scrapy_dripper.page.vocabulary import ACTIONS, COMMANDS, CONTROLS, SHARING, SIGNATURES, TAG_LABELS, either
from scrapy_dripper.structures import NEAR, NEARLY_ALL
from scrapy_dripper.structures.asides import without_asides

MOST_BOILERPLATE = 400
"""Maximum number of words that are left out of a page however sure the model is of them."""
LONGEST_SIGNATURE = 60
"""Maximum number of words of a signature."""
LEAST_SIGNATURES = 2
"""Minimum number of signatures on a page, if it is not known to be a forum. A single one ends a letter."""

LONGEST_ACTION = 6
"""Maximum number of words of what a button does."""

_control = re.compile(rf"(?:{either(CONTROLS)})\W*", re.I).fullmatch
_shares = re.compile(rf"(?:{either(SHARING)})\W*", re.I).fullmatch
_acts = re.compile(rf"(?:{either(ACTIONS)})(?!\w)", re.I).match
_commands = re.compile(rf"(?:{either(COMMANDS)})[^\w?？]*", re.I).fullmatch
_unfolds = re.compile(r"accord|collaps|faq|toggl", re.I).search
_tags = re.compile(rf"(?:{either(TAG_LABELS)})\s?[:：]\s*", re.I).match
_signature = re.compile(rf"\s(?:{either(SIGNATURES)})(?=\s|$)")
_is_signed = tag_mask("div", "p", "aside", "section", "footer", "td", "li")


def without_boilerplate(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels without controls, signatures, asides and, if more text is outside, the texts for no scripts."""
    labels: Bools = main.copy()
    labels[[*_controls(scored, main), *_signatures(scored)]] = False
    # The texts of <noscript> ask for JavaScript, or stand in for something that a script has drawn by now.
    for_no_scripts = scored.flags & Flag.NOSCRIPT != 0
    if scored.chars[main & for_no_scripts].sum() < scored.chars[main & ~for_no_scripts].sum():
        labels &= ~for_no_scripts
    return without_asides(scored.page, labels, scored.names.matching)


def _controls(scored: ScoredPage, main: Bools) -> Iterator[int]:
    """Yield the short main blocks that only name what a click does, and lines of tags.

    A block is a control if it has such a name and is a button or a link, if it names the sharing of a page, or if it is
    a button that begins with such a verb, or is such a command, and opens and sorts nothing.
    """
    blocks, flags = scored.page.blocks, scored.flags
    may_be = main & (scored.chars <= LONGEST_LINE) & (flags & (Flag.CODE | Flag.HEADING) == 0)
    is_button = flags & Flag.BUTTON != 0
    for i in np.flatnonzero(may_be).tolist():
        text = blocks.text[i]
        tagged = _tags(text)
        if tagged:
            rest = len(text) - tagged.end()
            found = rest > 0 and blocks.link_chars[i] >= NEARLY_ALL * rest
        elif is_button[i] and len(text.split()) <= LONGEST_ACTION and (_acts(text) or _commands(text)):
            found = not _opens(scored.page.tree, int(blocks.context[i]), is_title=not _acts(text))
        elif not (found := _shares(text) is not None) and _control(text):
            found = is_button[i] or blocks.link_chars[i] >= NEARLY_ALL * len(text)
        if found:
            yield i


def _opens(tree: Tree, node: int, *, is_title: bool) -> bool:
    """Return True if a button, given by a node in it, opens a text or a panel, or is all of the head of a column. Not
    all buttons that open something say so: if its text may be a title, its data and classes count as well.
    """
    for _ in range(NEAR):
        if tree.nodes[node].tag == "button" or tree.nodes[node].get("role") in ("button", "tab"):
            break
        node = max(0, int(tree.parent[node]))
    button, up = tree.nodes[node], max(0, int(tree.parent[node]))
    says_so = button.get("role") == "tab" or button.get("aria-expanded") is not None
    if says_so or not is_title:
        return says_so
    classes = f"{button.get('class')} {tree.nodes[up].get('class')}"
    while up and tree.nodes[up].tag != "th" and tree.block_end[up] - tree.block_start[up] == 1:
        up = int(tree.parent[up])
    heads_column = tree.nodes[up].tag == "th" and tree.block_end[up] - tree.block_start[up] == 1
    data = map(button.get, ("aria-controls", "data-target", "data-toggle", "data-bs-toggle"))
    return heads_column or any(data) or _unfolds(classes) is not None


def _signatures(scored: ScoredPage) -> Iterator[int]:
    """Yield the signatures below posts, by the names of their elements."""
    tree = scored.page.tree
    signed = [i for i in scored.names.matching(_signature, "sig") if _is_signed[tree.tag[i]]]
    if not signed or (len(signed) < LEAST_SIGNATURES and scored.page_type != FORUM):
        return
    # Sums over the blocks before each one, because elements with such names can be nested.
    words, code = scored.page.blocks.words_before(), np.cumsum([0, *(scored.flags & Flag.CODE != 0)])
    for node in signed:
        a, b = int(tree.block_start[node]), int(tree.block_end[node])
        if words[b] - words[a] <= LONGEST_SIGNATURE and code[b] == code[a]:
            yield from range(a, b)
