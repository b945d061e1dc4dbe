"""Convert Presentation MathML (MathML 3, chapter 3) to LaTeX, for formulas without their LaTeX source.

The result is what an author would write for KaTeX or MathJax with amsmath and amssymb: ``x^2`` instead of
``{x}^{2}``, ``\\left(`` only around tall content, ``\\begin{pmatrix}`` for a table in parentheses. Braces are always
balanced.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING

from scrapy_dripper.output.math.tex import (
    ACCENTS,
    ACCENTS_BELOW,
    BARS,
    BINARY,
    CLOSING,
    FUNCTIONS,
    LARGE,
    LIMITS,
    OPENING,
    RELATIONS,
    STRETCHED,
    SYMBOLS,
    TEXT_ESCAPES,
    alphabet,
    argument,
    characters,
    group,
    join,
    optional,
    polish,
    styled,
    text,
    tidy,
)
from scrapy_dripper.output.text import inner_text

if TYPE_CHECKING:
    from lxml.etree import _Element


NO_DELIMITER = "."
"""An invisible delimiter, as in LaTeX."""

TOKENS = frozenset({"mi", "mn", "mo", "mtext", "ms"})
ROWS = frozenset({"mrow", "mstyle", "mpadded", "math", "mtd"})
_SCRIPTED = frozenset({"msub", "msup", "msubsup", "munder", "mover", "munderover", "mrow", "mstyle"})

BAR_OF = {"∣": "|", "∥": "‖", "❘": "|", "\uff5c": "|", "||": "‖"}
"""Characters that can be relations or delimiters, and the delimiter."""

_UNITS = {"em": 1.0, "rem": 1.0, "ex": 0.43, "px": 1 / 16, "pt": 1 / 12, "mu": 1 / 18, "cm": 2.4, "mm": 0.24, "in": 6.0}

_white_space = re.compile("[ \t\r\n]+").split
_length = re.compile(r"\s*([-+]?[0-9]*\.?[0-9]+)\s*([a-z]*)").match


def tag_of(part: _Element) -> str:
    """Return the name of an element without prefix or namespace."""
    return str(part.tag).rpartition("}")[2].rpartition(":")[2].lower()


def children(element: _Element) -> list[_Element]:
    """Return the elements in an element."""
    return [child for child in element if isinstance(child.tag, str)]


def token(element: _Element) -> str:
    """Return the characters of a token element with XML white space collapsed."""
    words = inner_text(element) if len(element) else element.text or ""
    if words.isascii() and words.isalnum():
        return words
    return unicodedata.normalize("NFC", " ".join(filter(None, _white_space(words))))


def sole(part: _Element) -> _Element:
    """Return the only child of a part if the part is just a group, or else the part itself."""
    for _ in range(8):
        if tag_of(part) not in ("mrow", "mstyle", "mpadded") or len(inner := children(part)) != 1:
            break
        part = inner[0]
    return part


def operator_of(part: _Element) -> str | None:
    """Return the characters of an operator, which may be in a group, or None for other parts."""
    part = sole(part)
    tag = tag_of(part)
    if tag == "mi":  # KaTeX writes \\| as an identifier
        return BAR_OF.get(part.text or "")
    if tag != "mo":
        return None
    name = token(part)
    texclass = part.get("data-mjx-texclass")
    if not name:
        return NO_DELIMITER if part.get("fence") == "true" or texclass in ("OPEN", "CLOSE") else ""
    if name in BAR_OF and (part.get("fence") == "true" or texclass in ("OPEN", "CLOSE", "ORD")):
        return BAR_OF[name]
    return name


def core(part: _Element) -> str | None:
    """Return the operator of a part, ignoring scripts and accents, such as the text above an arrow."""
    for _ in range(4):
        if tag_of(part) not in _SCRIPTED or not (inner := children(part)):
            break
        part = sole(inner[0])
    return operator_of(part)


def joins_terms(operators: list[str | None], i: int) -> bool:
    """Return True if operator i is binary, such as a minus that is not a sign."""
    if not 0 < i < len(operators) - 1:
        return False
    before = operators[i - 1]
    return before is None or not (
        before in RELATIONS or before in BINARY or before in OPENING or before in (",", ";", ":")
    )


def pairs(row: Sequence[_Element], operators: list[str | None]) -> dict[int, int]:
    """Match the delimiters in a row: return the index of the closing one for each opening one, properly nested."""
    found: dict[int, int] = {}
    stack: list[int] = []
    for i, name in enumerate(operators):
        if name is None:
            continue
        if name == NO_DELIMITER:
            if stack and i:
                found[stack.pop()] = i
            elif not i:
                stack.append(i)
        elif name in BARS or name == "∥":
            _bar(row[i], i, operators, stack, found)
        elif name in OPENING:
            stack.append(i)
        elif name in CLOSING:
            while stack and operators[stack[-1]] not in OPENING and operators[stack[-1]] != NO_DELIMITER:
                stack.pop()
            if stack:
                found[stack.pop()] = i
    return found


def _bar(part: _Element, i: int, operators: list[str | None], stack: list[int], found: dict[int, int]) -> None:
    """Decide whether a delimiter that can open or close does one or the other."""
    part = sole(part)
    form = part.get("form") or part.get("data-mjx-texclass")
    if form not in ("prefix", "OPEN") and stack and operators[stack[-1]] in (operators[i], NO_DELIMITER):
        found[stack.pop()] = i
    elif form not in ("postfix", "CLOSE"):
        stack.append(i)


def is_stack(part: _Element) -> bool:
    """Return True for a fraction without a bar."""
    return tag_of(part) == "mfrac" and em(part.get("linethickness") or "1") == 0


def em(length: str) -> float:
    """Return a length in em, or a quarter if it is a name, such as ``thickmathspace``."""
    found = _length(length)
    return float(found[1]) * _UNITS.get(found[2], 1.0) if found else 0.25


_MATRICES = {
    "()": "pmatrix", "[]": "bmatrix", "{}": "Bmatrix", "||": "vmatrix", "∣∣": "vmatrix", "‖‖": "Vmatrix",
    "∥∥": "Vmatrix", "{": "cases",
}  # fmt: skip
"""Environments of tables between two delimiters."""

VARIANTS = {
    "normal": "mathrm", "italic": "mathit", "bold": "mathbf", "bold-italic": "boldsymbol", "double-struck": "mathbb",
    "script": "mathcal", "bold-script": "mathcal", "fraktur": "mathfrak", "bold-fraktur": "mathfrak",
    "sans-serif": "mathsf", "bold-sans-serif": "mathsf", "sans-serif-italic": "mathsf",
    "sans-serif-bold-italic": "mathsf", "monospace": "mathtt", "-tex-calligraphic": "mathcal", "-tex-mathit": "mathit",
}  # fmt: skip
"""Font names of MathML and MathJax, and their LaTeX commands."""

_TEXT_VARIANTS = {"bold": "textbf", "italic": "textit", "monospace": "texttt", "sans-serif": "textsf"}
_SPACES = ((1.5, "\\qquad "), (0.8, "\\quad "), (0.25, "\\;"), (0.2, "\\:"), (0.1, "\\,"), (-0.05, ""))

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
    return SYMBOLS.get(name) or characters(name)


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


def space(element: _Element) -> str:
    """Convert an ``<mspace>``."""
    if element.get("linebreak") == "newline":
        return " \\\\ "
    width = em(element.get("width") or "0")
    return next((command for least, command in _SPACES if width >= least), "\\!")


def _in_font(written: str, variant: str, name: str) -> str:
    command = VARIANTS.get(variant)
    if command is None or not written or (command == "mathit" and len(name) == 1):
        return written
    if command == "mathrm" and not (name.isascii() and name.isalnum() and not name.isdecimal()):
        return written
    return styled(written, command)


TOKEN_WRITERS: dict[str, Callable[[_Element], str]] = {
    "mi": identifier, "mn": number, "mo": operator, "ms": operator, "mspace": space,
}  # fmt: skip


MAX_DEPTH = 60
"""Maximum nesting of elements. Of deeper ones, only the characters are kept. Real formulas have about twenty levels."""

_ENCLOSED = {
    "box": "boxed", "roundedbox": "boxed", "updiagonalstrike": "cancel", "downdiagonalstrike": "bcancel",
    "top": "overline", "bottom": "underline",
}  # fmt: skip
_INTEGRALS = frozenset(SYMBOLS[char] for char in "∫∬∭⨌∮∯∰")
_PRIMES = {"'": "'", "′": "'", "″": "''", "‴": "'''", "⁗": "''''", "’": "'"}
_DELIMITERS = {**OPENING, **CLOSING, **BARS, "<": "\\langle", ">": "\\rangle", "": ".", NO_DELIMITER: ".", "/": "/"}

_tall = re.compile(r"\\(?:[dt]?frac|sum|prod|i*int|begin|under[sb]|over[sb]|binom|left|atop|bigcup|bigcap)").search
_single = re.compile(r"[^\\{}]|\\[A-Za-z]+|\\(?:math\w+|boldsymbol)\{[^{}]\}").fullmatch
_name = re.compile(r"\\(?:mathrm|operatorname|text)\{([A-Za-z0-9]{2,}(?:[ ,\\]+[A-Za-z0-9]+)*)\}").fullmatch
_accented = re.compile(
    r"\\(?:(?:wide)?(?:hat|tilde)|bar|vec|d{1,3}ot|check|breve|acute|grave|mathring|overline|underline|over\w*arrow|sqrt)"
    r"\b[^_^]*\}"
).fullmatch


def latex(math: _Element) -> str:
    """Convert a ``<math>`` element, or any part of one, to LaTeX without delimiters. Annotations are ignored."""
    return polish(_Writer().row(math))


class _Writer:
    """Writes a formula. Keeps track of the depth, and of small print, which has no spaces."""

    def __init__(self) -> None:
        self._depth = 0
        self._small = 0

    def node(self, part: _Element | None) -> str:
        """Return a part of a formula, or an empty string if it is missing."""
        if part is None:
            return ""
        if self._depth >= MAX_DEPTH:
            return characters("".join(inner_text(part).split()))
        self._depth += 1
        written = _HANDLERS.get(tag_of(part), _Writer.row)(self, part)
        self._depth -= 1
        return written

    def small(self, part: _Element | None) -> str:
        """Return a part as a sub- or superscript."""
        self._small += 1
        written = tidy(self.node(part))
        self._small -= 1
        return written

    # ------------------------------------------------------------------ rows
    def row(self, element: _Element) -> str:
        row = children(element)
        if any(text and not text.isspace() for text in (element.text, *(child.tail for child in element))):
            return characters(" ".join(inner_text(element).split()))  # only broken pages have text between elements
        if len(row) < 2:
            return self.node(row[0]) if row else ""
        operators = [operator_of(part) for part in row]
        delimiters = pairs(row, operators)
        pieces: list[str] = []
        while len(pieces) < len(row):
            i = len(pieces)
            whole = (
                self._delimited_table(row, operators, delimiters, i) if i in delimiters or operators[i] == "{" else None
            )
            if whole is None:
                pieces.append(self._piece(row, operators, i))
            else:
                end = delimiters.pop(i, i + 1)
                pieces += [whole, *[""] * (end - i)]
        self._stretch(row, operators, delimiters, pieces)
        return join(pieces)

    def _stretch(
        self, row: Sequence[_Element], operators: list[str | None], delimiters: dict[int, int], pieces: list[str]
    ) -> None:
        """Make delimiters grow if the content between them is tall, or if the page says so."""
        heights = [0, *accumulate(_tall(piece) is not None for piece in pieces)]
        last = len(row) - 1
        ending = operators[last]
        alone = last and last not in delimiters.values() and operators[0] is None and heights[last]
        if alone and (ending in BARS or ending in CLOSING) and sole(row[last]).get("fence") == "true":
            pieces[0], pieces[last] = f"\\left. {pieces[0]}", f"\\right{_DELIMITERS[ending or '']}"
        for i, j in delimiters.items():
            opening, closing = sole(row[i]), sole(row[j])
            names = operators[i] or "", operators[j] or ""
            texclass = opening.get("data-mjx-texclass"), closing.get("data-mjx-texclass")
            tall = heights[j] > heights[i + 1] and opening.get("stretchy") != "false" and not opening.get("minsize")
            if NO_DELIMITER in names or texclass == ("OPEN", "CLOSE") or tall:
                left, right = (_DELIMITERS.get(name) or SYMBOLS[name] for name in names)
                pieces[i], pieces[j] = f"\\left{left}", f"\\right{right}"
            elif "∥" in names:
                pieces[i] = pieces[j] = "\\|"

    def _delimited_table(
        self, row: Sequence[_Element], operators: list[str | None], delimiters: dict[int, int], i: int
    ) -> str | None:
        """Return the matrix, the cases or the binomial whose opening delimiter is part i."""
        close = delimiters.get(i, i + 2)
        if close != i + 2 or i + 1 >= len(row):
            return None
        closing = operators[close] if i in delimiters else None
        return self._in_delimiters(operators[i] or "", row[i + 1], (closing or "").replace(NO_DELIMITER, ""))

    def _in_delimiters(self, opening: str, part: _Element, closing: str) -> str | None:
        inner = sole(part)
        if (opening, closing) == ("(", ")") and is_stack(inner):
            top, bottom, *_ = *children(inner), None, None
            return f"\\binom{group(self.small(top))}{group(self.small(bottom))}"
        name = _MATRICES.get(opening + closing)
        if name and tag_of(inner) == "mtable":
            return self.table(inner, name)
        return None

    def _piece(self, row: Sequence[_Element], operators: list[str | None], i: int) -> str:
        part, name = row[i], operators[i]
        if name == NO_DELIMITER:
            return ""
        if name in _PRIMES and i:
            return _PRIMES[name]
        following = operators[i + 1] if i + 1 < len(row) else None
        if following in ("\u2061", "(") and tag_of(part) == "mi":
            return identifier(part, function=following != "(" or not part.get("mathvariant"))
        piece = SYMBOLS[name] if name in BARS and tag_of(part) == "mi" else self.node(part)
        main = name or core(part)
        if not main or self._small or i + 1 == len(row):
            return piece
        if (main in (",", ";") and tag_of(part) == "mo") or main in LARGE:
            return piece + " "
        if (main in RELATIONS or main in BINARY) and joins_terms(operators, i):
            return f" {piece} "
        return piece

    # ------------------------------------------------------------------ tokens
    def token(self, element: _Element) -> str:
        if len(element) and any(tag_of(child) in _HANDLERS for child in element):
            return self.row(element)
        return TOKEN_WRITERS[tag_of(element)](element)

    def words(self, element: _Element) -> str:
        """Return text, which may contain HTML tags and other formulas."""
        variant = element.get("mathvariant") or ""
        pieces = [words(element.text or "", variant)]
        for child in element:
            if isinstance(child.tag, str):
                known = tag_of(child) in _HANDLERS
                pieces.append(self.node(child) if known else words(inner_text(child), variant))
            pieces.append(words(child.tail or "", variant))
        return join(pieces)

    # ------------------------------------------------------------------ scripts
    def _base(self, part: _Element | None) -> str:
        """Return the base of scripts, in braces if the scripts would otherwise only apply to its last piece."""
        written = tidy(self.node(part))
        if part is None or not written:
            return "{}"
        part = sole(part)
        if tag_of(part) in TOKENS or tag_of(part) == "mfenced" or _single(written):
            return written
        if tag_of(part) in ("mover", "munder", "msqrt", "mroot") and _accented(written):
            return written
        if tag_of(part) in ROWS and written.startswith(("(", "[", "\\{", "\\left", "\\begin{", "|", "\\|", "\\l")):
            inner = children(part)
            ends = pairs(inner, [operator_of(one) for one in inner])
            if ends.get(0) == len(inner) - 1:
                return written
        return written if written.startswith("\\left.") else f"{{{written}}}"

    def _script(self, mark: str, part: _Element | None) -> str:
        if part is None:
            return ""
        if mark == "^" and len(part) < 5 and not any(len(child) for child in part):
            shown = "".join(inner_text(part).split())
            if shown and len(shown) < 5 and all(char in _PRIMES for char in shown):
                return "".join(_PRIMES[char] for char in shown)
        written = self.small(part)
        return mark + argument(written) if written else ""

    def scripts(self, element: _Element) -> str:
        base, below, above = _scripted(element)
        return self._base(base) + self._script("_", below) + self._script("^", above)

    def limits(self, element: _Element) -> str:
        base, below, above = _scripted(element)
        if base is None:
            return ""
        inner = sole(base)
        written = tidy(self.node(base)) or "{}"
        name = _name(written)
        if written in _INTEGRALS:
            written += "\\limits"
        elif name and below is not None:
            written = f"\\operatorname*{{{name[1]}}}"
        if (
            written in LIMITS
            or written.startswith(("\\overbrace{", "\\underbrace{", "\\operatorname*{"))
            or written.endswith("\\limits")
            or inner.get("movablelimits") == "true"
        ):
            return written + self._script("_", below) + self._script("^", above)
        arrow = STRETCHED.get(operator_of(inner) or "")
        if arrow and (below is not None or above is None or operator_of(above) not in ACCENTS):
            return f"{arrow}{optional(self.small(below))}{group(self.small(above))}"
        if above is not None:
            written = self._over(written, sole(above))
        if below is not None:
            written = self._under(written, sole(below))
        return written

    def _over(self, written: str, above: _Element) -> str:
        if tag_of(above) == "mover":  # a brace together with its label
            brace, label, *_ = *children(above), None, None
            if brace is not None and operator_of(brace) in ("⏞", "︷"):
                return f"\\overbrace{group(written)}" + self._script("^", label)
        mark = token(above) if tag_of(above) in TOKENS else ""
        if mark not in ACCENTS:
            small = self.small(above)
            return f"\\overset{{{small}}}{group(written)}" if small else written
        stretchy = above.get("stretchy")
        is_narrow = stretchy == "false" or (_single(written) and mark not in ("―", "‾") and stretchy != "true")
        return f"\\{ACCENTS[mark][0 if is_narrow else 1]}{group(written)}"

    def _under(self, written: str, below: _Element) -> str:
        if tag_of(below) == "munder":
            brace, label, *_ = *children(below), None, None
            if brace is not None and operator_of(brace) in ("⏟", "︸"):
                return f"\\underbrace{group(written)}" + self._script("_", label)
        mark = token(below) if tag_of(below) in TOKENS else ""
        if mark in ACCENTS_BELOW:
            return f"\\{ACCENTS_BELOW[mark]}{group(written)}"
        small = self.small(below)
        return f"\\underset{{{small}}}{group(written)}" if small else written

    def multiscripts(self, element: _Element) -> str:
        found = children(element)
        tags = [tag_of(child) for child in found]
        middle = tags.index("mprescripts") if "mprescripts" in tags else len(found)
        before = self._scripts(found[middle + 1 :], "{}")
        base = self._base(found[0] if found and middle else None)
        return join([*before, base, *self._scripts(found[1:middle], "")])

    def _scripts(self, scripts: list[_Element], base: str) -> list[str]:
        written: list[str] = []
        for below, above in zip_longest(scripts[::2], scripts[1::2]):
            pair = self._script("_", below) + self._script("^", above)
            if pair:
                written.append((base or "{}" * bool(written)) + pair)
        return written

    # ------------------------------------------------------------------ layout
    def fraction(self, element: _Element) -> str:
        first, second, *_ = *children(element), None, None
        top, bottom = tidy(self.node(first)), tidy(self.node(second))
        if is_stack(element):
            written = f"{{{top} \\atop {bottom}}}"
        elif element.get("bevelled") == "true":
            written = "/".join(one if _single(one) else f"{{{one}}}" for one in (top, bottom))
        else:
            written = f"\\frac{{{top}}}{{{bottom}}}"
        return written

    def square_root(self, element: _Element) -> str:
        return f"\\sqrt{group(self.row(element))}"

    def root(self, element: _Element) -> str:
        base, degree, *_ = *children(element), None, None
        return f"\\sqrt{optional(self.small(degree))}{group(self.node(base))}"

    def fenced(self, element: _Element) -> str:
        opening, closing = (
            "".join((element.get(key) if element.get(key) is not None else default or "").split())  # type: ignore[union-attr]
            for key, default in (("open", "("), ("close", ")"))
        )
        inner = children(element)
        if len(inner) == 1:
            table = self._in_delimiters(opening, inner[0], closing)
            if table is not None:
                return table
        marks = "".join((element.get("separators") or ",").split()) if element.get("separators") != "" else ""
        pieces: list[str] = []
        for i, child in enumerate(inner):
            if i and marks:
                pieces.append(characters(marks[min(i, len(marks)) - 1]) + " " * (not self._small))
            pieces.append(self.node(child))
        content = join(pieces)
        if _tall(content) and opening in _DELIMITERS and closing in _DELIMITERS and opening + closing:
            return join([f"\\left{_DELIMITERS[opening]}", content, f"\\right{_DELIMITERS[closing]}"])
        return join([characters(opening), content, characters(closing)])

    def enclosed(self, element: _Element) -> str:
        content = self.row(element)
        notation = " ".join((element.get("notation") or "longdiv").split())
        command = _ENCLOSED.get(notation) or _ENCLOSED.get(notation.partition(" ")[0])
        return f"\\{command}{group(content)}" if command else content

    def style(self, element: _Element) -> str:
        command = VARIANTS.get(element.get("mathvariant") or "")
        content = self.row(element)
        tidied = tidy(content)
        return styled(tidied, command) if command and tidied else content

    def semantics(self, element: _Element) -> str:
        return self.node(next((child for child in children(element) if "annotation" not in tag_of(child)), None))

    def nothing(self, _: _Element) -> str:
        return ""

    def table(self, element: _Element, name: str = "") -> str:
        """Return a table as the named environment, or as the best-fitting one."""
        rows: list[list[str]] = []
        for row in children(element):
            cells = children(row) if tag_of(row) in ("mtr", "mlabeledtr", "tr") else [row]
            rows.append([tidy(self.node(cell)) for cell in cells])
        columns = max(map(len, rows), default=0)
        content = " \\\\ ".join(map(" & ".join, rows))
        if not name and columns < 2 and self._small:
            return f"\\substack{{{content}}}"
        if not name:
            aligned = (element.get("columnalign") or "").split()[:2] == ["right", "left"]
            name = "aligned" if aligned else "gathered" if columns < 2 else "matrix"
        return f"\\begin{{{name}}} {content} \\end{{{name}}}"


def _scripted(element: _Element) -> tuple[_Element | None, _Element | None, _Element | None]:
    """Return the base, the subscript and the superscript of an element."""
    found = children(element)
    base, first, second, *_ = *found, None, None, None
    tag = tag_of(element)
    if tag in ("msup", "mover"):
        return base, None, first
    if tag in ("msub", "munder"):
        return base, first, None
    return base, first, second


_NOTHING = "mphantom annotation annotation-xml none mprescripts malignmark maligngroup script style".split()
_HANDLERS: dict[str, Callable[[_Writer, _Element], str]] = {
    "mtext": _Writer.words, "mrow": _Writer.row, "math": _Writer.row,
    "mfrac": _Writer.fraction, "msqrt": _Writer.square_root, "mroot": _Writer.root, "mfenced": _Writer.fenced,
    "menclose": _Writer.enclosed, "mstyle": _Writer.style, "maction": _Writer.semantics,
    "semantics": _Writer.semantics, "mtable": _Writer.table, "mmultiscripts": _Writer.multiscripts,
    **dict.fromkeys(TOKEN_WRITERS, _Writer.token),
    **dict.fromkeys(("msub", "msup", "msubsup"), _Writer.scripts),
    **dict.fromkeys(("munder", "mover", "munderover"), _Writer.limits),
    **dict.fromkeys(_NOTHING, _Writer.nothing),
}  # fmt: skip
