"""Keep the price of a product with its name."""

from __future__ import annotations

import re

import numpy as np

from scrapy_dripper.choose.given import UNSEEN, Bools, Given
from scrapy_dripper.metadata.facts import FactIndex, tokens
from scrapy_dripper.page.page import Flag
from scrapy_dripper.page.tags import tag_mask

LONGEST_PRICE = 30
"""Maximum length of a price, in characters."""
BLOCKS_BELOW_NAME = 40
"""Maximum number of blocks from the name of a product to its price."""
MOST_PRICES = 8
"""Maximum number of prices that a page states and declares. More of them are those of a list of products."""

# Currency signs, and codes of ISO 4217 and of shops that stand beside a number.
_has_currency = re.compile(
    r"[$€£¥₹₽₩₺฿₪₫₴₦]|\b(?:usd|eur|gbp|aud|cad|chf|cny|jpy|inr|brl|mxn|sek|nok|dkk|pln|czk|huf|ron|try|zar|aed|kr|zł|kč|ft"
    r"|lei|rub|руб|грн|円|元)\b",
    re.I,
).search
_is_h1 = tag_mask("h1")


def with_price(given: Given, main: Bools) -> Bools:
    """Return the labels with the first price below the page's ``<h1>`` that the page declares as its own.

    Without an ``<h1>``, the first main block counts as the name of the product.
    """
    page, texts = given.page, given.page.blocks.text
    details = [fact for fact in page.facts if fact.kind == "detail"]
    seen = given.flags & (UNSEEN | Flag.NAV | Flag.FOOTER | Flag.DIALOG) == 0
    if not details or not main.any():
        return main
    index = FactIndex(details)
    prices = []
    for i in np.flatnonzero(seen & (given.chars <= LONGEST_PRICE)).tolist():
        if not _has_currency(texts[i]):
            continue
        digits = [token for token in tokens(texts[i]) if token.isdigit()]
        if digits and index.cover(digits, np.array([len(digits)])).max() == 1:
            prices.append(i)
    headings = np.flatnonzero(_is_h1[page.tree.tag[page.blocks.context]] & seen)
    name = int(headings[0] if len(headings) else np.argmax(main))
    price = next((i for i in prices if name < i <= name + BLOCKS_BELOW_NAME), None)
    if price is None or len(prices) > MOST_PRICES or main[prices].any():
        return main
    labels: Bools = main.copy()
    labels[price] = True
    return labels
