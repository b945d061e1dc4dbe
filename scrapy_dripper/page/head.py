"""Facts about a page from its ``<head>``, its scripts and its style sheets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING, Any

from scrapy_dripper.characters import without_controls
from scrapy_dripper.metadata.json_ld import parsed
from scrapy_dripper.metadata.tree import base_url, without_signs
from scrapy_dripper.page.page import About, Styles

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MATH_SETTINGS = ("delimiters", "katex", "inlineMath", "renderMathInElement", "MathJax", "mathjax")
"""Words that occur in scripts that load or configure MathJax or KaTeX."""

LONGEST_SHEET = 200_000
"""Maximum number of characters of a style sheet to read."""
MOST_HEADLINES = 3
"""Maximum number of headlines to read from a script. The first is the page's own; a list holds those of other pages."""
MOST_NAMES = 20
"""Maximum number of names and of descriptions of the page to keep, because blocks are compared with all of them."""

# Regular expressions instead of a JSON parser, because the JSON of real pages is often broken. They are bounded, so
# that unclosed brackets and quotes cannot take quadratic time.
_types = re.compile(r'"@type"\s*:\s*(\[[^][{}]{0,500}\]|"[^"]{0,200}")').findall
_names = re.compile(r'\b(\w+)"').findall
_headlines = re.compile(r'"headline"\s*:\s*("(?:[^"\\]|\\.){1,300}")').findall
# The names that word processors make up, such as c7, T12 or ff3. Others may mean anything, such as a price.
_rules = re.compile(r"\.([A-Za-z]{1,2}\d{1,4})\s{0,9}\{([^{}]{0,999})\}").findall
_DESCRIPTIONS = ("description", "og:description")
_TITLES = ("og:title", "twitter:title")
_DATES = ("article:published_time", "datepublished")


def title_and_base(root: HtmlElement, url: str) -> tuple[str | None, str]:
    """Return the document's title and the URL that its links resolve against."""
    # An icon can have a title, too: <svg><title>.
    title = next((node for node in root.iter("title") if node.getparent().tag in ("head", "body", "html")), None)
    text = without_controls(" ".join("".join(title.itertext()).split())) if title is not None else ""
    base = next((href for node in root.iter("base") if (href := node.get("href")) is not None), None)
    return without_signs(text) or None, url if base is None else base_url(url, base.strip())


def math_settings(elements: Iterable[HtmlElement]) -> tuple[str, ...]:
    """Return the text or the URL of each script that configures how the page writes formulas."""
    scripts = [element for element in elements if element.tag == "script"]
    written = [text for element in scripts for text in (element.get("src"), element.text) if text]
    return tuple(text for text in written if any(word in text for word in MATH_SETTINGS))


def json_ld_values(elements: Iterable[HtmlElement]) -> list[Any]:
    """Return the JSON-LD of the scripts among some elements. Scripts that are not valid JSON are skipped."""
    return [
        value
        for element in elements
        if element.tag == "script" and "ld+json" in (element.get("type") or "").lower()
        for value in parsed(element.text or "")
    ]


def font_styles(elements: Iterable[HtmlElement]) -> Styles:
    """Return the declarations for numbered classes that set fonts, from the style sheets among some elements."""
    found: dict[str, str] = {}
    for element in elements:
        if element.tag == "style":
            text = (element.text or "")[:LONGEST_SHEET]
            if "font-" in text:
                found.update((name, rule) for name, rule in _rules(text) if "font-" in rule)
    return found


def about(elements: Iterable[HtmlElement]) -> About:
    """Return the facts about the page from its scripts and ``meta`` elements. Other elements are ignored."""
    types: set[str] = set()
    kind, description, dated, script_chars = "", 0, False, 0
    headlines: dict[str, None] = {}  # ordered sets
    descriptions: dict[str, None] = {}
    site = ""
    for element in elements:
        if element.tag == "script":
            text = element.text or ""
            if "ld+json" in (element.get("type") or "").lower():
                for found in _types(text.lower()):
                    types.update(_names(found))
                headlines |= dict.fromkeys(map(_unquoted, _headlines(text)[:MOST_HEADLINES]))
            else:
                script_chars += len(text)
        elif element.tag == "meta":
            name = (element.get("property") or element.get("name") or element.get("itemprop") or "").strip().lower()
            value = (element.get("content") or "").strip()
            if name in _DESCRIPTIONS:
                description = max(description, len(value))
                descriptions[value] = None
            elif name == "og:type":
                kind = kind or value.lower()
            elif name in _TITLES:
                headlines[value] = None
            elif name == "og:site_name":
                site = site or value
            elif name in _DATES:
                dated = dated or bool(value)
    names, told = (tuple(islice(filter(None, values), MOST_NAMES)) for values in (headlines, descriptions))
    return About(kind, frozenset(types), description, told, dated, script_chars, names, site)


def _unquoted(text: str) -> str:
    """Return the value of a JSON string. Tolerate broken strings and HTML entities."""
    try:
        text = json.loads(text, strict=False)
    except ValueError:
        text = text[1:-1]
    return unescape(text).strip()
