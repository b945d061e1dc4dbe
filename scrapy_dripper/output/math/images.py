"""Formulas that are images, with LaTeX in the alternative text or in the URL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_plus

from scrapy_dripper.output.items import Formula
from scrapy_dripper.output.math.delimiters import looks_like_formula
from scrapy_dripper.output.math.sources import from_math, parsed
from scrapy_dripper.output.math.tex_source import clean, undelimited

if TYPE_CHECKING:
    from lxml.etree import _Element

_CLASSES = frozenset(
    "latex latexcenter tex math mathtex mwe-math-fallback-image-inline mwe-math-fallback-image-display latex-image "
    "ql-img-inline-formula ql-img-displayed-equation quicklatex-auto-format equation_image eeimg ee_img Wirisformula "
    "math-latex texrender latex_image wp-latex".split()
)
_DISPLAYED = frozenset({"latexcenter", "ql-img-displayed-equation", "mwe-math-fallback-image-display"})
_PICTURED = {
    r"latex\.php\?": r"(?:[^#]*?&)?latex=(?P<form1>[^&#]+)",
    r"zhihu\.com/equation\?": r"(?:[^#]*?&)?tex=(?P<form2>[^&#]+)",
    r"codecogs\.com/(?:[a-z]+\.latex|[a-z]+\.image|eq\.latex|gif\.download|png\.download)\?": r"(?P<raw1>.+)",
    r"(?:mime|math)tex\.cgi\?": r"(?P<raw2>.+)",
    r"[?&]cht=tx&": r"(?:[^#]*?&)?chl=(?P<form3>[^&#]+)",
    r"render/math\?": r"(?:[^#]*?&)?math=(?P<form4>[^&#]+)",
    r"math\.(?:now\.sh|vercel\.app)/?\?": r"(?:[^#]*?&)?from=(?P<form5>[^&#]+)",
    r"i\.upmath\.me/(?:svg|png|svgb)/": r"(?P<raw3>.+)",
    r"/equation_images/": r"(?P<twice>[^?#]+)",
}
"""URL patterns of services that draw formulas: the beginning, and the rest with the formula."""
# Matched in two steps, because the beginning can match at many places of a URL.
_service = re.compile("|".join(_PICTURED), re.IGNORECASE).search
_service_and_query = re.compile("|".join(map("".join, _PICTURED.items())), re.IGNORECASE).match
_settings = re.compile(
    r"^(?:\\(?:inline|dpi\{\d+\}|bg_?\w+|fg_\w+|(?:tiny|small|large|Large|LARGE|huge|Huge)\b|color\{\w+\}|bg\{\w+\})\s*)+"
).sub
_label = re.compile(r"LaTeX:\s*", re.IGNORECASE).match


def formula_of_image(element: _Element) -> Formula | None:
    """Return the formula that an ``<img>`` shows, or None if it is another image."""
    tokens = (element.get("class") or "").split()
    math = parsed(element.get("data-mathml") or "") if "Wirisformula" in tokens else None
    if math is not None:
        return from_math(math, math.get("display") == "block")
    source = element.get("src") or element.get("data-src") or ""
    known = not _CLASSES.isdisjoint(tokens) or element.get("eeimg") is not None
    query = _query(source)
    if not known and query is None:
        return None
    written = element.get("data-equation-content") or element.get("data-latex") or element.get("data-tex")
    alternative = (element.get("alt") or "").strip()
    label = _label(alternative)
    if label:
        alternative = alternative[label.end() :]
    if not written and (query is None or (alternative and looks_like_formula(alternative))):
        written = alternative
    if not written and query is not None:
        written = _from_url(query)
    if not written:
        return None
    tex, displayed = undelimited(_settings("", clean(written)).strip())
    if not tex or (displayed is None and query is None and not looks_like_formula(tex) and len(tex) > 1 and " " in tex):
        return None
    is_wide = element.get("eeimg") == "2" or (_is_zhihu(source) and alternative.endswith("\\\\"))
    display = displayed if displayed is not None else is_wide or not _DISPLAYED.isdisjoint(tokens) or _in_block(element)
    if "mwe-math" in " ".join(tokens):
        return Formula(clean(written.strip("$"), wikipedia=True), "wikipedia", display)
    return Formula(tex.removesuffix("\\\\").strip(), "image", display)


def _query(url: str) -> re.Match[str] | None:
    """Return the match of the formula in a URL, with a named group of :data:`_PICTURED`."""
    if not ("?" in url or "upmath" in url or "equation_images" in url):
        return None
    service = _service(url)
    return _service_and_query(url, service.start()) if service else None


def _from_url(query: re.Match[str]) -> str:
    name = query.lastgroup or ""
    value = query[name]
    if name == "twice":
        return unquote(unquote(value))
    tex = unquote_plus(value) if name.startswith("form") else unquote(value)
    return tex.replace("&space;", " ").replace("&plus;", "+").replace("&hash;", "#")


def _is_zhihu(source: str) -> bool:
    return "zhihu.com/equation" in source


def _in_block(element: _Element) -> bool:
    """Return True for an image in a ``<div class="math">`` of Sphinx."""
    parent = element.getparent()
    if parent is not None and parent.tag == "p":
        parent = parent.getparent()
    return parent is not None and parent.tag == "div" and "math" in (parent.get("class") or "").split()
