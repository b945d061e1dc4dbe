"""Get the LaTeX of a formula from annotations, attributes, or alternative text, or generate it from MathML."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from lxml import etree

from scrapy_dripper.output.items import Formula
from scrapy_dripper.output.math import mathml
from scrapy_dripper.output.math.delimiters import looks_like_formula
from scrapy_dripper.output.math.mathml_tree import inner_text
from scrapy_dripper.output.math.tex import balanced
from scrapy_dripper.output.math.tex_source import clean, undelimited

if TYPE_CHECKING:
    from lxml.etree import _Element

TWIN: Final = Formula("", "twin")
"""Returned for an element to drop, which only repeats a formula."""

TEX_ATTRIBUTES = ("data-tex", "data-latex", "data-formula", "data-katex", "data-equation-content", "data-math")
"""Attributes that hold LaTeX if the class of the element says that it is a formula."""
MAX_ANNOTATIONS = 8
"""Maximum number of LaTeX annotations to check in a formula. On broken pages, they are nested."""

_tex_encoding = re.compile(r"(?:application|text)?/?(?:x-)?(?:la)?tex\b", re.I).fullmatch
_WIRIS = str.maketrans({"«": "<", "»": ">", "¨": '"', "§": "&"})


def from_math(element: _Element, display: bool, origin: str = "") -> Formula:
    """Return the formula of a ``<math>`` element. ``origin`` replaces the origin ``annotation``, if it is given."""
    annotations = (one for one in element.iter("{*}annotation") if _tex_encoding((one.get("encoding") or "").strip()))
    for annotation in islice(annotations, MAX_ANNOTATIONS):
        source = inner_text(annotation)
        if source.strip() and balanced(source):
            return from_source(source, display, origin or "annotation")
    written = next((element.get(key) for key in ("data-latex", "data-tex") if element.get(key)), None)
    if written:
        return from_source(written, display, origin or "annotation")
    alternative = element.get("alttext") or ""
    if alternative and balanced(alternative) and (_is_latexml(element) or looks_like_formula(alternative)):
        return from_source(alternative, display, origin or "alttext")
    made_by = origin if origin in ("katex", "mathjax2", "mathjax3") else "mathml"
    return Formula(mathml.latex(element), made_by, display)


def _is_latexml(element: _Element) -> bool:
    return "ltx_" in (element.get("class") or "")


def from_source(source: str, display: bool, origin: str) -> Formula:
    """Return a formula from its source, which may be in delimiters, or TWIN if the source is empty."""
    tex, displayed = undelimited(clean(source, wikipedia=origin == "wikipedia"))
    display = display if displayed is None else displayed
    return Formula(tex, origin, display) if tex else TWIN


def first_math(element: _Element) -> _Element | None:
    """Return the MathML at the beginning of a wrapper."""
    return next((node for node in islice(element.iter(), 16) if node.tag == "math"), None)


def parsed(source: str) -> _Element | None:
    """Return the MathML in an attribute or a script. WIRIS writes it with other brackets."""
    if "«" in source:
        source = source.translate(_WIRIS)
    parser = etree.HTMLParser(recover=True, no_network=True, remove_comments=True)
    try:
        root = etree.fromstring(source.encode("utf-8", "replace"), parser)
    except (etree.LxmlError, ValueError):
        return None
    return None if root is None else next(root.iter("math"), None)


def attribute_of(element: _Element) -> str | None:
    """Return the LaTeX in an attribute of a formula."""
    return next((value for key in TEX_ATTRIBUTES if (value := element.get(key)) and value.strip()), None)
