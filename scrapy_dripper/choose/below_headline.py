"""Add what belongs to the headline above it: the price of a product, the times of a recipe, the links of a hero.

A model sees them as facts about the page. Readers choose and plan with the first two, and go on with the third.
"""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

import numpy as np
import numpy.typing as npt

from scrapy_dripper.choose.given import ELSEWHERE, LINKED_SHARE, UNSEEN, Bools, Given
from scrapy_dripper.metadata.facts import FactIndex, tokens
from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.page.vocabulary import CURRENCIES, HEROES, TIME_LABELS, TIME_UNITS, either

LONGEST_PRICE = 30
"""Maximum length of a price, in characters."""
BLOCKS_BELOW_NAME = 40
"""Maximum number of blocks from the name of a product to its price."""
MOST_PRICES = 8
"""Maximum number of prices that a page states and declares. More of them are those of a list of products."""

TIME_PROBABILITY = 0.05
"""Minimum probability of the time of a recipe."""
LONGEST_TIME = 80
"""Maximum length of such a time with its label, in characters."""
HERO_PROBABILITY = 0.2
"""Minimum probability of the links of a hero."""
LEAST_HERO_LINKS = 2
"""Minimum number of links of a hero."""
MOST_HERO_BLOCKS = 12
"""Maximum number of blocks of a hero. A larger element is the page."""

_has_currency = re.compile(CURRENCIES, re.I).search
_H1, _LINK = TAGS["h1"], TAGS["a"]
_duration = rf"\d[\d.,½¼¾⅓⅔ –-]{{0,6}}\s?(?:{either(TIME_UNITS)})"
_time = re.compile(rf"{_duration}(?:\W{{1,5}}{_duration}){{0,2}}", re.I).fullmatch
_label = re.compile(rf"[^\d\n]{{0,20}}\b(?:{either(TIME_LABELS)})\b[^\d\n]{{0,20}}", re.I).match
_hero = re.compile(either(HEROES))


def with_price(given: Given, main: Bools) -> Bools:
    """Return the labels with the first price below the page's ``<h1>`` that the page declares as its own.

    Without an ``<h1>``, the first main block counts as the name of the product.
    """
    page, texts = given.page, given.page.blocks.text
    details = [fact for fact in page.facts if fact.kind == "detail"]
    if not details or not main.any():
        return main
    seen = given.flags & (UNSEEN | Flag.NAV | Flag.FOOTER | Flag.DIALOG) == 0
    may_be = [i for i in np.flatnonzero(seen & (given.chars <= LONGEST_PRICE)).tolist() if _has_currency(texts[i])]
    index = FactIndex(details if may_be else ())
    prices = []
    for i in may_be:
        digits = [token for token in tokens(texts[i]) if token.isdigit()]
        if digits and index.cover(digits, np.array([len(digits)])).max() == 1:
            prices.append(i)
    headings = np.flatnonzero((page.tree.tag[page.blocks.context] == _H1) & seen)
    name = int(headings[0] if len(headings) else np.argmax(main))
    price = next((i for i in prices if name < i <= name + BLOCKS_BELOW_NAME), None)
    if price is None or len(prices) > MOST_PRICES or main[prices].any():
        return main
    labels: Bools = main.copy()
    labels[price] = True
    return labels


def with_recipe_times(given: Given, main: Bools) -> Bools:
    """Return the labels with the times of a recipe added, each with its label, on a page that declares a recipe.

    They stand between the first heading of the page and the last main block.
    """
    page = given.page
    if "recipe" not in page.about.types or not main.any():
        return main
    texts, tags = page.blocks.text, page.tree.tag[page.blocks.context]
    may = (given.flags & (UNSEEN | ELSEWHERE) == 0) & (given.probabilities >= TIME_PROBABILITY)
    may &= page.blocks.links == 0
    labels: Bools = main.copy()
    places = np.flatnonzero(main | (tags == _H1))
    for i in range(int(places[0]), int(places[-1])):
        text = texts[i]
        label = _label(text) if may[i] and len(text) <= LONGEST_TIME else None
        if label is None:
            continue
        rest = text[label.end() :].strip()
        if rest and _time(rest):
            labels[i] = True
        elif not rest and may[i + 1] and _time(texts[i + 1].strip()):
            labels[i : i + 2] = True
    return labels


def with_hero_links(given: Given, main: Bools) -> Bools:
    """Return the labels with the links of a hero added, which is the element with the name of the page.

    Two or more of them, all to other pages of the site, are the ways into it. A single one, or one to another site,
    sells something.
    """
    page = given.page
    tree, blocks = page.tree, page.blocks
    named = given.names.matching(_hero, *HEROES)
    labels: Bools = main.copy()
    done = 0
    for node in (i for i, name in enumerate(tree.names) if name in named):
        if node < done:  # in another hero
            continue
        a, b = int(tree.block_start[node]), int(tree.block_end[node])
        if not 1 < b - a <= MOST_HERO_BLOCKS or not (main[a:b] & (tree.tag[blocks.context[a:b]] == _H1)).any():
            continue
        linked = blocks.link_chars[a:b] >= LINKED_SHARE * given.chars[a:b]
        seen = given.flags[a:b] & (UNSEEN | ELSEWHERE) == 0
        more = linked & seen & (given.probabilities[a:b] >= HERO_PROBABILITY)
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
