"""The price of a product stays with its name."""

from __future__ import annotations

import json

import numpy as np
import pytest

from scrapy_dripper import Config, Document
from scrapy_dripper.choose.below_headline import with_price
from scrapy_dripper.choose.given import Given
from scrapy_dripper.page import read


def added(body: str, price: str = "168.00", main: str = "A lamp") -> list[str]:
    """Return the blocks that become main on a page that declares a price."""
    data = json.dumps({"@type": "Product", "name": "Lamp", "offers": {"@type": "Offer", "price": price}})
    page = read(Document(f"<script type='application/ld+json'>{data}</script>{body}"), Config())
    before = np.array([text.startswith(main) for text in page.blocks.text])
    after = with_price(Given(page, np.where(before, 0.9, 0.1).astype(np.float32)), before)
    return [text for text, new in zip(page.blocks.text, after & ~before, strict=True) if new]


NAME, TEXT = "<h1>Lamp</h1>", "<p>A lamp of brass, for tables."


@pytest.mark.parametrize("price", ["$168.00", "168,00 €", "168.00 zł", "USD 168.00"])
def test_the_declared_price_is_kept(price: str) -> None:
    assert added(f"<div>{price}</div>{NAME}<span>{price}</span><p>Add to cart{TEXT}<div>{price}</div>") == [price]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<span>$98.00 $130.00</span>", ["$98.00 $130.00"]),
        ("<p>By Ann<p>€ 132,34<p>$150", ["€ 132,34"]),
        ("<a href=/other>$98.00</a>", []),
        ("<p>Over $98.00", []),
        ("<p>brass" * 9 + "<p>$98.00", []),
    ],
)
def test_a_price_right_below_the_name_need_not_be_declared(markup: str, expected: list[str]) -> None:
    assert added(f"<h1>A lamp</h1>{markup}{TEXT}", price="") == expected


def test_without_a_heading_the_first_main_block_is_the_name() -> None:
    assert added(f"<div>A lamp</div><span>$168.00</span>{TEXT}") == ["$168.00"]


@pytest.mark.parametrize(
    "body",
    [
        f"{NAME}<span>$99.00</span>{TEXT}",  # not declared
        f"{NAME}<span>168 00</span>{TEXT}",  # a number, but no price
        f"{NAME}<p>For $168.00 you get a lamp that is made of brass{TEXT}",  # a sentence
        f"<div>$168.00</div>{NAME}{TEXT}",  # above the name
        f"{NAME}{TEXT}<footer>$168.00</footer>",
        f"{NAME}{TEXT}<div hidden>$168.00</div>",
        NAME + TEXT + "<p>Another lamp<div>$168.00</div>" * 9,  # a list of products
    ],
)
def test_what_is_not_the_price(body: str) -> None:
    assert added(body) == []


def test_a_page_without_main_content_has_no_price() -> None:
    assert added(f"{NAME}<span>$168.00</span>", main="nothing") == []
