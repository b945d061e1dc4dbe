"""Recognise formulas, and find the LaTeX in which they were written.

Generators write each formula two or three times: as MathML, as styled boxes, as an image, or as a preview while scripts
load. All but one of them are twins, which are represented by a :class:`Formula` without LaTeX. If the page contains the
author's LaTeX in an annotation, an attribute, an alternative text or a script, it is used. Otherwise, it is generated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, unquote_plus

from lxml import etree

from scrapy_dripper.output.items import Formula
from scrapy_dripper.output.math import mathml
from scrapy_dripper.output.math.delimiters import (
    Notation,
    join_formulas,
    looks_like_formula,
    notation,
)
from scrapy_dripper.output.math.mathjax_tree import drawn_math
from scrapy_dripper.output.math.tex import balanced, clean, undelimited
from scrapy_dripper.output.text import inner_text

if TYPE_CHECKING:
    from lxml.etree import _Element


TWIN: Final = Formula("", "twin")
"""Returned for an element to drop, which only repeats a formula."""

TEX_ATTRIBUTES = ("data-tex", "data-latex", "data-formula", "data-katex", "data-equation-content", "data-math")
"""Attributes that hold LaTeX if the class of the element says that it is a formula."""
MAX_ANNOTATIONS = 8
"""Maximum number of LaTeX annotations to check in a formula. On broken pages, they are nested."""

_tex_encoding = re.compile(r"(?:application|text)?/?(?:x-)?(?:la)?tex\b", re.I).fullmatch


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
    if (
        alternative
        and balanced(alternative)
        and ("ltx_" in (element.get("class") or "") or looks_like_formula(alternative))
    ):
        return from_source(alternative, display, origin or "alttext")
    made_by = origin if origin in ("katex", "mathjax2", "mathjax3") else "mathml"
    return Formula(mathml.latex(element), made_by, display)


def from_source(source: str, display: bool, origin: str) -> Formula:
    """Return a formula from its source, which may be in delimiters, or TWIN if the source is empty."""
    tex, displayed = undelimited(clean(source, wikipedia=origin == "wikipedia"))
    display = display if displayed is None else displayed
    return Formula(tex, origin, display) if tex else TWIN


def first_math(element: _Element) -> _Element | None:
    """Return the MathML at the beginning of a wrapper."""
    return next((node for node in islice(element.iter(), 16) if node.tag == "math"), None)


def parsed(source: str) -> _Element | None:
    """Return the MathML in an attribute or a script."""
    parser = etree.HTMLParser(recover=True, no_network=True, remove_comments=True)
    try:
        root = etree.fromstring(source.encode("utf-8", "replace"), parser)
    except (etree.LxmlError, ValueError):
        return None
    return None if root is None else next(root.iter("math"), None)


def attribute_of(element: _Element) -> str | None:
    """Return the LaTeX in an attribute of a formula."""
    return next((value for key in TEX_ATTRIBUTES if (value := element.get(key)) and value.strip()), None)


_IMAGE_CLASSES = frozenset(
    "latex latexcenter tex math mathtex mwe-math-fallback-image-inline mwe-math-fallback-image-display latex-image "
    "ql-img-inline-formula ql-img-displayed-equation quicklatex-auto-format equation_image eeimg ee_img "
    "math-latex texrender latex_image wp-latex".split()
)
_DISPLAYED_IMAGES = frozenset({"latexcenter", "ql-img-displayed-equation", "mwe-math-fallback-image-display"})
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
    source = element.get("src") or element.get("data-src") or ""
    known = not _IMAGE_CLASSES.isdisjoint(tokens) or element.get("eeimg") is not None
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
    is_wide = element.get("eeimg") == "2" or ("zhihu.com/equation" in source and alternative.endswith("\\\\"))
    wide = is_wide or not _DISPLAYED_IMAGES.isdisjoint(tokens) or _in_block(element)
    display = wide if displayed is None else displayed
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


def _in_block(element: _Element) -> bool:
    """Return True for an image in a ``<div class="math">`` of Sphinx."""
    parent = element.getparent()
    if parent is not None and parent.tag == "p":
        parent = parent.getparent()
    return parent is not None and parent.tag == "div" and "math" in (parent.get("class") or "").split()


__all__ = [
    "MATH_TAGS",
    "TWIN",
    "Notation",
    "formula",
    "join_formulas",
    "notation",
]

MATH_TAGS = frozenset(
    "math script img mjx-container math-renderer d-math amp-mathml tex-math math-field mjx-assistive-mml".split()
)
"""Tags that :func:`formula` recognises without a class."""

_TWIN_CLASSES = frozenset({"katex-html", "MathJax_Preview", "MathJax_Error"})
_HELD = frozenset({"katex-mathml"})
_MATHJAX_2 = frozenset(
    "MathJax MathJax_Display MathJax_SVG MathJax_SVG_Display MathJax_CHTML MathJax_PHTML MathJax_MathML mjx-chtml "
    "MJXc-display MathJax_PHTML_Display MathJax_MathML_Display".split()
)
_KATEX = frozenset({"katex", "katex-display", "katex-mathml", "katex--inline", "katex--display", "katex-block"})
_WRITTEN = frozenset(
    "math maths math-tex mathjax-tex math-container math-inline math-block math-display math-expression arithmatex "
    "ztext-math ql-formula tex latex katex-error js-inline-math js-display-math formula equation inline-formula "
    "display-formula mathquill-embedded-latex mathjax_process tex-math inline-math display-math math-latex".split()
)
_DISPLAYED = frozenset(
    "display display-formula display-math math-display math-block katex-display katex--display katex-block "
    "js-display-math MathJax_Display".split()
)
_STYLES = frozenset({"em", "i", "sub", "sup", "strong", "b", "br", "wbr"})
_STYLE_TEX = {"em": ("_", "_"), "i": ("_", "_"), "strong": ("__", "__"), "b": ("__", "__"), "sub": ("_{", "}"),
              "sup": ("^{", "}"), "br": ("\n", ""), "wbr": ("", "")}  # fmt: skip
_unseen = re.compile("[\\s\u200b-\u200d\u2061-\u2064]+").sub
_unseen_one = re.compile("[\\s\u200b-\u200d\u2061-\u2064]").match
_number = re.compile(r"\s*(?:\(\s*)?([0-9A-Za-z.*']{1,12})\s*(?:\)\s*)?").fullmatch


def formula(element: _Element) -> Formula | None:
    """Return the formula of an element, :data:`TWIN` (without LaTeX) if it is to be dropped, or None.

    Call this for elements of :data:`MATH_TAGS` and those with ``has_math_class``, before their content. It never
    raises, and only reads the element, its content and its next siblings.
    """
    by_tag = _BY_TAG.get(element.tag) if isinstance(element.tag, str) else None
    if by_tag is not None:
        return by_tag(element)
    if isinstance(element.tag, str) and element.tag.endswith(":math"):
        return _math(element)
    name = element.get("class")
    if not name:
        return None
    tokens = frozenset(name.split())
    if tokens & _KATEX:
        return _katex(element, tokens)
    if tokens & _MATHJAX_2:
        return _mathjax_2(element, tokens)
    if tokens & _TWIN_CLASSES:
        return _preview(element, tokens)
    if "mwe-math-element" in tokens:
        return _wikipedia(element, name)
    if "ltx_equation" in tokens or "ltx_equationgroup" in tokens:
        return _latexml(element)
    if tokens & _WRITTEN:
        return _written(element, tokens)
    return None


# ---------------------------------------------------------------------- MathML
def _math(element: _Element) -> Formula:
    display = element.get("display") == "block" or element.get("mode") == "display"
    return from_math(element, display or _in_display(element))


def _in_display(element: _Element) -> bool:
    parent = element.getparent()
    return parent is not None and _has(parent, _DISPLAYED)


def _has(element: _Element, classes: frozenset[str]) -> bool:
    return not classes.isdisjoint((element.get("class") or "").split())


# ---------------------------------------------------------------------- generators
def _katex(element: _Element, tokens: frozenset[str]) -> Formula | None:
    display = not _DISPLAYED.isdisjoint(tokens) or _in_display(element)
    math = first_math(element)
    if math is not None:
        return from_math(math, display or math.get("display") == "block", "katex")
    source = attribute_of(element) or _flattened(element)
    return from_source(source, display, "katex") if source else None


def _flattened(element: _Element) -> str | None:
    """Return the LaTeX of KaTeX output whose MathML has lost its tags. It follows the visible characters (CSDN)."""
    near = list(islice(element.iter("span"), 6))
    held = next((span for span in near if _has(span, _HELD)), None)
    if held is None or len(held):
        return None
    text = held.text or ""
    behind = held.getnext()
    if behind is not None and _has(behind, _TWIN_CLASSES):
        shown = _unseen("", inner_text(behind))
        places = [i for i, character in enumerate(text) if not _unseen_one(character)]
        if 0 < len(shown) < len(places) and Counter(text[i] for i in places[: len(shown)]) == Counter(shown):
            return text[places[len(shown)] :]
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return lines[-1] if len(lines) > 1 else None


def _wikipedia(element: _Element, name: str) -> Formula | None:
    math = first_math(element)
    display = "-block" in name or "display" in name
    if math is not None:
        return from_math(math, display or math.get("display") == "block", "wikipedia")
    image = next((node for node in islice(element.iter(), 16) if node.tag == "img"), None)
    source = image.get("alt") if image is not None else None
    return from_source(source, display, "wikipedia") if source else None


def _mathjax_2(element: _Element, tokens: frozenset[str]) -> Formula | None:
    if _script_behind(element) is not None:
        return TWIN
    parent = element.getparent()
    if parent is not None and _has(parent, _MATHJAX_2) and _script_behind(parent) is not None:
        return TWIN
    display = not _DISPLAYED.isdisjoint(tokens) or any("isplay" in token for token in tokens)
    frame = element
    for _ in range(2):  # the display element and the frame in it
        source = frame.get("data-mathml")
        if source:
            math = parsed(source)
            if math is not None:
                return from_math(math, display or math.get("display") == "block", "mathjax2")
        children = list(islice(frame.iterchildren(reversed=True), 1))
        if not children:
            break
        last = children[0]
        if "MJX_Assistive_MathML" in (last.get("class") or ""):
            math = first_math(last)
            if math is not None:
                return from_math(math, display or math.get("display") == "block", "mathjax2")
        frame = last
    return None


def _mathjax_3(element: _Element) -> Formula | None:
    display = element.get("display") in ("true", "block")
    for child in element.iterchildren():
        if child.tag == "mjx-assistive-mml":
            math = first_math(child)
            if math is not None:
                return from_math(math, display or math.get("display") == "block", "mathjax3")
        elif child.tag == "mjx-math" and child.get("data-latex"):
            return from_source(child.get("data-latex") or "", display, "mathjax3")
    source = attribute_of(element)
    if source:
        return from_source(source, display, "mathjax3")
    drawn = drawn_math(element, display)
    return from_math(drawn, display, "mathjax3") if drawn is not None else None


def _preview(element: _Element, tokens: frozenset[str]) -> Formula | None:
    """Return TWIN for a preview beside its formula, and the formula for a preview without one."""
    if "katex-html" in tokens:
        before = element.getprevious()
        return TWIN if before is not None and "katex-mathml" in (before.get("class") or "") else None
    if (
        _script_behind(element) is not None
        or any(_has(node, _MATHJAX_2) for node in _siblings_behind(element))
        or not inner_text(element).strip()
    ):
        return TWIN
    text = element.text or ""
    return from_source(text, False, "mathjax2") if not len(element) and looks_like_formula(text) else None


def _siblings_behind(element: _Element) -> list[_Element]:
    """Return up to three next siblings without text before them."""
    found: list[_Element] = []
    while len(found) < 3 and not (element.tail or "").strip():
        following = element.getnext()
        if following is None:
            break
        element = following
        found.append(element)
    return found


def _script_behind(element: _Element) -> _Element | None:
    return next(
        (node for node in _siblings_behind(element) if (node.get("type") or "").strip().lower().startswith("math/")),
        None,
    )


def _script(element: _Element) -> Formula | None:
    """Return the formula in a script of MathJax 2, or TWIN for other scripts, which are invisible."""
    kind, _, mode = (element.get("type") or "").strip().lower().partition(";")
    source = inner_text(element)
    display = "display" in mode
    if kind == "math/tex":
        return from_source(source, display, "mathjax2")
    if kind == "math/mml":
        math = parsed(source)
        return from_math(math, display or math.get("display") == "block", "mathjax2") if math is not None else TWIN
    return TWIN


# ---------------------------------------------------------------------- written out
def _custom(element: _Element) -> Formula | None:
    """Return the formula of a custom element, such as ``<d-math>``."""
    display = element.get("block") is not None or element.get("display") in ("block", "true") or _in_display(element)
    if "display" in (element.get("class") or ""):
        display = True
    found = from_source(attribute_of(element) or inner_text(element), display, "delimiters")
    return replace(found, display=False) if element.get("inline") is not None else found


def _assistive(element: _Element) -> Formula | None:
    math = first_math(element)
    return from_math(math, math.get("display") == "block", "mathjax3") if math is not None else TWIN


def _written(element: _Element, tokens: frozenset[str]) -> Formula | None:
    """Return the formula of an element whose text is LaTeX, as written by Pandoc, Sphinx and many editors."""
    display = not _DISPLAYED.isdisjoint(tokens)
    if "katex-error" in tokens:
        return from_source(inner_text(element), display, "katex")
    source = attribute_of(element) or (element.get("data-value") if "ql-formula" in tokens else None)
    if source:
        return from_source(source, display, "annotation")
    found = _text_of(element)
    if found is None:
        return _picture(element) if element.tag == "div" and "math" in tokens else None
    source, number, styled = found
    tex, displayed = undelimited(clean(source))
    if displayed is None and (styled or not looks_like_formula(tex) or len(tex) > 2_000):
        single = len(tex) == 1 and tex.isalpha() and not styled
        if not single and not (_sphinx(tokens) and tex and not styled):
            return None
    display = displayed if displayed is not None else display or (element.tag == "div" and "math" in tokens)
    if number:
        tex += f" \\tag{{{number}}}"
    return Formula(tex, "delimiters", display)


def _picture(element: _Element) -> Formula | None:
    """Return the formula of a ``<div>`` with its image and its number, as written by Sphinx."""
    made: Formula | None = None
    number = ""
    for node in islice(element.iter(), 12):
        found = _number(node.text or "") if "eqno" in (node.get("class") or "") else None
        if found:
            number = f" \\tag{{{found[1]}}}"
        elif node.tag == "img":
            made = formula_of_image(node)
        elif node.tag not in ("div", "p", "a") or (node.tag != "a" and (node.text or "").strip()):
            return None
    return replace(made, latex=made.latex + number, display=True) if made is not None else None


def _sphinx(tokens: frozenset[str]) -> bool:
    return "math" in tokens and ("inline" in tokens or "display" in tokens or "notranslate" in tokens)


def _text_of(element: _Element) -> tuple[str, str, bool] | None:
    """Return an element's text, its equation number, and whether it is styled; None if it has other content."""
    pieces = [element.text or ""]
    number = ""
    styled = False
    for child in islice(element.iterchildren(), 200):
        tag = child.tag
        name = child.get("class") or "" if isinstance(tag, str) else ""
        if not isinstance(tag, str) or tag == "wbr":
            pass
        elif "eqno" in name or "equation-number" in name:
            found = _number(child.text or "")
            number = found[1] if found else ""
        elif tag in _STYLES and not len(child):
            before, after = _STYLE_TEX[tag]
            pieces += [before, child.text or "", after]
            styled = styled or tag != "br"
        elif not (tag == "a" and "headerlink" in name):
            return None
        pieces.append(child.tail or "")
    return "".join(pieces), number, styled


def _latexml(element: _Element) -> Formula | None:
    """Return an equation, or a group of equations, that LaTeXML writes as a table with the number in the last cell."""
    if element.tag != "table":
        return None
    rows: list[str] = []
    numbered = False
    for row in islice(element.iter("tr"), 200):
        cells: list[str] = []
        number = ""
        for cell in row.iterchildren("td", "th"):
            name = cell.get("class") or ""
            if "ltx_intertext" in name:
                return None
            if "eqno" in name:
                found = _number(inner_text(cell))
                number = f" \\tag{{{found[1]}}}" if found else ""
            elif "_pad" not in name:
                tex = " ".join(from_math(math, True).latex for math in cell.iter("math"))
                cells.append(tex.removeprefix("\\displaystyle").strip())
        if not any(cells):
            continue
        rows.append((" & ".join(cells) + number).strip())
        numbered = numbered or bool(number)
    if not rows:
        return None
    if len(rows) == 1 and len(cells) == 1:
        return Formula(rows[0], "alttext", True)
    name = "align" if numbered else "aligned"
    return Formula(f"\\begin{{{name}}} " + " \\\\ ".join(rows) + f" \\end{{{name}}}", "alttext", True)


_BY_TAG: dict[str, Callable[[_Element], Formula | None]] = {
    "math": _math,
    "script": _script,
    "img": lambda element: formula_of_image(element),
    "mjx-container": _mathjax_3,
    "mjx-assistive-mml": _assistive,
    "math-renderer": _custom,
    "d-math": _custom,
    "amp-mathml": _custom,
    "tex-math": _custom,
    "math-field": _custom,
}
