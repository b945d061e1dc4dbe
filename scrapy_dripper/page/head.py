"""What a page says of itself beside its text: in the head, and in scripts wherever they stand."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from scrapy_dripper.page.page import About

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MATH_SETTINGS = (
    "inlineMath", "renderMathInElement", "delimiters", "AM_", "asciimath", "ASCIIMath", "MathJax", "mathjax", "katex",
)  # fmt: skip
"""Words of scripts that load or set up MathJax, KaTeX or ASCIIMathML."""

MOST_HEADLINES = 3
"""Headlines of a script that are looked at: the first is the page's, those of a list are others'."""
MOST_NAMES = 20
"""Names of the page that are kept, the first: each heading is compared with all."""

# By expression, not by a JSON parser: the JSON of real pages is often broken, and only the names of the types count.
# Bounded, so that brackets and quotes that are never closed cannot take quadratic time.
_types = re.compile(r'"@type"\s*:\s*(\[[^][{}]{0,500}\]|"[^"]{0,200}")').findall
_names = re.compile(r'\b(\w+)"').findall
_headlines = re.compile(r'"headline"\s*:\s*("(?:[^"\\]|\\.){1,300}")').findall
_DESCRIPTIONS = ("description", "og:description")
_TITLES = ("og:title", "twitter:title")
_DATES = ("article:published_time", "datepublished")


def title_and_base(root: HtmlElement, url: str) -> tuple[str | None, str]:
    """Return the document's title and the URL that its links resolve against."""
    # An icon can have a title too: <svg><title>.
    title = next((node for node in root.iter("title") if node.find("..").tag in ("head", "body", "html")), None)
    text = " ".join("".join(title.itertext()).split()) if title is not None else ""
    base = root.find(".//base[@href]")
    base_url = url
    if base is not None:
        # A browser ignores what is no URL, such as "http://[", and a URL of another kind, such as "javascript:x".
        with contextlib.suppress(ValueError):
            joined = urljoin(url, base.get("href", "").strip())
            if urlsplit(joined).scheme in ("http", "https", urlsplit(url).scheme):
                base_url = joined
    return text or None, base_url


def math_settings(elements: Iterable[HtmlElement]) -> tuple[str, ...]:
    """Return the scripts, of these elements, that say how formulas are written: their text, or their URL."""
    scripts = [element for element in elements if element.tag == "script"]
    written = [text for element in scripts for text in (element.get("src"), element.text) if text]
    return tuple(text for text in written if any(word in text for word in MATH_SETTINGS))


def about(elements: Iterable[HtmlElement]) -> About:
    """Return what the scripts and ``meta`` elements among these say of the page."""
    types: set[str] = set()
    kind, description, dated, script_chars = "", 0, False, 0
    headlines: dict[str, None] = {}  # in their order
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
            elif name == "og:type":
                kind = kind or value.lower()
            elif name in _TITLES:
                headlines[value] = None
            elif name == "og:site_name":
                site = site or value
            elif name in _DATES:
                dated = dated or bool(value)
    names = tuple(islice(filter(None, headlines), MOST_NAMES))
    return About(kind, frozenset(types), description, dated, script_chars, names, site)


def _unquoted(text: str) -> str:
    """Return what a string of JSON says; broken ones, and those with entities of HTML, as they are meant."""
    try:
        text = json.loads(text, strict=False)
    except ValueError:
        text = text[1:-1]
    return unescape(text).strip()
