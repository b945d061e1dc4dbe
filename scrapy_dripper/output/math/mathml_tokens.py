"""Convert MathML tokens to LaTeX: identifiers, numbers, operators, text and spaces (MathML 3, 3.2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy_dripper.output.math.mathml_tree import BAR_OF, em, operator_of, token
from scrapy_dripper.output.math.tex import characters, styled, text
from scrapy_dripper.output.math.tex_symbols import BARS, CLOSING, FUNCTIONS, OPENING, SYMBOLS, TEXT_ESCAPES, alphabet

if TYPE_CHECKING:
    from lxml.etree import _Element

VARIANTS = {
    "normal": "mathrm", "italic": "mathit", "bold": "mathbf", "bold-italic": "boldsymbol", "double-struck": "mathbb",
    "script": "mathcal", "bold-script": "mathcal", "fraktur": "mathfrak", "bold-fraktur": "mathfrak",
    "sans-serif": "mathsf", "bold-sans-serif": "mathsf", "sans-serif-italic": "mathsf",
    "sans-serif-bold-italic": "mathsf", "monospace": "mathtt", "-tex-calligraphic": "mathcal", "-tex-mathit": "mathit",
}  # fmt: skip
"""Font names of MathML and MathJax, and their LaTeX commands."""

_TEXT_VARIANTS = {"bold": "textbf", "italic": "textit", "monospace": "texttt", "sans-serif": "textsf"}
_SPACES = ((1.5, "\\qquad "), (0.8, "\\quad "), (0.25, "\\;"), (0.2, "\\:"), (0.1, "\\,"), (-0.05, ""))
_SIZES = ((2.3, "\\Bigg"), (1.9, "\\bigg"), (1.5, "\\Big"), (0.0, "\\big"))

_thousands = re.compile(r"(?<=\d),(?=\d{3}(?!\d))").sub


def identifier(element: _Element, function: bool = False) -> str:
    """Convert an ``<mi>``. ``function`` means that it is applied to what follows."""
    name = token(element)
    if name in BAR_OF:
        return SYMBOLS[BAR_OF[name]]
    variant = element.get("data-mjx-variant") or element.get("mathvariant") or ""
    if len(name) > 1 and name not in SYMBOLS:
        known = "".join(name.split())
        plain = known.isascii() and known.isalnum()
        if known in FUNCTIONS:
            return "\\" + known
        if plain and (function or element.get("data-mjx-texclass") == "OP"):
            return f"\\operatorname{{{known}}}"
        if " " in name or (name.isalpha() and not name.isascii() and not any(alphabet(char)[0] for char in name)):
            return text(name)
        if plain and not variant:
            variant = "normal"
    return _in_font(characters(name), variant, name)


def number(element: _Element) -> str:
    """Convert an ``<mn>``."""
    digits = token(element)
    return _in_font(_thousands("{,}", characters(digits)), element.get("mathvariant") or "", digits)


def operator(element: _Element) -> str:
    """Convert an ``<mo>``, without the space around it between two terms."""
    name = token(element)
    if len(name) > 1 and name not in SYMBOLS:
        known = "".join(name.split())
        if known in FUNCTIONS:
            return "\\" + known
        if known == "mod":
            return " \\bmod "
        if known.isascii() and known.isalpha():
            return f"\\operatorname{{{known}}}"
        if " " in name:
            return text(name)
    name = operator_of(element) or name
    written = SYMBOLS.get(name) or characters(name)
    if element.get("minsize") and (name in OPENING or name in CLOSING or name in BARS or name == "/"):
        return f"{_step(_SIZES, em(element.get('minsize') or ''))}{written}"
    return written


def words(of: str, variant: str) -> str:
    """Convert the text of an ``<mtext>``, or a part of it. A single symbol becomes a symbol of the formula."""
    inner = of.strip()
    if (inner in SYMBOLS and not inner.isalnum() and inner not in TEXT_ESCAPES) or any(
        alphabet(char)[0] for char in inner if char > "\u2000"
    ):
        return characters(inner)
    if of and not inner and of.strip(" \t\r\n\xa0"):
        return SYMBOLS.get(of, "\\ ")
    return text(of, _TEXT_VARIANTS.get(variant, "text"))


def string(element: _Element) -> str:
    """Convert an ``<ms>``, with its quotes."""
    return text(token(element).join((element.get("lquote") or '"', element.get("rquote") or '"')))


def space(element: _Element) -> str:
    """Convert an ``<mspace>``."""
    if element.get("linebreak") == "newline":
        return " \\\\ "
    width = em(element.get("width") or "0")
    return "\\!" if width < -0.05 else _step(_SPACES, width)


def glyph(element: _Element) -> str:
    """Convert an ``<mglyph>``, which is an image, to its alternative text."""
    return text(element.get("alt") or "")


def _in_font(written: str, variant: str, name: str) -> str:
    command = VARIANTS.get(variant)
    if command is None or not written or (command == "mathit" and len(name) == 1):
        return written
    if command == "mathrm" and not (name.isascii() and name.isalnum() and not name.isdecimal()):
        return written
    return styled(written, command)


def _step(steps: tuple[tuple[float, str], ...], value: float) -> str:
    return next((command for least, command in steps if value >= least), "")


TOKEN_WRITERS: dict[str, Callable[[_Element], str]] = {
    "mi": identifier, "mn": number, "mo": operator, "ms": string, "mspace": space, "mglyph": glyph,
}  # fmt: skip
