"""Read which numbered classes of a page set fonts, from its style sheets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from scrapy_dripper.page.page import Styles

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# The names that word processors make up, such as c7, T12 or ff3. Others may mean anything, such as a price.
_rules = re.compile(r"\.([A-Za-z]{1,2}\d{1,4})\s{0,9}\{([^{}]{0,999})\}").findall


def font_styles(elements: Iterable[HtmlElement]) -> Styles:
    """Return the declarations for numbered classes that set fonts, from the style sheets among some elements."""
    found: dict[str, str] = {}
    for element in elements:
        if element.tag == "style":
            text = element.text or ""
            if "font-" in text:
                found.update((name, rule) for name, rule in _rules(text) if "font-" in rule)
    return found
