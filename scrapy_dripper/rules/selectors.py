"""Find the elements of CSS selectors and XPath expressions with cssselect and libxml2.

The time is that of libxml2: for ``div p``, it compares each match with all others. Pages with rules are extracted in a
worker process, whose deadline limits it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from cssselect import HTMLTranslator, parse
from cssselect import SelectorError as CssError
from lxml import etree

if TYPE_CHECKING:
    from lxml.html import HtmlElement

Find = Callable[[Sequence["HtmlElement"]], list[int]]
"""Returns the numbers of the elements that a selector selects, in order, given the elements of a page in document
order."""

logger = logging.getLogger(__name__)

LONGEST = 1_000
"""Maximum length of a selector, in characters."""
_literals = re.compile(r"\"[^\"]*\"|'[^']*'").sub


class SelectorError(ValueError):
    """A selector cannot be used. The message says why."""


def is_xpath(selector: str) -> bool:
    """Return True if a selector is XPath, judging by its beginning. No CSS selector begins in this way."""
    return selector.lstrip().startswith(("/", "(", "./"))


@lru_cache(maxsize=10_000)  # the maximum number of rules
def find(selector: str) -> Find:
    """Return a function that finds the elements of a selector. Raise :exc:`SelectorError` if it is invalid."""
    if not 0 < len(selector.strip()) <= LONGEST:
        raise SelectorError(f"expected from 1 to {LONGEST:,} characters")
    return _xpath(selector) if is_xpath(selector) else _css(selector)


def _css(selector: str) -> Find:
    try:
        parsed = parse(selector)
        pseudo = next((one.pseudo_element for one in parsed if one.pseudo_element is not None), None)
        if pseudo is not None:
            raise SelectorError(f"pseudo-elements are not supported (got ::{pseudo})")
        translator = HTMLTranslator()
        path = " | ".join(translator.selector_to_xpath(one, prefix="descendant-or-self::") for one in parsed)
    except (CssError, RecursionError) as error:
        raise SelectorError(str(error)[:200] or type(error).__name__) from None
    return _xpath(path)


def _xpath(selector: str) -> Find:
    if "$" in _literals("", selector):
        raise SelectorError("variables are not supported")
    try:
        path = etree.XPath(selector)
        if not isinstance(path(etree.Element("html")), list):
            raise SelectorError("expected XPath that selects elements, not a number, a string or a boolean")
    except (etree.XPathError, RecursionError) as error:
        raise SelectorError(str(error)) from None

    def found(nodes: Sequence[HtmlElement]) -> list[int]:
        numbers = {node: i for i, node in enumerate(nodes)}
        try:
            selected = cast("list[object]", path(nodes[0]))
        except etree.XPathError as error:  # such as an unknown function, which is only detected when it is called
            _log_once(selector, str(error))
            return []
        return sorted(numbers[node] for node in selected if isinstance(node, etree._Element) and node in numbers)

    return found


@lru_cache(maxsize=1_000)
def _log_once(selector: str, error: str) -> None:
    words = {"selector": selector, "error": error}
    logger.warning("The selector %(selector)r of a rule selects nothing: %(error)s", words)
