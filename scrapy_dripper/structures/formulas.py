"""Recognise formulas, and find the LaTeX in which they were written.

Generators write each formula two or three times: as MathML, as styled boxes, as an image, or as a preview while scripts
load. All but one of them are twins, which are represented by a :class:`Formula` without LaTeX. If the page contains the
author's LaTeX in an annotation, an attribute, an alternative text or a script, it is used. Otherwise, it is generated
from MathML (:mod:`~scrapy_dripper.structures.mathml`). In text, formulas stand between delimiters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final, TypeAlias
from unicodedata import normalize
from urllib.parse import parse_qs, unquote

from lxml import etree
from lxml.etree import _Element

from scrapy_dripper.declared import Notation
from scrapy_dripper.declared.elements import LONGEST_TEXT
from scrapy_dripper.page.nodes import SHORT, inner_text, is_math_script
from scrapy_dripper.page.parse import has_attribute_run
from scrapy_dripper.page.tags import DRAWN, DRAWN_MATHML, by_class
from scrapy_dripper.structures import NEAR
from scrapy_dripper.structures.items import (
    Emphasis,
    Formula,
    LineBreak,
    Run,
    Runs,
    Strong,
    Sub,
    Sup,
    Text,
    without_open_end,
)

TWIN: Final = Formula("", "twin")
"""Returned for an element to drop, which only repeats a formula."""

_CUSTOM = frozenset("math-renderer d-math amp-mathml tex-math math-field".split())
MATH_TAGS = _CUSTOM | {"math", "script", "img", DRAWN}
"""Tags that :func:`formula` recognises without a class."""

TEX_ATTRIBUTES = ("data-tex", "data-latex", "data-formula", "data-katex", "data-equation-content", "data-math")
"""Attributes that hold LaTeX if the class of the element says that it is a formula."""

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
"""Classes of elements whose text or attribute is LaTeX."""
_DISPLAYED = frozenset(
    "display display-formula display-math math-display math-block katex-display katex--display katex-block "
    "js-display-math MathJax_Display latexcenter ql-img-displayed-equation mwe-math-fallback-image-display".split()
)
_IMAGES = frozenset(
    "latex latexcenter tex math mathtex mwe-math-fallback-image-inline mwe-math-fallback-image-display latex-image "
    "ql-img-inline-formula ql-img-displayed-equation quicklatex-auto-format equation_image math-latex".split()
)
_SERVICES = {
    "latex.php": "latex", "zhihu.com/equation": "tex", "render/math": "math", "chart?cht=tx": "chl",
    "codecogs.com/": "", "mimetex.cgi": "", "mathtex.cgi": "",
}  # fmt: skip
"""What is near the beginning of URLs of services that draw formulas, and the parameter with the formula. It is empty if
the whole query is the formula."""

_may_be_math = re.compile(r"math|katex|mjx|tex\b|latex|ltx_eq|formula|equation|eqn\b|amrendered").search
_tex_encoding = re.compile(r"(?:application|text)?/?(?:x-)?(?:la)?tex\b", re.I).fullmatch
_unseen = re.compile("[\\s\u200b-\u200d\u2061-\u2064]+").sub
_unseen_one = re.compile("[\\s\u200b-\u200d\u2061-\u2064]").match
_number = re.compile(r"\s*(?:\(\s*)?([0-9A-Za-z.*']{1,12})\s*(?:\)\s*)?").fullmatch
_settings = re.compile(
    r"^(?:\\(?:inline|dpi\{\d+\}|bg_?\w+|fg_\w+|(?:tiny|small|large|Large|LARGE|huge|Huge)\b|color\{\w+\}|bg\{\w+\})\s*)+"
).sub
_label = re.compile(r"LaTeX:\s*", re.IGNORECASE).match


@by_class
def has_math_class(name: str) -> bool:
    """Return True if an element with this class attribute may be a formula."""
    return _may_be_math(name.lower()) is not None


def formula(element: _Element) -> Formula | None:
    """Return the formula of an element, :data:`TWIN` (without LaTeX) if it is to be dropped, or None.

    Call this for elements of :data:`MATH_TAGS` and those with :func:`has_math_class`, before their content. It never
    raises, and only reads the element, its content and its next siblings.
    """
    by_tag = _BY_TAG.get(element.tag) if isinstance(element.tag, str) else None
    if by_tag is not None:
        return by_tag(element)
    if isinstance(element.tag, str) and element.tag.endswith(":math"):
        return _math(element)
    tokens = frozenset((element.get("class") or "").split())
    if tokens & _KATEX:
        return _katex(element, tokens)
    if tokens & _MATHJAX_2:
        return _mathjax_2(element, tokens)
    if "MathJax_Preview" in tokens or "MathJax_Error" in tokens:
        return _preview(element)
    if "mwe-math-element" in tokens:
        return _of_wrapper(element, "wikipedia", any("block" in token for token in tokens))
    if "ltx_equation" in tokens or "ltx_equationgroup" in tokens:
        return _latexml(element)
    if tokens & _WRITTEN:
        return _written(element, tokens)
    return None


# ---------------------------------------------------------------------- LaTeX and MathML
def from_source(source: str, display: bool, origin: str) -> Formula:
    """Return a formula from its source, which may be in delimiters, or TWIN if the source is empty."""
    tex, displayed = undelimited(normalized(source, wikipedia=origin == "wikipedia"))
    display = display if displayed is None else displayed
    return Formula(tex, origin, display) if tex else TWIN


def _math(element: _Element, display: bool = False, origin: str = "") -> Formula:
    """Return the formula of a ``<math>`` element. ``origin`` is that of its wrapper, if it has one."""
    display = display or element.get("display") == "block" or element.get("mode") == "display" or _in_display(element)
    annotations = (
        node for node in element.iter("{*}annotation") if _tex_encoding((node.get("encoding") or "").strip())
    )
    for annotation in islice(annotations, NEAR):
        source = inner_text(annotation)
        if source.strip() and balanced(source):
            return from_source(source, display, origin or "annotation")
    alternative = element.get("alttext") or ""
    if (
        alternative
        and balanced(alternative)
        and ("ltx_" in (element.get("class") or "") or looks_like_formula(alternative))
    ):
        return from_source(alternative, display, origin or "alttext")
    from scrapy_dripper.structures.mathml import latex  # for few pages

    return Formula(latex(element), origin or "mathml", display)


def _first_math(element: _Element) -> _Element | None:
    """Return the MathML at the beginning of a wrapper."""
    return next((node for node in islice(element.iter(), NEAR) if node.tag == "math"), None)


def _of_wrapper(element: _Element, origin: str, display: bool) -> Formula | None:
    math = _first_math(element)
    return None if math is None else _math(math, display, origin)


def _attribute_of(element: _Element) -> str | None:
    """Return the LaTeX in an attribute of a formula."""
    return next((value for key in TEX_ATTRIBUTES if (value := element.get(key)) and value.strip()), None)


def _has(element: _Element, classes: frozenset[str]) -> bool:
    return not classes.isdisjoint((element.get("class") or "").split())


def _in_display(element: _Element) -> bool:
    parent = element.getparent()
    return parent is not None and _has(parent, _DISPLAYED)


# ---------------------------------------------------------------------- generators
def _katex(element: _Element, tokens: frozenset[str]) -> Formula | None:
    display = not _DISPLAYED.isdisjoint(tokens) or _in_display(element)
    made = _of_wrapper(element, "katex", display)
    if made is not None:
        return made
    source = _attribute_of(element) or _flattened(element)
    return from_source(source, display, "katex") if source else None


def _flattened(element: _Element) -> str | None:
    """Return the LaTeX of KaTeX output whose MathML has lost its tags. It follows the visible characters (CSDN)."""
    held = next((span for span in islice(element.iter("span"), 6) if _has(span, frozenset({"katex-mathml"}))), None)
    if held is None or len(held):
        return None
    text = held.text or ""
    behind = held.getnext()
    if behind is not None and _has(behind, frozenset({"katex-html"})):
        shown = _unseen("", inner_text(behind))
        places = [i for i, character in enumerate(text) if not _unseen_one(character)]
        if 0 < len(shown) < len(places) and Counter(text[i] for i in places[: len(shown)]) == Counter(shown):
            return text[places[len(shown)] :]
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return lines[-1] if len(lines) > 1 else None


def _mathjax_2(element: _Element, tokens: frozenset[str]) -> Formula | None:
    parent = element.getparent()
    around = parent if parent is not None and _has(parent, _MATHJAX_2) else element
    if _has_script_behind(element) or _has_script_behind(around):
        return TWIN
    display = any("isplay" in token for token in tokens)
    frame: _Element | None = element
    for _ in range(3):  # the display element, the frame in it, and the MathML for screen readers at its end
        if frame is None:
            break
        math = _parsed(frame.get("data-mathml") or "")
        if math is None and "MJX_Assistive_MathML" in (frame.get("class") or ""):
            math = _first_math(frame)
        if math is not None:
            return _math(math, display, "mathjax2")
        frame = next(frame.iterchildren(reversed=True), None)
    return None


def _parsed(source: str) -> _Element | None:
    """Return the MathML in an attribute."""
    # Not by the parser of pages, whose limits apply to each call: a page can have thousands of such attributes.
    data = source.replace("\0", "").encode("utf-8", "replace")
    if not data or has_attribute_run(data):
        return None
    parser = etree.HTMLParser(encoding="utf-8", recover=True, no_network=True, remove_comments=True)
    try:
        root = etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError):
        return None
    return None if root is None else next(root.iter("math"), None)


def _mathjax_3(element: _Element) -> Formula | None:
    display = element.get("display") in ("true", "block")
    for child in element.iterchildren():
        if child.tag == DRAWN_MATHML:
            made = _of_wrapper(child, "mathjax3", display)
            if made is not None:
                return made
        elif child.tag == "mjx-math" and child.get("data-latex"):
            return from_source(child.get("data-latex") or "", display, "mathjax3")
    drawn = drawn_math(element, display)
    return _math(drawn, display, "mathjax3") if drawn is not None else None


def _preview(element: _Element) -> Formula | None:
    """Return TWIN for a preview beside its formula, and the formula for a preview without one."""
    if (
        _has_script_behind(element)
        or any(_has(node, _MATHJAX_2) for node in _siblings_behind(element))
        or not inner_text(element).strip()
    ):
        return TWIN
    text = element.text or ""
    return from_source(text, False, "mathjax2") if not len(element) and looks_like_formula(text) else None


def _siblings_behind(element: _Element) -> Iterator[_Element]:
    """Yield up to three next siblings without text before them."""
    for following in islice(element.itersiblings(), 3):
        if (element.tail or "").strip():
            break
        element = following
        yield element


def _has_script_behind(element: _Element) -> bool:
    return any(map(is_math_script, _siblings_behind(element)))


def _script(element: _Element) -> Formula:
    """Return the formula in a script of MathJax 2, or TWIN for other scripts, which are invisible."""
    kind, _, mode = (element.get("type") or "").strip().lower().partition(";")
    return from_source(inner_text(element), "display" in mode, "mathjax2") if kind == "math/tex" else TWIN


# ---------------------------------------------------------------------- written out
def _custom(element: _Element) -> Formula:
    """Return the formula of a custom element, such as ``<d-math>``."""
    display = element.get("block") is not None or element.get("display") in ("block", "true") or _in_display(element)
    display = display or "display" in (element.get("class") or "")
    made = from_source(_attribute_of(element) or inner_text(element), display, "delimiters")
    return replace(made, display=False) if element.get("inline") is not None else made


def _written(element: _Element, tokens: frozenset[str]) -> Formula | None:
    """Return the formula of an element whose text is LaTeX, as written by Pandoc, Sphinx and many editors."""
    display = not _DISPLAYED.isdisjoint(tokens)
    source = _attribute_of(element) or (element.get("data-value") if "ql-formula" in tokens else None)
    if source:
        return from_source(source, display, "annotation")
    is_box = element.tag == "div" and "math" in tokens
    content = _text_of(element)
    if content is None:
        return _picture(element) if is_box else None
    source, number = content
    tex, displayed = undelimited(normalized(source))
    if displayed is None and (not looks_like_formula(tex) or len(tex) > 2_000):
        by_sphinx = "math" in tokens and not tokens.isdisjoint(("inline", "display", "notranslate"))
        if not (len(tex) == 1 and tex.isalpha()) and not (by_sphinx and tex) and "katex-error" not in tokens:
            return None
    return Formula(tex + number, "delimiters", displayed if displayed is not None else display or is_box)


def _text_of(element: _Element) -> tuple[str, str] | None:
    """Return an element's text and its equation number as LaTeX; None if it has other content."""
    pieces = [element.text or ""]
    number = ""
    for child in islice(element.iterchildren(etree.Element), 200):
        name = child.get("class") or ""
        if child.tag == "br":
            pieces.append("\n")
        elif "eqno" in name or "equation-number" in name:
            number = _tag_of(child.text or "")
        elif child.tag != "wbr" and not (child.tag == "a" and "headerlink" in name):
            return None
        pieces.append(child.tail or "")
    return "".join(pieces), number


def _tag_of(text: str) -> str:
    """Return the number of an equation as LaTeX, or an empty string."""
    match = _number(text)
    return f" \\tag{{{match[1]}}}" if match else ""


def _picture(element: _Element) -> Formula | None:
    """Return the formula of a ``<div>`` with its image and its number, as written by Sphinx."""
    made: Formula | None = None
    number = ""
    for node in islice(element.iter(), 12):
        if "eqno" in (node.get("class") or "") and (tag := _tag_of(node.text or "")):
            number = tag
        elif node.tag == "img":
            made = formula_of_image(node)
        elif node.tag not in ("div", "p", "a") or (node.tag != "a" and (node.text or "").strip()):
            return None
    return replace(made, latex=made.latex + number, display=True) if made is not None else None


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
                number = _tag_of(inner_text(cell))
            elif "_pad" not in name:
                tex = " ".join(_math(math).latex for math in cell.iter("math"))
                cells.append(tex.removeprefix("\\displaystyle").strip())
        if any(cells):
            rows.append((" & ".join(cells) + number).strip())
            numbered = numbered or bool(number)
    if not rows:
        return None
    if len(rows) == 1 and len(cells) == 1:
        return Formula(rows[0], "alttext", True)
    name = "align" if numbered else "aligned"
    return Formula(f"\\begin{{{name}}} " + " \\\\ ".join(rows) + f" \\end{{{name}}}", "alttext", True)


# ---------------------------------------------------------------------- images
def formula_of_image(element: _Element) -> Formula | None:
    """Return the formula that an ``<img>`` shows, or None if it is another image."""
    source = element.get("src") or element.get("data-src") or ""
    queried = _queried(source)
    if queried is None and not _has(element, _IMAGES) and element.get("eeimg") is None:
        return None
    written = _attribute_of(element)
    alternative = (element.get("alt") or "").strip()
    label = _label(alternative)
    alternative = alternative[label.end() :] if label else alternative
    if not written and (queried is None or (alternative and looks_like_formula(alternative))):
        written = alternative
    written = written or queried
    if not written:
        return None
    tex, displayed = undelimited(_settings("", normalized(written)).strip())
    if not tex or (
        displayed is None and queried is None and not looks_like_formula(tex) and len(tex) > 1 and " " in tex
    ):
        return None
    by_zhihu = element.get("eeimg") == "2" or ("zhihu.com/equation" in source and alternative.endswith("\\\\"))
    display = by_zhihu or _has(element, _DISPLAYED) or _in_block(element) if displayed is None else displayed
    if "mwe-math" in (element.get("class") or ""):
        return Formula(normalized(written.strip("$"), wikipedia=True), "wikipedia", display)
    return Formula(tex.removesuffix("\\\\").strip(), "image", display)


def _queried(url: str) -> str | None:
    """Return the LaTeX in the URL of an image that a service draws, or None for other URLs."""
    query = url.partition("?")[2]
    parameter = next((name for part, name in _SERVICES.items() if part in url[:SHORT]), None) if query else None
    if parameter is None:
        return None
    if parameter:
        return next(iter(parse_qs(query.partition("#")[0]).get(parameter, ())), None)
    return unquote(query).replace("&space;", " ").replace("&plus;", "+")


def _in_block(element: _Element) -> bool:
    """Return True for an image in a ``<div class="math">`` of Sphinx."""
    parent = element.getparent()
    if parent is not None and parent.tag == "p":
        parent = parent.getparent()
    return parent is not None and parent.tag == "div" and _has(parent, frozenset({"math"}))


_BY_TAG: dict[str, Callable[[_Element], Formula | None]] = {
    "math": _math,
    "script": _script,
    "img": formula_of_image,
    DRAWN: _mathjax_3,
    **dict.fromkeys(_CUSTOM, _custom),
}


# ---------------------------------------------------------------------- the LaTeX of pages
_braces = re.compile(r"\\.|[{}]", re.DOTALL).finditer
# The lookbehind makes white space match from its beginning only, and not from each of its characters.
_comment = re.compile(r"(?<!\\)%[^\n]*(?:\n[ \t]*|\Z)").sub
_cdata = re.compile(r"(?:%\s*|(?<!\s)\s+)?<!\[CDATA\[\s*|(?:(?<!\s)\s+)?(?:%\s*)?\]\]>").sub
_blank_lines = re.compile(r"(?:(?<![ \t\r])[ \t\r]+)?\n\s*").sub
_in_style = re.compile(r"\{\s*\\(?:displaystyle|textstyle)\b(.*)\}", re.DOTALL).fullmatch


def normalized(source: str, wikipedia: bool = False) -> str:
    """Return LaTeX without comments and blank lines and, with ``wikipedia``, without the style that Wikipedia adds."""
    tex = source.replace("\r\n", "\n").replace("\xa0", " ").replace("\u200b", "")
    if "<![" in tex:
        tex = _cdata("", tex)
    if "%" in tex and "\n" in tex:
        # Without a following line, a comment is kept, as it may just be a percent sign.
        tex = _comment(lambda comment: "" if "\n" in comment[0] else comment[0], tex)
    if "\n" in tex:
        tex = _blank_lines("\n", tex)
    tex = tex.strip()
    if wikipedia:
        styled = _in_style(tex)
        if styled and balanced(tex[1:-1]):
            tex = styled[1].strip()
    return without_open_end(tex)


def undelimited(tex: str) -> tuple[str, bool | None]:
    """Return LaTeX without its delimiters, and whether they are those of a display formula; None without delimiters."""
    for opening, closing in CLOSING.items():
        if tex.startswith(opening) and tex.endswith(closing) and len(tex) >= len(opening) + len(closing):
            inner = tex[len(opening) : -len(closing)]
            plain = inner.replace("\\$", "") if opening[0] == "$" else inner
            if opening not in plain and closing not in plain:
                return without_open_end(inner), opening in DISPLAY
    return tex, None


def balanced(tex: str) -> bool:
    """Return True if braces are balanced, ignoring escaped ones."""
    depth = 0
    for brace in _braces(tex):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth < 0:
            return False
    return depth == 0


# ---------------------------------------------------------------------- formulas that MathJax has drawn
_DRAWN = frozenset(
    "math mrow mfrac msqrt mroot msup msub msubsup munder mover munderover mtable mtr mlabeledtr mtd mstyle mspace "
    "mpadded mphantom menclose merror mi mo mn mtext ms".split()
)
_PARTS = ("base", "box", "root", "under", "over", "num", "den", "script")
"""Names of the wrappers that MathJax draws around the parts of an element, in the order of MathML."""
_TOKENS = frozenset("mi mo mn mtext ms".split())
_UNREAD = frozenset(
    {"surd", "spacer", "nstrut", "dstrut", "tstrut", "strut", "line", "assistive-mml", "speech", "defs"}
)
"""Nodes that only draw something."""
_character = re.compile(r"(?:^|\s)mjx-c([0-9A-F]{1,6})(?=\s|$)").search
_code_point = re.compile(r"[0-9A-F]{2,5}").fullmatch
_italic = re.compile("[\U0001d434-\U0001d467\U0001d6e2-\U0001d71b\u210e]").sub


def drawn_math(container: _Element, display: bool) -> _Element | None:
    """Return the ``<math>`` that MathJax 3 or 4 has drawn, as boxes (CHTML) or as an image (SVG), or None.

    Both have an element for each element of the MathML. Characters are code points in class names and attributes.
    """
    root = etree.Element("math")
    open_elements = [root]
    walk = etree.iterwalk(container, events=("start", "end"))
    for event, node in walk:
        tag = str(node.tag)
        name = tag[4:] if tag.startswith("mjx-") else node.get("data-mml-node") or tag
        name = "mrow" if name.lower() == "texatom" else name
        is_read = name in _DRAWN or name in _PARTS
        if event == "end":
            if is_read:
                _arrange(open_elements.pop(), display)
        elif name in _UNREAD:
            walk.skip_subtree()
        elif is_read:
            element = etree.SubElement(open_elements[-1], name if name in _DRAWN else "mrow")
            if name in _PARTS:
                element.set("part", name)
            open_elements.append(element)
        elif open_elements[-1].tag in _TOKENS:
            match = _character(node.get("class") or "")
            code = match[1] if match else node.get("data-c") or ""
            number = int(code, 16) if _code_point(code) else 0
            if _is_character(number):
                # Variables are in italics by default.
                shown = _italic(lambda letter: normalize("NFKC", letter[0]), chr(number))
                open_elements[-1].text = (open_elements[-1].text or "") + shown
    return root if len(root) else None


def _is_character(number: int) -> bool:
    """Return False for a control, a surrogate, and U+FFFE and the like. lxml does not take most of them."""
    return not (number < 0x20 or 0x7F <= number < 0xA0 or 0xD800 <= number < 0xE000 or number & 0xFFFE == 0xFFFE)


def _arrange(element: _Element, display: bool) -> None:
    """Put the children of an element in the order of MathML."""
    children = [child for child in element if child.text != "\u221a" or element.tag not in ("msqrt", "mroot")]
    parts = {child.get("part"): child for child in children}
    if "script" in parts:  # the superscript comes first
        element.remove(parts["script"])
        element.extend(list(parts["script"])[::-1])
    elif "box" in parts and element.tag == "munderover":  # the box holds the base and the lower limit
        element[:] = [*parts["box"][0], *(child for child in children if child is not parts["box"])]
    elif None not in parts:
        element[:] = sorted(children, key=lambda child: _PARTS.index(child.get("part") or ""))
    elif len(children) < len(element):
        element[:] = children
    elif len(children) == 3 and (
        element.tag == "msubsup" or (element.tag == "munderover" and not display and children[0].tag == "mo")
    ):  # in an image, limits come in order, but of two scripts the superscript comes first
        element[:] = [children[0], children[2], children[1]]


# ---------------------------------------------------------------------- delimiters of MathJax and KaTeX, in text
# ``\(..\)``, ``\[..\]`` and amsmath environments are unambiguous. Dollar signs are not: most of them are prices, and
# some are shell variables. Unless the page is configured for them (Notation), the text between two must look like a
# formula.
MAX_INLINE = 1_000
"""Maximum length of a formula between single dollar signs, in characters."""

Span: TypeAlias = "tuple[int, int, Formula]"

NOTATION = Notation()
CLOSING = {
    "\\(": "\\)", "\\[": "\\]", "$$": "$$", "$": "$",
    "[tex]": "[/tex]", "[itex]": "[/itex]", "[latex]": "[/latex]", "[math]": "[/math]",
}  # fmt: skip
"""Delimiters of formulas."""
DISPLAY = frozenset({"\\[", "$$", "[tex]", "[latex]"})
"""Delimiters of formulas that stand by themselves."""
_OPAQUE = "\ufffc"  # replaces a run that cannot be part of a formula

_environments = (
    r"(?:equation|align|alignat|gather|multline|flalign|eqnarray|displaymath|math|aligned|gathered|split|dcases|cases"
    r"|[pbvBV]?matrix|array)\*?"
)
_may_begin = re.compile(r"[\\$]|\[[iltmILTM]").search  # without IGNORECASE, it skips to these marks
_delimiter = re.compile(
    rf"\\(?:[()\[\]]|(?:begin|end)\{{{_environments}\}}|[\\$])|\$+|\[/?(?:i?tex|latex|math)\]", re.IGNORECASE
).finditer
_environment = re.compile(r"\\(begin|end)(\{.*\})", re.IGNORECASE).fullmatch
_alone = re.compile(r"\{(?:equation|align|alignat|gather|multline|flalign|eqnarray|displaymath|math)\*?\}").fullmatch

_tex = re.compile(
    r"\\[A-Za-z]{2,}|\\[,;!{}|]|(?:(?<![^\W_])[A-Za-z]|[})\]])[_^](?:\{|\\|[^\W_](?![^\W_])|[-+(*])|\d\^[{\d]"
).search
_words = re.compile(r"[^\W\d_]{2,}").findall
_names = frozenset(
    "sin cos tan cot sec csc log ln lg exp lim min max sup inf mod gcd lcm det dim ker deg arg sgn var cov dx dy dz dt "
    "ab ac bc abc cd xy xz yz pq ax bx by mn ij nk mc kx nx iff".split()
)
_letter = re.compile(r"[A-Za-z]").search
_amount = re.compile(r"\s*[-+]?\d[\d.,]*\s*(?:[kKmMbBtT]n?|mil\w*|bil\w*|USD|[-–—%]|$)?(?![A-Za-z\\^_(=+*])").match
_dangling = re.compile(r"(?:[-+=<>*/,;:&|(\[{]|\.\.)\Z").search
_prose = re.compile(r"\A[a-z]{3,}[\s,.;:]*\Z|[\"“”]|\b[a-z]{3,}\s+[a-z]{2}").search

# Scripts without spaces, in which a letter beside a dollar sign is not part of the same word.
_unspaced = re.compile("[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef]").match


def looks_like_formula(tex: str) -> bool:
    """Return True if a text is more likely a formula than prose, a price or a shell variable."""
    if _tex(tex):
        return True
    if not _letter(tex) or not tex.isascii() or _amount(tex) or _dangling(tex):
        return False
    return all(word in _names or (len(word) < 4 and word.isupper()) for word in _words(tex))


def join_formulas(runs: Runs, notation: Notation = NOTATION) -> Runs:
    """Find formulas that extend over several runs of a line, and merge their runs.

    A display formula may contain line breaks. If a Markdown converter has turned underscores of a formula into
    emphasis, they are restored.
    """
    if not _may_hold(runs):
        return runs
    pieces = [_source(run) for run in runs]
    whole = "".join(pieces)
    formulas = list(spans(whole, notation))
    if not formulas:
        return runs
    joined: list[Run] = []
    at = 0
    todo: Iterator[Span | None] = iter([*formulas, None])
    span = next(todo)
    for run, piece in zip(runs, pieces, strict=True):
        begin, end = at, at + len(piece)
        while span is not None and span[1] <= begin and span[0] < begin:
            span = next(todo)
        if type(run) is not Text:
            if span is None or not (span[0] < begin and end <= span[1]):
                joined.append(run)
            at = end
            continue
        while span is not None and span[0] < end:
            if begin < span[0]:
                joined.append(Text(whole[begin : span[0]]))
            if span[0] >= at:
                joined.append(span[2])
            begin = min(end, max(begin, span[1]))
            if span[1] > end:
                break
            span = next(todo)
        if begin < end:
            joined.append(Text(whole[begin:end]))
        at = end
    return tuple(joined)


def _may_hold(runs: Runs) -> bool:
    """Return True if a text among runs has a mark that can begin a formula."""
    for run in runs:
        if type(run) is Text:
            text = run.text
            if "$" in text or "\\" in text or ("[" in text and _may_begin(text)):
                return True
    return False


def _source(run: Run) -> str:
    """Return the LaTeX source that a run may have had in a formula."""
    if type(run) is Text:
        return run.text
    if type(run) is LineBreak:
        return "\n"
    if type(run) in (Emphasis, Strong, Sub, Sup) and all(type(inner) is Text for inner in run.runs):  # type: ignore[union-attr]
        inner = "".join(inner.text for inner in run.runs)  # type: ignore[union-attr]
        before, after = {Emphasis: ("_", "_"), Strong: ("__", "__"), Sub: ("_{", "}"), Sup: ("^{", "}")}[type(run)]
        return inner if "\\(" in inner or "$" in inner else f"{before}{inner}{after}"
    return _OPAQUE


def spans(text: str, notation: Notation = NOTATION) -> Iterator[Span]:
    """Yield the start and end of each formula in a text, including its delimiters, and the formula."""
    if _may_begin(text) is None:
        return
    marks = [(match.start(), match.end(), match[0].lower()) for match in _delimiter(text)]
    closes = _next_marks(marks)
    partners = _environments_of(marks)
    i = 0
    while i < len(marks):
        start = marks[i][0]
        if i in partners:
            j = partners[i]
            formula = _environment_formula(text, start, marks[j][1])
        else:
            j = closes[i]
            formula = _formula(text, marks, i, j, notation) if j else None
        if formula is None:
            i += 1
        else:
            yield start, marks[j][1], formula
            i = j + 1


def _next_marks(marks: list[tuple[int, int, str]]) -> list[int]:
    """Return for each delimiter the index of the next one that closes it, or 0 if there is none.

    Each closing delimiter only closes the nearest :data:`NEAR` ones, because the text between each pair is read.
    """
    following: dict[str, int] = {}
    opened = [0] * len(marks)
    closes = [0] * len(marks)
    for i in range(len(marks) - 1, -1, -1):
        mark = marks[i][2]
        j = following.get(CLOSING.get(mark, ""), 0)
        opened[j] += 1
        closes[i] = j if opened[j] <= NEAR else 0
        following[mark] = i
    return closes


def _environments_of(marks: list[tuple[int, int, str]]) -> dict[int, int]:
    """Match each ``\\begin`` with its ``\\end``."""
    partners: dict[int, int] = {}
    open_: list[tuple[int, str]] = []
    for i, (_, _, mark) in enumerate(marks):
        match = _environment(mark)
        if match is None:
            continue
        if match[1] == "begin":
            open_.append((i, match[2]))
        elif open_ and open_[-1][1] == match[2]:
            partners[open_.pop()[0]] = i
    return partners


def _environment_formula(text: str, start: int, stop: int) -> Formula | None:
    if stop - start > LONGEST_TEXT:
        return None
    tex = text[start:stop]
    if not _alone(tex[6 : tex.index("}") + 1].lower()) or _OPAQUE in tex:
        return None
    return Formula(" ".join(tex.split(" ")).strip(), "delimiters", not tex.lower().startswith("\\begin{math}"))


def _formula(text: str, marks: list[tuple[int, int, str]], i: int, j: int, notation: Notation) -> Formula | None:
    """Return the formula between delimiters i and j, or None."""
    mark = marks[i][2]
    begin, end = marks[i][1], marks[j][0]
    if mark == "$":
        return _between_dollars(text, begin, end, notation) if end - begin <= MAX_INLINE else None
    if end - begin > LONGEST_TEXT:
        return None
    tex = text[begin:end]
    inner = tex.strip()
    if not inner or _OPAQUE in inner:
        return None
    if mark == "$$" and not notation.dollars and not looks_like_formula(inner):
        return None
    if inner != tex and _prose(inner) and not _tex(inner):  # a regular expression or a shell option
        return None
    return Formula(inner, "delimiters", mark in DISPLAY)


def _between_dollars(text: str, begin: int, end: int, notation: Notation) -> Formula | None:
    """Return the formula between two dollar signs, or None."""
    tex = text[begin:end]
    inner = tex.strip()
    if not inner or _OPAQUE in inner or "\n\n" in inner:
        return None
    if inner.startswith("latex ") and _tex(inner):  # WordPress
        return Formula(inner[6:].strip(), "delimiters")
    before, after = text[begin - 2 : begin - 1] if begin > 1 else "", text[end + 1 : end + 2]
    if notation.dollars or notation.loaded:
        before, after = ("" if _unspaced(char) else char for char in (before, after))
    if before.isalnum() or after.isdigit():  # US$5, and $5-$6
        return None
    if notation.dollars and inner == tex and not (_amount(inner) and " " in inner):
        return Formula(inner, "delimiters")
    if (inner != tex and not notation.dollars) or after.isalpha() or not looks_like_formula(inner):
        return None
    return Formula(inner, "delimiters")
