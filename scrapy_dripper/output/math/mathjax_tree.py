"""Rebuild MathML from the output of MathJax 3 and 4, boxes (CHTML) or drawings (SVG), if a page has nothing else.

Both have an element for each element of the original MathML. Characters are code points in class names and attributes.
MathJax writes the superscript before the subscript.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from unicodedata import normalize

from lxml import etree

if TYPE_CHECKING:
    from lxml.etree import _Element

_TOKENS = frozenset({"mi", "mo", "mn", "mtext", "ms"})
_ELEMENTS = _TOKENS | frozenset(
    "math mrow mfrac msqrt mroot msup msub msubsup munder mover munderover mtable mtr mlabeledtr mtd mstyle mspace "
    "mpadded mphantom menclose merror".split()
)
_PARTS = frozenset({"over", "under", "base", "num", "den", "root", "script", "box"})
"""Names of the CHTML wrappers around the parts of an element."""
_DRAWN = frozenset({"surd", "spacer", "nstrut", "dstrut", "tstrut", "strut", "line", "assistive-mml", "speech", "defs"})
"""Nodes that only draw something."""
_SCRIPTS = frozenset({"msub", "msup", "msubsup", "munder", "mover", "munderover"})
_STRETCHED = {
    **dict.fromkeys(range(0x239B, 0x239E), "("), **dict.fromkeys(range(0x239E, 0x23A1), ")"),
    **dict.fromkeys(range(0x23A1, 0x23A4), "["), **dict.fromkeys(range(0x23A4, 0x23A7), "]"),
    **dict.fromkeys(range(0x23A7, 0x23AA), "{"), **dict.fromkeys(range(0x23AB, 0x23AE), "}"), 0x23AA: "", 0x23D0: "|",
}  # fmt: skip
"""Pieces from which large delimiters are drawn, and the delimiter."""

_DELIMITERS = frozenset("()[]{}|")

_character = re.compile(r"(?:^|\s)mjx-c([0-9A-F]{1,6})(?=\s|$)").search
_code_point = re.compile(r"[0-9A-F]{1,6}").fullmatch
_line = re.compile("[\u2013\u2014\u2015\u203e]+").fullmatch
_brace = re.compile("[\ue150-\ue156]").search
_italic = re.compile("[\U0001d434-\U0001d467\U0001d6e2-\U0001d71b\u210e]").sub


def drawn_math(container: _Element, display: bool) -> _Element | None:
    """Return the ``<math>`` from which a ``<mjx-container>`` was drawn, or None if it is empty."""
    root = etree.Element("math")
    open_elements: list[tuple[_Element, str, list[str]]] = [(root, "", [])]
    walk = etree.iterwalk(container, events=("start", "end"))
    for event, node in walk:
        name = _name(node)
        is_part = name in _PARTS
        if event == "end":
            if is_part or name in _ELEMENTS:
                element, tag, pieces = open_elements.pop()
                element.text = "".join(pieces)
                _arrange(element, tag, display)
        elif name in _DRAWN:
            walk.skip_subtree()
        elif name == "container" and node is not container:
            return None
        elif is_part or name in _ELEMENTS:
            element = etree.SubElement(open_elements[-1][0], "mrow" if is_part else name)
            if is_part:
                element.set("part", name)
            open_elements.append((element, name, []))
        elif open_elements[-1][1] in _TOKENS:
            pieces = open_elements[-1][2]
            more = _text(node)
            if not (pieces and pieces[-1] == more and more in _DELIMITERS):  # drawn from several pieces
                pieces.append(more)
    _arrange(root, "", display)
    inner = root[0] if len(root) == 1 and root[0].tag == "math" else root
    return inner if len(inner) else None


def _name(node: _Element) -> str:
    """Return the name of the MathML element, or of the part of one, that a node draws."""
    tag = str(node.tag)
    name = tag[4:] if tag.startswith("mjx-") else node.get("data-mml-node") or tag
    return "mrow" if name.lower() == "texatom" else name


def _text(node: _Element) -> str:
    found = _character(node.get("class") or "")
    code = found[1] if found else node.get("data-c") or ""
    if not _code_point(code):
        return node.text or "" if node.tag == "mjx-utext" or node.get("data-variant") else ""
    number = int(code, 16)
    if number in _STRETCHED:
        return _STRETCHED[number]
    if number > 0x10FFFF or 0xD800 <= number < 0xE000 or number < 0x20:
        return ""
    # Variables are in italics by default.
    return _italic(lambda match: normalize("NFKC", match[0]), chr(number))


def _arrange(element: _Element, tag: str, display: bool) -> None:
    """Put the children of an element in the order of MathML."""
    children = list(element)
    parts = {child.get("part"): child for child in children if child.get("part")}
    if tag in ("msqrt", "mroot"):
        children = [child for child in children if not (child.tag == "mo" and child.text == "\u221a")]
        box, index = parts.get("box"), parts.get("root")
        if box is not None:
            children = [box, *([index] if index is not None else [])]
    elif tag == "mfrac" and "num" in parts and "den" in parts:
        children = [parts["num"], parts["den"]]
    elif tag in _SCRIPTS:
        children = _scripts(tag, children, parts, display)
    else:
        return
    for child in list(element):
        element.remove(child)
    element.extend(children)


def _scripts(tag: str, children: list[_Element], parts: dict[str | None, _Element], display: bool) -> list[_Element]:
    """Return the base, the lower and the upper script or limit, in this order."""
    script = parts.get("script")
    if script is not None:
        first = [child for child in children if child is not script]
        inner = list(script)
        return [*first[:1], *(inner[::-1] if len(inner) == 2 else inner)]
    mark = children[1] if len(children) == 2 and tag in ("munder", "mover") else None
    if mark is not None and mark.text and mark.get("part") is None:
        mark.text = _wide(mark.text, tag)
    base, box = parts.get("base"), parts.get("box")
    if box is not None and len(box) == 1:  # the box holds the base and the lower limit
        return [*box[0], *(child for child in children if child is not box)]
    if base is None and len(children) == 3:
        # In SVG, limits come in order, but the superscript comes first. Inline, limits of operators are scripts.
        are_scripts = tag == "msubsup" or (not display and children[0].tag == "mo")
        return [children[0], children[2], children[1]] if are_scripts else children
    if base is None:
        return children
    marks = [parts[name] for name in ("under", "over") if name in parts]
    for one in marks[0] if marks and len(marks[0]) == 1 else ():
        one.text = _wide(one.text or "", tag)
    return [children[0] if base is None else base, *marks]


def _wide(text: str, tag: str) -> str:
    """Return a line or brace above or below a term as a single character. MathJax draws it from several pieces."""
    if _line(text):
        return "\u203e" if tag == "mover" else "_"
    return ("\u23de" if tag == "mover" else "\u23df") if _brace(text) else text
