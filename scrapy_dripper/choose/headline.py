"""Find the headline among the blocks: the heading above the main content with the name of the page.

Data sets differ on whether the headline is main content, so models are unreliable here. Readers always want it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from scrapy_dripper.choose.below_headline import may_be_price
from scrapy_dripper.choose.scored import LIKELY, LONGEST_LINE, Bools, ScoredPage
from scrapy_dripper.declared.facts import tokens
from scrapy_dripper.declared.names import Match
from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.tags import LONGEST_CLASS, TAGS
from scrapy_dripper.page.vocabulary import SITE_NAMES, STANDFIRSTS, either

BODY_WORDS = 10
"""Minimum number of words in a main block that is body text, as opposed to a date, a name or a label."""
PLAIN_WORDS = 5
"""Minimum number of words in a headline without heading markup, and in a standfirst."""
LEAD_PROBABILITY = 0.4
"""Minimum probability for a sentence between the headline and the text to be main."""
LEAD_BLOCKS = 4
"""Number of blocks below the headline that may hold such a sentence, including dates and authors."""
DESCRIPTION_LETTERS = 20
"""Minimum number of letters that the beginnings of a standfirst and of a description have in common."""
SUBTITLE_WORDS = 3
"""Minimum number of words of a part of the title that a heading below the headline repeats."""

_NO_LEAD = int(
    Flag.NAV | Flag.FOOTER | Flag.ASIDE | Flag.FORM | Flag.HIDDEN | Flag.NOSCRIPT | Flag.DIALOG
    | Flag.LIST | Flag.LINK | Flag.BUTTON | Flag.FIGURE
)  # fmt: skip
_HEADING = int(Flag.HEADING)
_HIDDEN = int(Flag.HIDDEN)
_UNSEEN = int(Flag.FOOTER | Flag.DIALOG | Flag.HIDDEN)
_ELSEWHERE = int(Flag.NAV | Flag.ASIDE)
_LISTED = int(Flag.LIST | Flag.LINK | Flag.BUTTON | Flag.FORM)
_H1 = TAGS["h1"]
_site_class = re.compile(rf"(?:^|[\s_-])(?:{either(SITE_NAMES)})(?=[\s_-]|$)", re.I).search
_standfirst = re.compile(rf"[\s_-](?:{either(STANDFIRSTS)})(?=[\s_-]|$)").search
_ends_sentence = re.compile(r"[.!?…。！？][\"”»“’」』]?\Z").search


def with_headline(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with the headline as the first main block or, if the user drops it, without the headline.

    Main blocks above the headline are removed unless they are prices or the model is sure of them; they are dates,
    categories and breadcrumbs. The lead below it becomes main (:func:`_lead`). If nothing is main, or no
    headline is found, the labels are returned unchanged.
    """
    page, p = scored.page, scored.probabilities
    found = headline(page, main)
    if found is None:
        return main
    labels: Bools = main.copy()
    labels[_lead(scored, main, found)] = True
    if page.config.title == "drop":
        labels[found] = False
        return labels
    labels[found] = True
    for i in np.flatnonzero(main[:found]).tolist():
        labels[i] = p[i] >= LIKELY or may_be_price(page.blocks.text[i])
    return labels


def _lead(scored: ScoredPage, main: Bools, found: int) -> list[int]:
    """Return the blocks of the lead, which is between the headline and the first main block.

    It has sentences that are likely enough, and the standfirst, which models often mistake for a summary. A standfirst
    is what a description in the page's head says, a heading that repeats another part of its title, or named as such.
    """
    below = range(found + 1, min(found + 1 + LEAD_BLOCKS, len(main)))
    page, flags, texts = scored.page, scored.flags, scored.page.blocks.text
    name = _letters(texts[found])
    descriptions = [text for text in map(_letters, page.declared.descriptions) if text and text != name]
    subtitles = {"".join(words) for words in page.declared.names.words if len(words) >= SUBTITLE_WORDS} - {name}
    lead: dict[str, int] = {}  # by text, because themes repeat a standfirst for narrow screens
    for i in takewhile(lambda i: not main[i], below):
        if flags[i] & _NO_LEAD:
            continue
        letters, size, is_heading = _letters(texts[i]), len(tokens(texts[i])), flags[i] & _HEADING != 0
        if (
            (is_heading and letters in subtitles)
            or (size >= PLAIN_WORDS and (_is_named_so(page, i) or _is_one_of(letters, descriptions)))
            or (
                size >= BODY_WORDS
                and not is_heading
                and scored.probabilities[i] >= LEAD_PROBABILITY
                and _ends_sentence(texts[i].rstrip()[-2:])
            )
        ):
            lead.setdefault(letters, i)
    return list(lead.values())


def _is_named_so(page: Page, block: int) -> bool:
    """Return True if the element of a block, or the one around it that begins with it, is named as a standfirst."""
    tree, node = page.tree, int(page.blocks.context[block])
    around = (node, max(0, int(tree.parent[node])))
    return any(
        tree.block_start[i] == block and _standfirst(f" {tree.names[i][:LONGEST_CLASS].lower()}") for i in around
    )


def _letters(text: str) -> str:
    return "".join(tokens(text[:LONGEST_LINE]))


def _is_one_of(text: str, descriptions: Sequence[str]) -> bool:
    """Return True if a text is one of the descriptions. Either of them may be cut off."""
    return any(
        text == one
        or (min(len(text), len(one)) >= DESCRIPTION_LETTERS and (text.startswith(one) or one.startswith(text)))
        for one in descriptions
    )


class Candidate(NamedTuple):
    """A heading that may be the headline."""

    block: int
    words: list[str]
    match: int
    is_h1: bool
    """True for an ``h1`` outside of menus and sidebars."""


def headline(page: Page, main: Bools) -> int | None:
    """Return the number of the block that is the headline, or None if there is none.

    The headline is the nearest heading above the first body text that shares its words with what the page says that it
    is called (:attr:`~scrapy_dripper.declared.Declared.names`). An ``h1`` comes before other headings, which may be
    subtitles, series or versions, unless it only repeats the end of the title. Without such a heading, the headline is
    a line above the text that is not a heading but has exactly the words of a name, or the ``h1`` above the text if
    there is only one, which also comes before a heading with which a name only begins. A hidden ``h1`` is only taken
    if there is none of these, and if it has exactly the words of a headline in the metadata. The name of the site and
    other hidden blocks are never the headline.
    """
    numbers = np.flatnonzero(main).tolist()
    if not numbers:
        return None
    names, texts = page.declared.names, page.blocks.text
    flags = (page.tree.flags[page.blocks.context] | page.tree.flags[page.blocks.leaf]).tolist()
    body = next((i for i in numbers if not flags[i] & _HEADING and len(tokens(texts[i])) >= BODY_WORDS), numbers[-1])
    # Ignore flags that the text itself has, for example because of an unclosed <nav>.
    unseen, elsewhere = _UNSEEN & ~flags[body], _ELSEWHERE & ~flags[body]
    tags = page.tree.tag[page.blocks.context].tolist()
    headings: list[Candidate] = []
    plain: int | None = None
    hidden: list[int] = []
    for i, text in enumerate(texts[: body + 1]):
        h1, aside = tags[i] == _H1, flags[i] & elsewhere != 0
        if flags[i] & unseen or len(text) > LONGEST_LINE:
            if h1 and i < body and flags[i] & unseen == _HIDDEN and len(text) <= LONGEST_LINE:
                hidden.append(i)
            continue
        words = tokens(text)
        if not flags[i] & _HEADING:
            if not aside and names.is_line(words) and not flags[i] & _LISTED:
                plain = i
        elif words and not names.is_other(words) and not names.ends(words) and not _names_site(page, i):
            match = names.match(words, h1=h1)
            if not aside or (h1 and match is Match.ALL):
                headings.append(Candidate(i, words, match, is_h1=h1 and not aside))
    h1s = {"".join(one.words): one for one in headings if one.is_h1}

    def preferred(one: Candidate) -> tuple[int, bool, int]:
        return one.match, one.is_h1 and "".join(one.words) != names.ending, one.block

    best = max((one for one in headings if one.match), key=preferred, default=None)
    if best is not None and (best.match > Match.FIRST or len(h1s) != 1):
        # Prefer an h1 that also has other words, such as a chapter number, to the heading of its first section.
        longer = (one for one in h1s.values() if one.block < best.block and set(best.words).issubset(one.words))
        return next(longer, best).block
    if plain is not None or len(h1s) == 1:
        return next(iter(h1s.values())).block if plain is None else plain
    # A hidden h1 is there for search engines. A script draws the headline, so readers see it nevertheless.
    said = {_letters(name) for name in page.declared.headlines if not names.is_site(tokens(name))} - {""}
    found = next((i for i in hidden if _letters(texts[i]) in said), None)
    return found if found is not None and texts[: body + 1].count(texts[found]) == 1 else None


def _names_site(page: Page, block: int) -> bool:
    """Return True if the class of a heading says that it is the name of the site, which mdBook writes on each page."""
    return _site_class(page.tree.names[int(page.blocks.context[block])][:LONGEST_CLASS]) is not None
