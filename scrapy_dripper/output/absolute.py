"""Make the URLs in Main-HTML absolute, so that it can be stored away from its page."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import cast

from lxml import etree

from scrapy_dripper.output.main_html import URL_ATTRIBUTES
from scrapy_dripper.output.urls import resolver

_ATTRIBUTES = URL_ATTRIBUTES | {"data-src"}
_candidates = re.compile(r"(?:^|(?<=,))(\s*)(\S+)").sub
"""Matches the URLs of a ``srcset`` (HTML standard, 4.8.4.2.1). A URL ends at white space, or at commas before it."""


def make_absolute(tree: etree._Element, base_url: str, growth: int = sys.maxsize) -> None:
    """Make the URLs of a tree absolute, in place. Links within the page (``#...``) stay unchanged.

    ``growth`` limits the characters that this adds in total. Once it is used up, URLs are not changed.
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
