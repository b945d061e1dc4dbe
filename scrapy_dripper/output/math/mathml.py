"""Convert Presentation MathML (MathML 3, chapter 3) to LaTeX, for formulas without their LaTeX source.

The result is what an author would write for KaTeX or MathJax with amsmath and amssymb: ``x^2`` instead of
``{x}^{2}``, ``\\left(`` only around tall content, ``\\begin{pmatrix}`` for a table in parentheses. Braces are always
balanced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING

from scrapy_dripper.output.math.mathml_tables import environment, matrix_of
from scrapy_dripper.output.math.mathml_tokens import TOKEN_WRITERS, VARIANTS, identifier, words
from scrapy_dripper.output.math.mathml_tree import (
    NO_DELIMITER,
    ROWS,
    TOKENS,
    Part,
    children,
    core,
    has_lines,
    inner_text,
    is_stack,
    joins_terms,
    operator_of,
    pairs,
    parts,
    sole,
    tag_of,
    token,
)
from scrapy_dripper.output.math.tex import argument, characters, group, join, optional, polish, styled, tidy
from scrapy_dripper.output.math.tex_symbols import (
    ACCENTS,
    ACCENTS_BELOW,
    BARS,
    BINARY,
    CLOSING,
    LARGE,
    LIMITS,
    OPENING,
    RELATIONS,
    STRETCHED,
    SYMBOLS,
)

if TYPE_CHECKING:
    from lxml.etree import _Element

MAX_DEPTH = 60
"""Maximum nesting of elements. Of deeper ones, only the characters are kept. Real formulas have about twenty levels."""

_ENCLOSED = {
    "box": "boxed", "roundedbox": "boxed", "updiagonalstrike": "cancel", "downdiagonalstrike": "bcancel",
    "updiagonalstrike downdiagonalstrike": "xcancel", "downdiagonalstrike updiagonalstrike": "xcancel",
    "horizontalstrike": "enclose{horizontalstrike}", "circle": "enclose{circle}", "longdiv": "enclose{longdiv}",
    "actuarial": "enclose{actuarial}", "radical": "sqrt", "top": "overline", "bottom": "underline",
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

    def node(self, part: Part | None) -> str:
        """Return a part of a formula, or an empty string if it is missing."""
        if part is None:
            return ""
        if isinstance(part, str):
            return characters(" ".join(part.split()))
        if self._depth >= MAX_DEPTH:
            return characters("".join(inner_text(part).split()))
        self._depth += 1
        written = _HANDLERS.get(tag_of(part), _Writer.row)(self, part)
        self._depth -= 1
        return written

    def small(self, part: Part | None) -> str:
        """Return a part as a sub- or superscript."""
        self._small += 1
        written = tidy(self.node(part))
        self._small -= 1
        return written

    # ------------------------------------------------------------------ rows
    def row(self, element: _Element) -> str:
        return self.sequence(parts(element))

    def sequence(self, row: Sequence[Part]) -> str:
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
        self, row: Sequence[Part], operators: list[str | None], delimiters: dict[int, int], pieces: list[str]
    ) -> None:
        """Make delimiters grow if the content between them is tall, or if the page says so."""
        heights = [0, *accumulate(_tall(piece) is not None for piece in pieces)]
        last = len(row) - 1
        if last and last not in delimiters.values() and (operators[last] in BARS or operators[last] in CLOSING):
            end = sole(row[last])
            if not isinstance(end, str) and end.get("fence") == "true" and heights[last] and operators[0] is None:
                pieces[0], pieces[last] = f"\\left. {pieces[0]}", f"\\right{_DELIMITERS[operators[last] or '']}"
        for i, j in delimiters.items():
            opening, closing = sole(row[i]), sole(row[j])
            if isinstance(opening, str) or isinstance(closing, str):
                continue
            names = operators[i] or "", operators[j] or ""
            texclass = opening.get("data-mjx-texclass"), closing.get("data-mjx-texclass")
            tall = heights[j] > heights[i + 1] and opening.get("stretchy") != "false" and not opening.get("minsize")
            if NO_DELIMITER in names or texclass == ("OPEN", "CLOSE") or tall:
                left, right = (_DELIMITERS.get(name) or SYMBOLS[name] for name in names)
                pieces[i], pieces[j] = f"\\left{left}", f"\\right{right}"
            elif "∥" in names:
                pieces[i] = pieces[j] = "\\|"

    def _delimited_table(
        self, row: Sequence[Part], operators: list[str | None], delimiters: dict[int, int], i: int
    ) -> str | None:
        """Return the matrix, the cases or the binomial whose opening delimiter is part i."""
        close = delimiters.get(i, i + 2)
        if close != i + 2 or i + 1 >= len(row):
            return None
        closing = operators[close] if i in delimiters else None
        return self._in_delimiters(operators[i] or "", row[i + 1], (closing or "").replace(NO_DELIMITER, ""))

    def _in_delimiters(self, opening: str, part: Part, closing: str) -> str | None:
        inner = sole(part)
        if isinstance(inner, str):
            return None
        if (opening, closing) == ("(", ")") and is_stack(inner):
            top, bottom, *_ = *children(inner), None, None
            return f"\\binom{group(self.small(top))}{group(self.small(bottom))}"
        name = matrix_of(opening, closing)
        if name and tag_of(inner) == "mtable" and not has_lines(inner):
            return self.table(inner, name)
        return None

    def _piece(self, row: Sequence[Part], operators: list[str | None], i: int) -> str:
        part, name = row[i], operators[i]
        if name == NO_DELIMITER:
            return ""
        if name in _PRIMES and i:
            return _PRIMES[name]
        following = operators[i + 1] if i + 1 < len(row) else None
        if following in ("\u2061", "(") and not isinstance(part, str) and tag_of(part) == "mi":
            return identifier(part, function=following != "(" or not part.get("mathvariant"))
        piece = (
            SYMBOLS[name] if name in BARS and not isinstance(part, str) and tag_of(part) == "mi" else self.node(part)
        )
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
    def _base(self, part: Part | None) -> str:
        """Return the base of scripts, in braces if the scripts would otherwise only apply to its last piece."""
        written = tidy(self.node(part))
        if part is None or not written:
            return "{}"
        part = sole(part)
        if isinstance(part, str) or tag_of(part) in TOKENS or tag_of(part) == "mfenced" or _single(written):
            return written
        if tag_of(part) in ("mover", "munder", "msqrt", "mroot") and _accented(written):
            return written
        if tag_of(part) in ROWS and written.startswith(("(", "[", "\\{", "\\left", "\\begin{", "|", "\\|", "\\l")):
            inner = parts(part)
            ends = pairs(inner, [operator_of(one) for one in inner])
            if ends.get(0) == len(inner) - 1:
                return written
        return written if written.startswith("\\left.") else f"{{{written}}}"

    def _script(self, mark: str, part: Part | None) -> str:
        if part is None:
            return ""
        if mark == "^" and not isinstance(part, str) and len(part) < 5 and not any(len(child) for child in part):
            shown = "".join(inner_text(part).split())
            if shown and len(shown) < 5 and all(char in _PRIMES for char in shown):
                return "".join(_PRIMES[char] for char in shown)
        written = self.small(part)
        return mark + argument(written) if written else ""

    def scripts(self, element: _Element) -> str:
        base, below, above, rest = _scripted(element)
        return self._base(base) + self._script("_", below) + self._script("^", above) + self._rest(rest)

    def limits(self, element: _Element) -> str:
        base, below, above, rest = _scripted(element)
        inner = "" if base is None else sole(base)
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
            or (not isinstance(inner, str) and inner.get("movablelimits") == "true")
        ):
            return written + self._script("_", below) + self._script("^", above) + self._rest(rest)
        arrow = STRETCHED.get(operator_of(inner) or "")
        if arrow and (below is not None or operator_of(sole(above if above is not None else "")) not in ACCENTS):
            return f"{arrow}{optional(self.small(below))}{group(self.small(above))}{self._rest(rest)}"
        if above is not None:
            written = self._over(written, sole(above))
        if below is not None:
            written = self._under(written, sole(below))
        return written + self._rest(rest)

    def _over(self, written: str, above: Part) -> str:
        if tag_of(above) == "mover" and not isinstance(above, str):  # a brace together with its label
            brace, label, *_ = *children(above), None, None
            if brace is not None and operator_of(brace) in ("⏞", "︷"):
                return f"\\overbrace{group(written)}" + self._script("^", label)
        mark = "" if isinstance(above, str) or tag_of(above) not in TOKENS else token(above)
        if isinstance(above, str) or mark not in ACCENTS:
            small = self.small(above)
            return f"\\overset{{{small}}}{group(written)}" if small else written
        stretchy = above.get("stretchy")
        is_narrow = stretchy == "false" or (_single(written) and mark not in ("―", "‾") and stretchy != "true")
        return f"\\{ACCENTS[mark][0 if is_narrow else 1]}{group(written)}"

    def _under(self, written: str, below: Part) -> str:
        if tag_of(below) == "munder" and not isinstance(below, str):
            brace, label, *_ = *children(below), None, None
            if brace is not None and operator_of(brace) in ("⏟", "︸"):
                return f"\\underbrace{group(written)}" + self._script("_", label)
        mark = "" if isinstance(below, str) or tag_of(below) not in TOKENS else token(below)
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

    def _rest(self, row: Sequence[Part]) -> str:
        """Return surplus children, which only broken pages have."""
        return self.sequence(row) if row else ""

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
        return written + self._rest(children(element)[2:])

    def square_root(self, element: _Element) -> str:
        return f"\\sqrt{group(self.row(element))}"

    def root(self, element: _Element) -> str:
        base, degree, *_ = *children(element), None, None
        return f"\\sqrt{optional(self.small(degree))}{group(self.node(base))}{self._rest(children(element)[2:])}"

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

    def phantom(self, element: _Element) -> str:
        return f"\\phantom{group(self.row(element))}"

    def action(self, element: _Element) -> str:
        found = children(element)
        chosen = element.get("selection") or "1"
        i = int(chosen) - 1 if chosen.isdecimal() and len(chosen) < 4 else 0
        return self.node(found[i if 0 <= i < len(found) else 0]) if found else self.row(element)

    def semantics(self, element: _Element) -> str:
        return self.node(next((child for child in children(element) if "annotation" not in tag_of(child)), None))

    def nothing(self, _: _Element) -> str:
        return ""

    def table(self, element: _Element, name: str = "") -> str:
        """Return a table as the named environment, or as the best-fitting one."""
        rows: list[list[str]] = []
        labels: list[str] = []
        for row in children(element):
            cells = children(row) if tag_of(row) in ("mtr", "mlabeledtr", "tr") else [row]
            label = ""
            if tag_of(row) == "mlabeledtr" and cells:
                label = " ".join(inner_text(cells[0]).split()).strip("()")
                cells = cells[1:]
            rows.append([tidy(self.row(cell) if tag_of(cell) == "mtd" else self.node(cell)) for cell in cells])
            labels.append(f" \\tag{{{characters(label)}}}" if label else "")
        columns = max(map(len, rows), default=0)
        if not name and any(labels) and len(rows) == 1 and columns == 1:
            return rows[0][0] + labels[0]
        content = " \\\\ ".join(" & ".join(cells) + label for cells, label in zip(rows, labels, strict=True))
        if not name and columns < 2 and self._small:
            return f"\\substack{{{content}}}"
        name, columns_as = (name, "") if name else environment(element, columns, any(labels))
        return f"\\begin{{{name}}}{columns_as} {content} \\end{{{name}}}"


def _scripted(element: _Element) -> tuple[_Element | None, _Element | None, _Element | None, list[_Element]]:
    """Return the base, the subscript, the superscript, and surplus children of an element."""
    found = children(element)
    base, first, second, *_ = *found, None, None, None
    tag = tag_of(element)
    if tag in ("msup", "mover"):
        return base, None, first, found[2:]
    if tag in ("msub", "munder"):
        return base, first, None, found[2:]
    return base, first, second, found[3:]


_NOTHING = "annotation annotation-xml none mprescripts malignmark maligngroup script style".split()
_HANDLERS: dict[str, Callable[[_Writer, _Element], str]] = {
    "mtext": _Writer.words, "mrow": _Writer.row, "math": _Writer.row,
    "mfrac": _Writer.fraction, "msqrt": _Writer.square_root, "mroot": _Writer.root, "mfenced": _Writer.fenced,
    "menclose": _Writer.enclosed, "mstyle": _Writer.style, "mphantom": _Writer.phantom, "maction": _Writer.action,
    "semantics": _Writer.semantics, "mtable": _Writer.table, "mmultiscripts": _Writer.multiscripts,
    **dict.fromkeys(TOKEN_WRITERS, _Writer.token),
    **dict.fromkeys(("msub", "msup", "msubsup"), _Writer.scripts),
    **dict.fromkeys(("munder", "mover", "munderover"), _Writer.limits),
    **dict.fromkeys(_NOTHING, _Writer.nothing),
}  # fmt: skip
