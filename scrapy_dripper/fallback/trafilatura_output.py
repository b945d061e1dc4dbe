"""Get both HTML and text from a single run of Trafilatura. Its own ``extract`` needs one run for each.

Importing this module imports Trafilatura.
"""

from __future__ import annotations

import json
import logging
import re
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from htmldate.extractors import try_date_expr
from lxml import etree
from trafilatura import bare_extraction
from trafilatura.utils import line_processing, trim
from trafilatura.xml import xmltotxt

from scrapy_dripper.config import Config
from scrapy_dripper.data import Extraction
from scrapy_dripper.fallback.methods import MAX_PARAGRAPHS, by_library, parse_all
from scrapy_dripper.output import most_chars
from scrapy_dripper.output.main_html import WRITTEN
from scrapy_dripper.output.urls import unsafe_url
from scrapy_dripper.page.recover import drop_controls
from scrapy_dripper.page.tags import UNSEEN
from scrapy_dripper.structures.tables import MAX_PADDED, MAX_PADDING

if TYPE_CHECKING:
    from lxml.etree import _Element
    from lxml.html import HtmlElement

# Trafilatura warns about every page on which it finds nothing. The stats count these pages anyway.
if logging.getLogger("trafilatura").level == logging.NOTSET:
    logging.getLogger("trafilatura").setLevel(logging.ERROR)

MAX_NUMBERED = 1_000
"""A list with more items than this loses its numbers, because Trafilatura counts all previous items for each one."""

_PARAGRAPHS = tuple(
    "blockquote br caption center col colgroup dd div dl dt fieldset form h1 h2 h3 h4 h5 h6 legend li optgroup option "
    "p pre table td textarea tfoot th thead tr ul".split()
)
"""The elements at which jusText begins a paragraph."""

MAX_SEARCHED = 100_000_000
"""Maximum number of steps of Trafilatura's search for tags in all JSON-LD of a page. A step takes about a
nanosecond.
"""

BETWEEN_RESETS = 20_000_000
"""Characters of documents after which Trafilatura's caches are cleared. Each cache holds a thousand lines of any
length, and a hostile page can be a single line."""
_seen = 0

_NOT_SHOWN = tuple(UNSEEN - {"head", "link", "meta", "script", "title"})
"""Invisible elements that Trafilatura does not need. It copies a tree by writing and parsing HTML, after which the text
of some of these, markup included, would count as text of the page."""

_TAGS = {"quote": "blockquote", "lb": "br", "graphic": "img", "ref": "a", "row": "tr"}
_FORMATTING = {"#b": "strong", "#i": "em", "#u": "u", "#t": "code", "#sub": "sub", "#sup": "sup"}


def by_trafilatura(text: str, url: str, config: Config, size: int) -> Extraction:
    """Return the main content of a page as extracted by Trafilatura, with its text.

    ``size`` is the length of the original document, which limits the size of the output.
    """
    plain = ""

    def extracted(root: HtmlElement) -> str:
        nonlocal plain
        main_html, plain = extract(root, config.favor, config.comments)
        return main_html

    found = by_library(extracted, text, url, config, size)
    limit_caches(len(text))
    if config.markdown.types is not None or found.truncated or len(plain) > most_chars(size, config.limits.output):
        return found
    return replace(found, text=plain)


def extract(root: HtmlElement, favor: str = "balanced", comments: str = "auto") -> tuple[str, str]:
    """Return the HTML and the text of a tree's main content, or empty strings. The tree is modified.

    ``favor`` and ``comments`` are values of ``DRIPPER_FAVOR`` and ``DRIPPER_COMMENTS``. With ``comments="keep"``,
    comments are appended to the main content. Otherwise they are dropped, which is a little closer to what human
    annotators mark as main content.
    """
    drop_controls(root)
    _drop_broken(root)
    etree.strip_elements(root, *_NOT_SHOWN, with_tail=False)
    parse_all(root)
    for numbered in root.iter("ol"):
        if len(numbered) > MAX_NUMBERED:
            numbered.tag = "ul"
    _drop_spans(root)
    found: Any = bare_extraction(
        root,
        fast=sum(1 for _ in root.iter(*_PARAGRAPHS)) > MAX_PARAGRAPHS,
        output_format="xml",  # its Markdown takes quadratic time for unclosed formulas
        include_comments=comments == "keep",
        favor_precision=favor == "precision",
        favor_recall=favor == "recall",
        include_formatting=True,
        include_images=True,
        include_links=True,
        include_tables=True,
    )
    if found is None or found.body is None:
        return "", ""
    if comments == "keep" and found.commentsbody is not None:
        found.body.extend(list(found.commentsbody))
    _drop_padding(found.body)
    plain = deepcopy(found.body)
    etree.strip_elements(plain, "graphic", with_tail=False)
    etree.strip_tags(plain, "ref", "hi")
    text = xmltotxt(plain, False)
    return _html(found.body), normalize("NFC", text).strip()


def _drop_broken(root: HtmlElement) -> None:
    """Remove JSON-LD from a tree if it is not valid JSON, or if Trafilatura's search for tags in it would take long.

    Trafilatura only reads articles from valid JSON-LD. But it first searches broken JSON-LD with regular expressions
    that take quadratic time or more. In valid JSON-LD, its pattern for tags takes time proportional to the distance
    between two angle brackets, multiplied by the number of equals signs there.
    """
    left = MAX_SEARCHED
    for script in root.iter("script"):
        if script.get("type") not in ("application/ld+json", "application/settings+json") or not script.text:
            continue
        left -= sum(len(part) * part.count("=") for part in re.split("[<>]", script.text))
        try:
            json.loads(script.text, strict=False)
            valid = left >= 0
        except (ValueError, RecursionError):
            valid = False
        if not valid:
            script.text = None


def limit_caches(characters: int) -> None:
    """Record the length of a document that Trafilatura has processed, and clear its caches from time to time."""
    global _seen
    _seen += characters
    if _seen > BETWEEN_RESETS:
        _seen = 0
        # trafilatura.meta.reset_caches logs an error for each cache that other libraries no longer have.
        for function in (line_processing, trim, try_date_expr):
            function.cache_clear()


def _drop_spans(root: HtmlElement) -> None:
    """Remove the spans of cells, if most of the cells that they cover would be empty.

    Trafilatura writes an empty cell for each position that a span covers, up to a hundred columns by a hundred rows.
    """
    cells = list(root.iter("td", "th"))
    covered = sum(_span(cell, "colspan") * _span(cell, "rowspan") for cell in cells)
    if covered <= MAX_PADDED or covered <= MAX_PADDING * len(cells):
        return
    for cell in cells:
        for name in ("colspan", "rowspan"):
            cell.attrib.pop(name, None)


def _span(cell: HtmlElement, name: str) -> int:
    value = cell.get(name, "1")
    return min(int(value[:9]), 100) if value.isdecimal() else 1


def _drop_padding(body: _Element) -> None:
    """Remove the empty cells at the end of rows, if most cells are empty.

    Trafilatura pads all rows of a table to the length of the longest one, up to a hundred cells.
    """
    cells = list(body.iter("cell"))
    filled = sum(1 for cell in cells if len(cell) or cell.text)
    if len(cells) <= MAX_PADDED or len(cells) <= MAX_PADDING * filled:
        return
    for row in body.iter("row"):
        for cell in reversed(list(row)):
            if len(cell) or cell.text:
                break
            row.remove(cell)


def _html(body: _Element) -> str:
    """Convert Trafilatura's tree, a dialect of TEI, to HTML."""
    for element in body.iter("*"):
        element.tag = _tag(element)
        if target := element.get("target"):
            element.set("href", target)
        for name in ("href", "src"):
            if unsafe_url(element.get(name, "")):  # writing HTML would escape what tells
                del element.attrib[name]
    body.tag = "body"
    return normalize("NFC", etree.tostring(body, encoding="unicode", method="html"))


def _tag(element: _Element) -> str:
    """Return the HTML tag of a TEI element. Its attribute ``rend`` holds the original tag."""
    name, rend = str(element.tag), element.get("rend") or ""
    if name == "head":
        return rend if re.fullmatch("h[1-6]", rend) else "h3"
    if name == "hi":
        return _FORMATTING.get(rend, "span")
    if name == "list":
        return rend if rend in ("ol", "dl") else "ul"
    if name == "item":
        return rend[:2] if rend.startswith(("dt-", "dd-")) else "li"
    if name == "cell":
        return "th" if element.get("role") == "head" else "td"
    if name == "code":
        return "pre" if len(element) or "\n" in (element.text or "") else "code"
    return _TAGS.get(name) or WRITTEN.get(name, "span")  # it leaves a <title> in code, and tags such as ``p"``
