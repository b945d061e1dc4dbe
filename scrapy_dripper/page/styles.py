"""Read what the style sheets of a page declare for its classes: fonts, white space, and what is not shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from scrapy_dripper.page.page import Styles

if TYPE_CHECKING:
    from lxml.html import HtmlElement

LONGEST_RULE = 1_000
"""Maximum length of the selectors, and of the declarations, of a rule."""

_telling = re.compile(r"(?:white-space|display|visibility)[\w-]{0,20}\s{0,9}:[^;]{1,99}").findall
# The names that word processors make up, such as c7, T12 or ff3. Fonts of others may mean anything, such as a price.
_made_up = re.compile(r"[A-Za-z]{1,2}\d{1,4}").fullmatch
_class = re.compile(
    r"\s*(?:[^\s:>]{1,99}[\s>]{1,9})?[a-z]{0,10}\.([\w-]{1,99})(?:\[[^\]]{1,99}\])?(?:[\s>]{1,9}(?:p|div|span|li|td))?\s*"
).fullmatch
"""Matches a selector that a class decides: ``.poem``, ``p.poem``, ``.post .poem``, ``.poem p``."""


def class_styles(elements: Iterable[HtmlElement]) -> Styles:
    """Return the declarations for classes that set white space or hide, and those that set the fonts of numbered
    classes, from the style sheets among some elements. Those for some media, such as print, are left out.
    """
    found: dict[str, str] = {}
    for element in elements:
        text = element.text or "" if element.tag == "style" else ""
        if not any(word in text for word in ("font-", "white-space", "display", "visibility")):
            continue
        depth = 0
        for part in text.split("}"):
            depth = max(0, depth + part.count("{") - 1)
            before, _, rule = part.rpartition("{")
            if depth or len(part) > 2 * LONGEST_RULE:
                continue
            told = ";".join(_telling(rule))
            if not told and "font-" not in rule:
                continue
            for selector in before.rpartition(";")[2].rpartition("/")[2].split(","):
                match = _class(selector)
                declared = told if match is None or not _made_up(match[1]) else rule
                if match and declared:
                    found[match[1]] = f"{found.get(match[1], '')};{declared}"[-LONGEST_RULE:]
    return found
