"""Add the facts that stand below the name of a page: the price of a product, the authors of a paper, and how long a
recipe takes and how much it makes.

A model sees them as facts about the page. Readers choose, cite and plan with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from scrapy_dripper.choose.scored import ELSEWHERE, UNSEEN, Bools, ScoredPage
from scrapy_dripper.declared.facts import tokens
from scrapy_dripper.page.page import Flag
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.page.vocabulary import AMOUNT_LABELS, CURRENCIES, ENERGY_LABELS, TIME_LABELS, either

LONGEST_PRICE, LONGEST_FACT = 30, 500
"""Maximum length of a price, and of a fact of a recipe with its label, in characters."""
BLOCKS_BELOW_NAME = 40
"""Maximum number of blocks from the name of a page to a price or to authors, and from the end of a recipe to a fact."""
MOST_PRICES = 8
"""Maximum number of prices that a page states and declares. More of them are those of a list of products."""

_has_currency = re.compile(CURRENCIES, re.I).search
_sum = rf"(?:(?:{CURRENCIES})\s?\d[\d.,'’]{{0,12}}|\d[\d.,'’]{{0,12}}\s?(?:{CURRENCIES}))"
_is_price = re.compile(rf"{_sum}(?:\W{{0,3}}{_sum}){{0,2}}", re.I).fullmatch
_AUTHOR = "citation_author"
_H1 = TAGS["h1"]
_energy, _label = either(ENERGY_LABELS), either(TIME_LABELS, AMOUNT_LABELS, ENERGY_LABELS)
_begins_with_label = re.compile(rf"[^\d\n]{{0,30}}\b(?:{_label})\b", re.I).match
_says_energy = re.compile(rf".{{0,60}}\b(?:{_energy})\b\W{{0,9}}\d", re.I | re.S).match
_states = re.compile(
    rf"[^\d\n]{{0,30}}\b(?:{_label})\b[^\d\n]{{0,20}}\d(?:\W{{0,3}}\w{{1,20}}){{0,6}}\W{{0,3}}"
    rf"|[^\d\n]{{0,5}}\d[\d:]{{0,5}}\W{{0,2}}(?:\w{{1,10}}\W)?(?:{_label})\W{{0,3}}",
    re.I,
).fullmatch


def may_be_price(text: str) -> bool:
    """Return True for a short text with a currency."""
    return len(text) <= LONGEST_PRICE and _has_currency(text) is not None


def with_facts(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with the facts added that stand below the name of a page: its ``<h1>``, or else the first main
    block.
    """
    if not main.any():
        return main
    tags = scored.page.tree.tag[scored.page.blocks.context]
    headings = np.flatnonzero((tags == _H1) & (scored.flags & UNSEEN == 0))
    name = int(headings[0] if len(headings) else np.argmax(main))
    labels: Bools = main.copy()
    for facts in (_price(scored, main, name), _authors(scored, main, name), _of_recipe(scored, main, name)):
        labels[[*facts]] = True
    return labels


def _price(scored: ScoredPage, main: Bools, name: int) -> Iterator[int]:
    """Yield the first price below the name that the page declares as its own, or else, on a page that declares a
    product, the first one right below it.
    """
    page, texts = scored.page, scored.page.blocks.text
    declared = {_digits(fact.text) for fact in page.facts if fact.kind == "price"} - {""}
    of_product = "product" in page.declared.types
    if not (declared or of_product):
        return
    seen = scored.flags & (UNSEEN | Flag.NAV | Flag.FOOTER | Flag.DIALOG) == 0
    may_be = [i for i in np.flatnonzero(seen & (scored.chars <= LONGEST_PRICE)).tolist() if may_be_price(texts[i])]
    prices = [i for i in may_be if _digits(texts[i]) in declared]
    if not prices and of_product and main[name]:
        prices = [
            i for i in may_be if name < i <= name + MOST_PRICES and _is_price(texts[i]) and not page.blocks.links[i]
        ]
    price = next((i for i in prices if name < i <= name + BLOCKS_BELOW_NAME), None)
    if price is not None and len(prices) <= MOST_PRICES and not main[prices].any():
        yield price


def _digits(text: str) -> str:
    return "".join(token for token in tokens(text) if token.isdigit())


def _authors(scored: ScoredPage, main: Bools, name: int) -> Iterator[int]:
    """Yield the texts with the authors of a paper.

    Pages of papers declare them for search engines of literature (``citation_author``). On other pages, a byline is no
    content.
    """
    page, texts = scored.page, scored.page.blocks.text
    declared = page.declared.meta.get(_AUTHOR, ())
    authors = [author for author in (frozenset(tokens(text)) for text in declared) if author]
    known = frozenset().union(*authors)
    for i in range(name + 1, min(name + 1 + BLOCKS_BELOW_NAME, len(main)) if known else 0):
        words = [] if scored.flags[i] & (UNSEEN | ELSEWHERE) else tokens(texts[i])
        if len(words) <= 2 * sum(word in known for word in words):  # others are numbers of notes and titles
            text = set(words)  # once, because each of many authors is looked for in it
            if any(author <= text for author in authors):
                yield i


def _of_recipe(scored: ScoredPage, main: Bools, name: int) -> Iterator[int]:
    """Yield the texts above the end of the main content of a recipe that state its times, its amount or its energy,
    some of them in two blocks.
    """
    page, texts = scored.page, scored.page.blocks.text
    if "recipe" not in page.declared.types:
        return
    may = (scored.flags & (UNSEEN | ELSEWHERE | Flag.ASIDE) == 0) & (page.blocks.links == 0)
    may &= scored.chars <= LONGEST_FACT
    may[: name + 1], may[int(np.flatnonzero(main)[-1]) + BLOCKS_BELOW_NAME :] = False, False
    for i in np.flatnonzero(may).tolist():
        if _says_energy(texts[i]) or all(map(_states, texts[i].split("\n"))):
            yield i
        elif may[i + 1 : i + 2].any() and _begins_with_label(texts[i]) and _states(f"{texts[i]} {texts[i + 1]}"):
            yield from (i, i + 1)
