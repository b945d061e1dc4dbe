"""Add what belongs to the headline above it: the price of a product, the authors of a paper, the facts of a recipe, the
links of a hero.

A model sees them as facts about the page. Readers choose, cite and plan with the first ones, and go on with the last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

import numpy as np
import numpy.typing as npt

from scrapy_dripper.choose.scored import ELSEWHERE, LINKED_SHARE, UNSEEN, Bools, ScoredPage
from scrapy_dripper.declared.facts import DETAILS, FactIndex, tokens
from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.page.vocabulary import (
    AMOUNT_LABELS,
    CURRENCIES,
    ENERGY_LABELS,
    HEROES,
    NUTRIENT_UNITS,
    TIME_LABELS,
    TIME_UNITS,
    either,
)

LONGEST_PRICE = 30
"""Maximum length of a price, in characters."""
BLOCKS_BELOW_NAME = 40
"""Maximum number of blocks from the name of a product to its price."""
BLOCKS_RIGHT_BELOW = 8
"""Maximum number of blocks from the name of a product to a price that the page does not declare."""
MOST_PRICES = 8
"""Maximum number of prices that a page states and declares. More of them are those of a list of products."""

MOST_AUTHORS, LONGEST_AUTHORS = 500, 10_000
"""Maximum number of authors of a paper, and of characters of the text that names them."""
AUTHOR_SHARE = 0.5
"""Minimum share of the words of a text with authors that are names of them. Others are numbers of notes and titles."""

FACT_PROBABILITY = 0.005
"""Minimum probability of a fact of a recipe."""
LONGEST_FACT = 80
"""Maximum length of such a fact with its label, in characters."""
ROW_LEVELS, LONGEST_ROW = 3, 24
"""Number of levels above a fact at which others may be in a row with it, and maximum number of blocks of a row."""
LEAST_NUTRIENTS, CHARS_A_NUTRIENT = 3, 35
"""Minimum number of nutrients in a text or in a run of texts, and maximum length of a text for each of them."""
LONGEST_NUTRITION = 1_000
"""Number of characters of a text in which nutrients are searched."""
BLOCKS_BELOW_RECIPE = 30
"""Maximum number of blocks from the end of the main content to the nutrients of a dish."""
HERO_PROBABILITY = 0.2
"""Minimum probability of the links of a hero."""
LEAST_HERO_LINKS = 2
"""Minimum number of links of a hero."""
MOST_HERO_BLOCKS = 12
"""Maximum number of blocks of a hero. A larger element is the page."""

_has_currency = re.compile(CURRENCIES, re.I).search
_sum = rf"(?:(?:{CURRENCIES})\s?\d[\d.,'’]{{0,12}}|\d[\d.,'’]{{0,12}}\s?(?:{CURRENCIES}))"
_is_price = re.compile(rf"{_sum}(?:\W{{0,3}}{_sum}){{0,2}}", re.I).fullmatch
_AUTHOR = "citation_author"
_H1, _LINK = TAGS["h1"], TAGS["a"]
_unit, _amounts = either(TIME_UNITS), either((*AMOUNT_LABELS, *ENERGY_LABELS))
_number = r"\d[\d.,:½¼¾⅓⅔/ –-]{0,12}"
_duration = rf"\d[\d.,½¼¾⅓⅔ –-]{{0,6}}\s?(?:{_unit})"
# A unit may follow once more, for screen readers.
_is_time = re.compile(rf"{_duration}(?:\W{{1,5}}(?:{_duration}|(?:{_unit})\b)){{0,4}}", re.I).fullmatch
_is_amount = re.compile(rf"{_number}(?:\w{{1,20}}(?:\W{{1,2}}\w{{1,20}}){{0,3}}\W{{0,2}})?", re.I).fullmatch
_label = re.compile(rf"[^\d\n]{{0,30}}\b(?:(?P<time>{either(TIME_LABELS)})|{_amounts})\b[^\d\n]{{0,20}}", re.I).match
_is_amount_first = re.compile(
    rf"{_number}\W?(?:{_amounts})\W{{0,3}}|\d[\d:]{{0,5}}\s?(?:{_unit})?\W?(?:{either(TIME_LABELS)})\W{{0,3}}", re.I
).fullmatch
_nutrients = re.compile(rf"\d[\d.,]{{0,6}}\s?(?:{either(NUTRIENT_UNITS)})(?![^\W\d])", re.I).findall
_has_energy = re.compile(either(ENERGY_LABELS), re.I).search
_has_digit = re.compile(r"\d").search
_hero = re.compile(either(HEROES))


def may_be_price(text: str) -> bool:
    """Return True for a short text with a currency."""
    return len(text) <= LONGEST_PRICE and _has_currency(text) is not None


def with_price(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with the price of a product added: the first one below the page's ``<h1>`` that the page
    declares as its own, or else, on a page that declares a product, one right below it.

    Without an ``<h1>``, the first main block counts as the name of the product.
    """
    page, texts = scored.page, scored.page.blocks.text
    details = [fact for fact in page.facts if fact.kind in DETAILS]
    if not (details or "product" in page.declared.types) or not main.any():
        return main
    seen = scored.flags & (UNSEEN | Flag.NAV | Flag.FOOTER | Flag.DIALOG) == 0
    may_be = [i for i in np.flatnonzero(seen & (scored.chars <= LONGEST_PRICE)).tolist() if may_be_price(texts[i])]
    index = FactIndex(details if may_be else ())
    prices = []
    for i in may_be:
        digits = [token for token in tokens(texts[i]) if token.isdigit()]
        if digits and index.cover(digits, np.array([len(digits)])).max() == 1:
            prices.append(i)
    headings = np.flatnonzero((page.tree.tag[page.blocks.context] == _H1) & seen)
    name = int(headings[0] if len(headings) else np.argmax(main))
    price = next((i for i in prices if name < i <= name + BLOCKS_BELOW_NAME), None)
    if not prices and "product" in page.declared.types and main[name]:
        alone = (i for i in may_be if name < i <= name + BLOCKS_RIGHT_BELOW and not page.blocks.links[i])
        price = next((i for i in alone if _is_price(texts[i])), None)
    if price is None or len(prices) > MOST_PRICES or main[[*prices, price]].any():
        return main
    labels: Bools = main.copy()
    labels[price] = True
    return labels


def with_authors(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with the authors of a paper added, which stand below its name.

    Pages of papers declare them for search engines of literature (``citation_author``). On other pages, a byline is no
    content.
    """
    page = scored.page
    declared = page.declared.meta.get(_AUTHOR, ())
    if not declared or not main.any():
        return main
    authors = [name for name in (frozenset(tokens(text)) for text in declared[:MOST_AUTHORS]) if name]
    known = frozenset().union(*authors)
    tags, texts = page.tree.tag[page.blocks.context], page.blocks.text
    headings = np.flatnonzero((tags == _H1) & (scored.flags & UNSEEN == 0))
    name = int(headings[0] if len(headings) else np.argmax(main))
    labels: Bools = main.copy()
    for i in range(name + 1, min(name + 1 + BLOCKS_BELOW_NAME, len(main))):
        words = [] if main[i] or scored.flags[i] & (UNSEEN | ELSEWHERE) else tokens(texts[i][:LONGEST_AUTHORS])
        if words and AUTHOR_SHARE * len(words) <= sum(word in known for word in words):
            text = set(words)  # once, because each of many authors is looked for in it
            labels[i] = any(author <= text for author in authors)
    return labels


def with_recipe_facts(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with the facts of a recipe added, each with its label, on a page that declares a recipe.

    Its times, its amount and its energy stand between the first heading of the page and the last main block, with other
    numbers in a row with them, and its nutrients there or a few blocks below.
    """
    page = scored.page
    if "recipe" not in page.declared.types or not main.any():
        return main
    texts, tags = page.blocks.text, page.tree.tag[page.blocks.context]
    may = (scored.flags & (UNSEEN | ELSEWHERE) == 0) & (scored.probabilities >= FACT_PROBABILITY)
    may &= page.blocks.links == 0
    places = np.flatnonzero(main | (tags == _H1))
    first, last = int(places[0]), int(places[-1])
    facts: set[int] = set()
    for i in range(first, last):
        if not may[i] or len(texts[i]) > LONGEST_FACT:
            continue
        if all(map(_is_fact, texts[i].split("\n"))):
            facts.add(i)
        elif may[i + 1] and _label(texts[i]) and _is_fact(f"{texts[i]} {texts[i + 1]}"):
            facts |= {i, i + 1}
    facts |= {i for fact in facts for i in _row(page, fact, facts) if may[i] and first <= i < last}
    facts |= _nutrition(texts, [i for i in range(first, min(last + BLOCKS_BELOW_RECIPE, len(texts))) if may[i]])
    labels: Bools = main.copy()
    labels[sorted(facts)] = True
    return labels


def _is_fact(line: str) -> bool:
    """Return True for a label with an amount: ``Prep time: 10 minutes``, ``4 servings``."""
    label = _label(line)
    if label is None:
        return _is_amount_first(line) is not None
    return (_is_time if label["time"] else _is_amount)(line[label.end() :].strip()) is not None


def _row(page: Page, fact: int, facts: set[int]) -> list[int]:
    """Return the short texts with a number that are in a row with a fact and with another one of the same shape."""
    tree, blocks = page.tree, page.blocks
    shape = tree.tag_class[blocks.context]
    node = int(blocks.context[fact])
    for _ in range(ROW_LEVELS):
        node = max(int(tree.parent[node]), 0)
        row = range(int(tree.block_start[node]), int(tree.block_end[node]))
        if len(row) > LONGEST_ROW:
            break
        alike = [i for i in row if shape[i] == shape[fact]]
        if len(facts.intersection(alike)) > 1:
            return [i for i in alike if len(blocks.text[i]) <= LONGEST_FACT and _has_digit(blocks.text[i])]
    return []


def _nutrition(texts: Sequence[str], places: Sequence[int]) -> set[int]:
    """Return the texts at some places that say how much energy and nutrients a dish has: in one text, or in a run."""
    counts: dict[int, int] = {}
    runs: list[list[int]] = []
    for i in places:
        text = texts[i][:LONGEST_NUTRITION]
        count = len(_nutrients(text)) or int(bool(_has_energy(text) and _has_digit(text)))
        if not count or len(texts[i]) > CHARS_A_NUTRIENT * count:
            continue
        counts[i] = count
        if runs and i <= runs[-1][-1] + 2:
            runs[-1].append(i)
        else:
            runs.append([i])
    enough = (run for run in runs if sum(counts[i] for i in run) >= LEAST_NUTRIENTS)
    return {i for run in enough if any(_has_energy(texts[j]) for j in run) for i in run}


def with_hero_links(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with the links of a hero added, which is the element with the name of the page.

    Two or more of them, all to other pages of the site, are the ways into it. A single one, or one to another site,
    sells something.
    """
    page = scored.page
    tree, blocks = page.tree, page.blocks
    labels: Bools = main.copy()
    done = 0
    for node in scored.names.matching(_hero, *HEROES):
        if node < done:  # in another hero
            continue
        a, b = int(tree.block_start[node]), int(tree.block_end[node])
        if not 1 < b - a <= MOST_HERO_BLOCKS or not (main[a:b] & (tree.tag[blocks.context[a:b]] == _H1)).any():
            continue
        linked = blocks.link_chars[a:b] >= LINKED_SHARE * scored.chars[a:b]
        seen = scored.flags[a:b] & (UNSEEN | ELSEWHERE) == 0
        more = linked & seen & (scored.probabilities[a:b] >= HERO_PROBABILITY)
        if blocks.links[a:b][more].sum() >= LEAST_HERO_LINKS:
            done = int(tree.end[node])
            if _stay_on_site(page, node, a + np.flatnonzero(more)):
                labels[a:b] |= more
    return labels


def _stay_on_site(page: Page, node: int, wanted: npt.NDArray[np.int64]) -> bool:
    """Return True if all links of some blocks in a node lead to other pages of the site."""
    tree, blocks = page.tree, set(wanted.tolist())
    links = [i for i in range(node, int(tree.end[node])) if tree.tag[i] == _LINK and int(tree.text_owner[i]) in blocks]
    try:
        own = urlsplit(page.url)
        targets = [urlsplit(urljoin(page.base_url, tree.nodes[i].get("href") or "")) for i in links]
    except ValueError:  # such as "http://["
        return False
    return all(to.netloc == own.netloc and to.path != own.path and to.scheme in ("", "http", "https") for to in targets)
