"""Recognise the cards of a list: similar elements that each have a title with a link, and say something about it.

They are the teasers of articles and the products of a shop. No model is involved, and no label is changed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scrapy_dripper.page.hidden import hidden_blocks
from scrapy_dripper.page.page import Bools, Flag, Page
from scrapy_dripper.page.posts import (
    LEVELS,
    LONGEST_BYLINE,
    Kind,
    before_date,
    dates_of,
    held,
    names_of,
    outermost,
    smallest,
)
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.page.vocabulary import CURRENCIES

LISTS = frozenset({"collection", "listing"})
"""Types of pages whose main content may be cards."""
DECLARED = frozenset({"collectionpage", "offercatalog", "searchresultspage"})
"""schema.org types of such pages, in lower case."""

LEAST_CARDS = 3
"""Minimum number of cards of a kind."""
SHORTEST_TEXT = 3
"""Half of the cards of a kind must have as many characters beside the title. A price is enough."""
LONGEST_TITLE = 200
"""Maximum length of the title of a card, in characters."""
LONGEST_PRICE, MOST_BEFORE_PRICE = 100, 20
"""Maximum length of a line with a price, and of what is before the price, in characters."""
LINKED_SHARE = 0.8
"""Minimum share of the characters of a block in links, if the block is a link."""
LEAST_AUTHOR = 2
"""Minimum score of the name of an author, who has a profile or is declared. Products have names as well."""

_amount = r"\d[\d.,'’]{0,15}"
_price = re.compile(rf"(?:{CURRENCIES})\s?{_amount}|{_amount}(?:[–—-])?\s?(?:{CURRENCIES})", re.I).search
_LINK = TAGS["a"]


class ListCard(NamedTuple):
    """A card on a page."""

    title: str
    href: str
    """Where it leads, as written on the page."""
    text: str
    """Its other main text, with a line for each block, but without the lines of its price, date and author."""
    price: str
    """The line with its first price; empty if it has none."""
    author: str
    """The name of its author; empty if it is not known."""
    date: str
    """Its date in ISO 8601; empty if it is not known."""


def list_cards(page: Page, main: Bools, hidden: Bools, page_type: str | None) -> list[ListCard]:
    """Return the cards in the main content of a page whose blocks are labelled, in document order.

    Their titles are headings or, if there are no cards with headings, links. The link, price, date and author of a card
    may be in blocks that are not main. Blocks with text that is hidden from readers, given by its nodes, are left out.
    """
    if page_type not in LISTS and DECLARED.isdisjoint(page.declared.types):
        return []
    tree, blocks = page.tree, page.blocks
    seen = ~hidden_blocks(page, hidden, whole=False)
    main = main & seen
    links = {
        i: href
        for i in np.flatnonzero(seen & (blocks.link_chars > 0)).tolist()
        if blocks.link_chars[i] >= LINKED_SHARE * len(blocks.text[i]) and (href := _href(page, i))
    }
    is_heading = tree.flags[blocks.context] & Flag.HEADING != 0
    headings = np.flatnonzero(main & is_heading).tolist()
    # All blocks of a card that is a link as a whole are links. Its first one is the title.
    others = [i for i, href in links.items() if main[i] and not is_heading[i] and links.get(i - 1) != href]
    return _cards(page, main, seen, headings, links) or _cards(page, main, seen, others, links)


def _href(page: Page, block: int) -> str:
    """Return the address of the link around the first text of a block; empty if it leads to the same page."""
    tree = page.tree
    node = int(page.blocks.leaf[block])
    for _ in range(LEVELS):
        if node < 0 or tree.tag[node] == _LINK:
            break
        node = int(tree.parent[node])
    href = (tree.nodes[node].get("href") or "").strip() if node >= 0 else ""
    return "" if href.startswith("#") else href


def _is_price(line: str) -> bool:
    found = _price(line)
    return found is not None and found.start() <= MOST_BEFORE_PRICE


def _cards(page: Page, main: Bools, seen: Bools, titles: Sequence[int], links: Mapping[int, str]) -> list[ListCard]:
    """Return the cards with the blocks ``titles``, given in order. ``links`` are blocks that are links."""
    texts, start, end = page.blocks.text, page.tree.block_start.tolist(), page.tree.block_end.tolist()
    titles = [i for i in titles if len(texts[i]) <= LONGEST_TITLE]
    if len(titles) < LEAST_CARDS:
        return []
    prices = {i for i, text in enumerate(texts) if len(text) <= LONGEST_PRICE and _is_price(text)}
    told = main.copy()
    told[list(prices)] = True
    told[titles] = False
    chars = np.cumsum([0, *(len(text) * is_told for text, is_told in zip(texts, told.tolist(), strict=True))]).tolist()
    chosen, kinds = smallest(page, titles, chars, SHORTEST_TEXT)
    groups: defaultdict[Kind, list[int]] = defaultdict(list)
    for node in sorted(chosen):
        if held(titles, start[node], end[node]) == 1:
            groups[kinds[node]].append(node)
    dates, names = dates_of(page), names_of(page)
    found: dict[int, ListCard] = {}
    for nodes in groups.values():
        cards: dict[int, ListCard] = {}
        for inner, node in zip(nodes, outermost(page, nodes, titles), strict=True):
            title, inside = chosen[inner], [i for i in range(start[node], end[node]) if seen[i]]
            href = links.get(title) or next((links[i] for i in inside if i in links), "")
            if not href:
                continue
            price = next((i for i in inside if i in prices and i != title), None)
            date = next((i for i in inside if i in dates and i != title), None)
            marks = (mark for i in inside if i != title for mark in names.get(i, ()) if mark[0] >= LEAST_AUTHOR)
            author = max(marks, default=(0, 0, ""))[2] or ("" if date is None else before_date(texts[date]))
            short = (i for i in inside if len(texts[i]) <= LONGEST_BYLINE)
            lines = {title, price, *(i for i in short if i in dates or (author and author in texts[i]))}
            cards[title] = ListCard(
                title=texts[title],
                href=href,
                text="\n".join(texts[i] for i in inside if main[i] and i not in lines),
                price="" if price is None else texts[price],
                author=author,
                date="" if date is None else dates[date],
            )
        found |= cards if len(cards) >= LEAST_CARDS else {}
    return [found[i] for i in sorted(found)]
