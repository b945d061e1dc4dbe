"""Absolute URLs in Main-HTML, for who stores it away from its page."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from lxml import etree

from scrapy_dripper.output.bounds import UNBOUNDED
from scrapy_dripper.output.main_html import URL_ATTRIBUTES
from scrapy_dripper.output.urls import resolver

_ATTRIBUTES = URL_ATTRIBUTES | {"data-src"}
_candidates = re.compile(r"(?:^|(?<=,))(\s*)(\S+)").sub
"""URLs of a ``srcset`` (HTML standard, 4.8.4.2.1): each ends at white space, or before commas in front of it."""


def make_absolute(tree: etree._Element, base_url: str, growth: int = UNBOUNDED) -> None:
    """Make the URLs of a tree absolute, in place; those that lead to a place in the page itself stay.

    ``growth`` is how many characters they may add; where they would add more, the others stay as they are.
    """
    resolve = resolver(base_url, growth)
    for element in tree.iter(etree.Element):
        for name, value in cast("list[tuple[str, str]]", element.items()):
            if name in _ATTRIBUTES and value[:1] != "#":
                element.set(name, resolve(value))
            elif name == "srcset":
                element.set(name, _candidates(lambda one: one[1] + _resolved(one[2], resolve), value))


def _resolved(url: str, resolve: Callable[[str], str]) -> str:
    bare = url.rstrip(",")
    return resolve(bare) + url[len(bare) :]
