"""Recognise code, formulas, figures and captions by the tag and the classes of their elements.

The steps that choose labels, and the writers of the output, use the same recognisers, so that what is kept as a
structure is also written as one. Call-outs are in :mod:`scrapy_dripper.page.callouts`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from scrapy_dripper.page.tags import LONGEST_CLASS

if TYPE_CHECKING:
    from lxml.etree import _Element

FIGURE_CLASSES = frozenset({"wp-caption", "thumb", "thumbinner", "gallery-item", "gallerybox"})
"""Classes of figures in WordPress and MediaWiki."""
_CAPTION_CLASSES = frozenset({"wp-caption-text", "wp-caption-dd", "thumbcaption", "gallerytext", "gallery-caption"})

# These expect lower case, which is searched several times as fast as any case.
_code = re.compile(
    r"h(?:ighlight|ljs)|c(?:ode|rayon|hroma|m-)|lang(?:uage-|[-:])|l(?:ntable|isting)|b(?:rush|lob)|s(?:yntax|nippet|hiki)"
    r"|enlighter|g(?:ist|eshi)|rouge|pr(?:ettyprint|ism)|file(?<!\Sfile)(?!\S)",
).search
"""Each alternative begins with another letter, so most positions are skipped at once."""
_math = re.compile(r"math|katex|mjx|tex\b|latex|ltx_eq|formula|equation|eqn\b|amrendered").search
_line_number = re.compile(
    r"(?:^|[-_])(?:(?:source-)?line[-_]?(?:no|nos|nr|num|nums|number|numbers|numbering|nodiv)|gutter)(?:[-_]|$)"
    r"|^(?:blob-num|crayon-nums?)(?:-|$)|^(?:lnt?|hljs-ln-n(?:umbers)?|numbers|de1-num)$",
).search
"""It finds nothing in a class without ``ln``, ``num``, ``line`` or ``gutter``."""


def has_code_class(name: str) -> bool:
    """Return True if an element with this class attribute may be code."""
    return _has_code_class(name[:LONGEST_CLASS])


@lru_cache(4_096)
def _has_code_class(name: str) -> bool:
    return _code(name.lower()) is not None or has_number_class(name)


def has_number_class(name: str) -> bool:
    """Return True for the class attribute of line numbers, or of a code block that can have them."""
    return _has_number_class(name[:LONGEST_CLASS])


@lru_cache(4_096)
def _has_number_class(name: str) -> bool:
    name = name.lower()
    may = "ln" in name or "num" in name or "line" in name or "gutter" in name
    return may and any(map(_line_number, name.split()))


def has_math_class(name: str) -> bool:
    """Return True if an element with this class attribute may be a formula."""
    return _has_math_class(name[:LONGEST_CLASS])


@lru_cache(4_096)
def _has_math_class(name: str) -> bool:
    return _math(name.lower()) is not None


def is_figure(element: _Element) -> bool:
    """Return True for a ``<figure>`` and its equivalents in WordPress and MediaWiki."""
    return element.tag == "figure" or not FIGURE_CLASSES.isdisjoint(element.get("class", "").split())


def caption_of(figure: _Element) -> _Element | None:
    """Return the caption of a figure: a child or grandchild with the tag or a class of captions."""
    for child in figure:
        if _is_caption(child):
            return child
        for inner in child:
            if _is_caption(inner) and not is_figure(child):
                return inner
    return None


def _is_caption(element: _Element) -> bool:
    return element.tag == "figcaption" or not _CAPTION_CLASSES.isdisjoint(element.get("class", "").split())
