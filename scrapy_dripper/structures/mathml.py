"""Convert Presentation MathML (MathML 3, chapter 3) to LaTeX, for formulas without their LaTeX source.

The result is what an author would write for KaTeX or MathJax with amsmath and amssymb: ``x^2`` instead of
``{x}^{2}``, ``\\left(`` only around tall content, ``\\begin{pmatrix}`` for a table in parentheses. Braces are always
balanced. A character without a command in the tables below represents itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, groupby, zip_longest
from string import ascii_letters
from typing import TypeAlias

from lxml.etree import _Element

from scrapy_dripper.page.nodes import inner_text
from scrapy_dripper.structures.items import without_open_end


def _commands(pairs: str) -> dict[str, str]:
    """Return the commands of characters, from a text in which each character is before the name of its command."""
    words = pairs.split()
    return {char: f"\\{name}" for char, name in zip(words[::2], words[1::2], strict=True)}


RELATIONS = _commands(
    "≤ leq ≥ geq ≠ neq ≡ equiv ≢ not\\equiv ≈ approx ∼ sim ≃ simeq ≅ cong ≍ asymp ≐ doteq ≔ coloneqq ≜ triangleq "
    "∝ propto ∈ in ∉ notin ∋ ni ⊂ subset ⊃ supset ⊄ not\\subset ⊆ subseteq ⊇ supseteq ⊊ subsetneq ⊋ supsetneq "
    "⊏ sqsubset ⊑ sqsubseteq ≪ ll ≫ gg ≺ prec ≻ succ ⪯ preceq ⪰ succeq ≼ preccurlyeq ≽ succcurlyeq ⩽ leqslant "
    "⩾ geqslant ≲ lesssim ≳ gtrsim ∣ mid ∤ nmid ∥ parallel ⊥ perp ⟂ perp ⊢ vdash ⊣ dashv ⊨ models ⋈ bowtie "
    "⊲ vartriangleleft ⊴ trianglelefteq → to ← leftarrow ↔ leftrightarrow ⇒ Rightarrow ⇐ Leftarrow ⇔ Leftrightarrow "
    "⟶ longrightarrow ⟵ longleftarrow ⟹ implies ⟸ impliedby ⟺ iff ↦ mapsto ⟼ longmapsto ↪ hookrightarrow "
    "↠ twoheadrightarrow ⇀ rightharpoonup ⇌ rightleftharpoons ⇄ rightleftarrows ↗ nearrow ↘ searrow ↛ nrightarrow "
    "∴ therefore ∵ because"
) | {"=": "=", "<": "<", ">": ">", ":=": ":=", "!=": "\\neq", "<=": "\\leq", ">=": "\\geq", "->": "\\to"}

BINARY = _commands(
    "± pm ∓ mp × times ÷ div ⋅ cdot · cdot ∘ circ ∙ bullet • bullet ∪ cup ∩ cap ⊎ uplus ∖ setminus ∧ wedge ∨ vee "
    "⊕ oplus ⊖ ominus ⊗ otimes ⊘ oslash ⊙ odot ⊔ sqcup ⊓ sqcap ⋆ star † dagger ‡ ddagger ≀ wr ⋉ ltimes ⋊ rtimes "
    "⊠ boxtimes ⊞ boxplus △ triangle ⋄ diamond"
) | {"+": "+", "-": "-", "−": "-", "–": "-", "*": "*", "∗": "*"}

LARGE = _commands(
    "∑ sum ∏ prod ∐ coprod ∫ int ∬ iint ∭ iiint ∮ oint ⋃ bigcup ⋂ bigcap ⨆ bigsqcup ⋁ bigvee ⋀ bigwedge ⨁ bigoplus "
    "⨂ bigotimes"
)
OPENING = {"(": "(", "[": "[", "{": "\\{"} | _commands("⟨ langle 〈 langle ⌊ lfloor ⌈ lceil ⟦ llbracket")
CLOSING = {")": ")", "]": "]", "}": "\\}"} | _commands("⟩ rangle 〉 rangle ⌋ rfloor ⌉ rceil ⟧ rrbracket")
BARS = {"|": "|", "‖": "\\|"}
"""Delimiters that can open or close."""

_ORDINARY = _commands(
    "α alpha β beta γ gamma δ delta ϵ epsilon ε varepsilon ζ zeta η eta θ theta ϑ vartheta ι iota κ kappa ϰ varkappa "
    "λ lambda μ mu µ mu ν nu ξ xi π pi ϖ varpi ρ rho ϱ varrho σ sigma ς varsigma τ tau υ upsilon ϕ phi φ varphi χ chi "
    "ψ psi ω omega Γ Gamma Δ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Υ Upsilon Φ Phi Ψ Psi Ω Omega Ω Omega "
    "∂ partial ∇ nabla ∞ infty ∅ emptyset ℵ aleph ℏ hbar ℓ ell ℘ wp ℜ Re ℑ Im ı imath ȷ jmath "
    "∀ forall ∃ exists ∄ nexists ¬ neg ⊤ top ∠ angle √ surd □ square ■ blacksquare ◊ lozenge ♠ spadesuit ♡ heartsuit "
    "♭ flat ♮ natural ♯ sharp ✓ checkmark … ldots ⋯ cdots ⋮ vdots ⋱ ddots ↑ uparrow ↓ downarrow ⇑ Uparrow ⇓ Downarrow "
    "′ prime ° circ # # $ $ % % & & _ _ \\ backslash ~ sim ^ wedge"
)
_INVISIBLE = dict.fromkeys("\u2061\u2062\u2063\u2064\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f\u00ad", "")
"""Invisible characters: function application, invisible times, separators, joiners."""

SYMBOLS: dict[str, str] = {
    **_ORDINARY, **OPENING, **CLOSING, **BARS, **RELATIONS, **BINARY, **LARGE, **_INVISIBLE,
    "\u2146": "d", "\u2147": "e", "\u2148": "i", "ℎ": "h", "\u2033": "''", "\u2034": "'''", "...": "\\ldots",
    "\u2215": "/", "\u2044": "/", "\u2236": ":", "\xa0": "~", "\u2009": "\\,", "\u2005": "\\:", "\u2004": "\\;",
    "\u2003": "\\quad ",
}  # fmt: skip
"""LaTeX of characters in a formula."""

_TEXT = {char: f"\\{char}" for char in "#$%&_{}"} | {
    "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "\xa0": " ",
}  # fmt: skip
"""LaTeX of characters in text."""

FUNCTIONS = frozenset(
    "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln log max "
    "min Pr sec sin sinh sup tan tanh".split()
)
"""Names of functions that have a command."""
_LIMITS = {f"\\{name}" for name in "det gcd inf lim liminf limsup max min Pr sup".split()} | set(LARGE.values())
"""Commands whose sub- and superscripts are written below and above."""

_BAR = "¯‾ˉ―_–—─-−\u0304\u0305\u0332"
ACCENTS = {
    char: commands
    for chars, *commands in (
        ("^ˆ\u0302", "hat", "widehat"), ("~˜∼\u0303", "tilde", "widetilde"), (_BAR, "bar", "overline"),
        ("→⇀\u20d7", "vec", "overrightarrow"), ("←", "overleftarrow"), ("˙.⋅\u0307", "dot"), ("¨\u0308", "ddot"),
        ("ˇ\u030c", "check"), ("˘\u0306", "breve"), ("´\u0301", "acute"), ("`\u0300", "grave"), ("˚\u030a", "mathring"),
        ("⏞︷", "overbrace"),
    )
    for char in chars
}  # fmt: skip
"""Commands for accents: over one character and, if that differs, over several."""
_BELOW = dict.fromkeys(_BAR, "underline") | dict.fromkeys("⏟︸", "underbrace")
_ARROWS = {
    "→": "\\xrightarrow", "⟶": "\\xrightarrow", "←": "\\xleftarrow", "↔": "\\xleftrightarrow", "⇒": "\\xRightarrow",
    "↦": "\\xmapsto", "↪": "\\xhookrightarrow", "⇌": "\\xrightleftharpoons",
}  # fmt: skip
"""Arrows that grow with the text on them."""
_PRIMES = {"'": "'", "′": "'", "″": "''", "‴": "'''", "’": "'"}

_VARIANTS = {
    "normal": "mathrm", "bold": "mathbf", "bold-italic": "boldsymbol", "double-struck": "mathbb",
    "script": "mathcal", "bold-script": "mathcal", "fraktur": "mathfrak", "bold-fraktur": "mathfrak",
    "sans-serif": "mathsf", "monospace": "mathtt", "-tex-calligraphic": "mathcal",
}  # fmt: skip
"""Font names of MathML and MathJax, and their LaTeX commands."""
_ALPHABETS = (
    ("BOLD ITALIC", "boldsymbol"), ("BOLD SCRIPT", "mathcal"), ("BOLD FRAKTUR", "mathfrak"), ("BOLD", "mathbf"),
    ("ITALIC", ""), ("SCRIPT", "mathcal"), ("FRAKTUR", "mathfrak"), ("BLACK-LETTER", "mathfrak"),
    ("DOUBLE-STRUCK", "mathbb"), ("SANS-SERIF", "mathsf"), ("MONOSPACE", "mathtt"),
)  # fmt: skip
"""Beginnings of the names of Unicode's mathematical letters, and their LaTeX commands."""

_MATRICES = {
    "()": "pmatrix", "[]": "bmatrix", "{}": "Bmatrix", "||": "vmatrix", "‖‖": "Vmatrix", "{": "cases", "{.": "cases",
}  # fmt: skip
"""Environments of tables between two delimiters."""
_ENCLOSED = {"box": "boxed", "roundedbox": "boxed", "updiagonalstrike": "cancel", "top": "overline"}
_SPACES = ((1.5, "\\qquad "), (0.8, "\\quad "), (0.25, "\\;"), (0.2, "\\:"), (0.1, "\\,"), (-0.05, ""))
"""Widths in em, and the commands for spaces of at least these widths."""
_UNITS = {"ex": 0.43, "px": 1 / 16, "pt": 1 / 12, "mu": 1 / 18}

NO_DELIMITER = "."
"""An invisible delimiter, as in LaTeX."""
_DELIMITERS = {**OPENING, **CLOSING, **BARS, NO_DELIMITER: ".", "": "."}

MAX_DEPTH = 60
"""Maximum nesting of elements. Of deeper ones, only the characters are kept. Real formulas have about twenty levels."""

_GROUPS = frozenset({"mrow", "mstyle", "mpadded"})
_TOKENS = frozenset({"mi", "mn", "mo", "mtext", "ms"})
_SCRIPTED = frozenset({"msub", "msup", "msubsup", "munder", "mover", "munderover"})

_spaces = re.compile(" {2,}").sub
_thousands = re.compile(r"(?<=\d),(?=\d{3}(?!\d))").sub
_length = re.compile(r"\s*([-+]?[0-9]*\.?[0-9]+)\s*([a-z]*)").match
_tall = re.compile(r"\\(?:frac|sum|prod|i*int|begin|under[sb]|over[sb]|binom|left|atop|bigcup|bigcap)").search
_atom = re.compile(r"[^\\{}]|\\[A-Za-z]+(?:\{[^{}]*\})?").fullmatch
_name = re.compile(r"\\(?:mathrm|operatorname|text)\{([A-Za-z0-9]{2,})\}").fullmatch


def latex(math: _Element) -> str:
    """Convert a ``<math>`` element, or any part of one, to LaTeX without delimiters. Annotations are ignored."""
    return _tidy(_FormulaWriter().row(math))


# ---------------------------------------------------------------------- pieces of LaTeX
def _tidy(tex: str) -> str:
    """Strip LaTeX and collapse its spaces."""
    return without_open_end(_spaces(" ", tex))


def _join(pieces: Iterable[str]) -> str:
    """Join pieces of LaTeX, with a space between the name of a command and a letter."""
    joined: list[str] = []
    last = ""
    for piece in filter(None, pieces):
        if piece[0].isalpha() and last and last[-1] in ascii_letters and last.rstrip(ascii_letters)[-1:] == "\\":
            joined.append(" ")
        joined.append(piece)
        last = piece
    return "".join(joined)


def _group(tex: str) -> str:
    return f"{{{_tidy(tex)}}}"


def _optional(tex: str) -> str:
    """Return LaTeX as an optional argument, such as the degree of a root, or an empty string if it is empty."""
    tex = _tidy(tex)
    return f"[{{{tex}}}]" if "[" in tex or "]" in tex else f"[{tex}]" if tex else ""


def _in_font(tex: str, command: str) -> str:
    """Return LaTeX in the font of a command. For bold Greek letters, only ``boldsymbol`` works."""
    return f"\\{'boldsymbol' if command == 'mathbf' and chr(92) in tex else command}{{{tex}}}"


def _characters(symbols: str) -> str:
    """Return the characters of a formula as LaTeX, one by one."""
    if symbols.isascii() and symbols.isalnum():
        return symbols
    pieces: list[str] = []
    for command, pairs in groupby(map(_letter, symbols), key=lambda pair: pair[0]):
        plain = _join(SYMBOLS.get(char, "\\ " if char == " " else char) for _, char in pairs)
        pieces.append(_in_font(plain, command) if command else plain)
    return _join(pieces)


@lru_cache(1_024)
def _letter(char: str) -> tuple[str, str]:
    """Return the command of a character's alphabet and the plain letter, such as ``("mathbb", "R")``.

    This covers the Unicode blocks Mathematical Alphanumeric Symbols and Letterlike Symbols. For other characters, the
    command is empty.
    """
    if char not in SYMBOLS and ("\u2100" <= char <= "\u214f" or "\U0001d400" <= char <= "\U0001d7ff"):
        name = unicodedata.name(char, "").removeprefix("MATHEMATICAL ")
        plain = unicodedata.normalize("NFKC", char)
        for words, command in _ALPHABETS:
            if name.startswith(words) and len(plain) == 1:
                return command, plain
    return "", char


def _text(words: str) -> str:
    """Return words as LaTeX text. White space at either end becomes a space."""
    inner = " ".join(words.split())
    if not inner:
        return "\\ " if words else ""
    before, after = " " * words[0].isspace(), " " * words[-1].isspace()
    return f"\\text{{{before}{''.join(_TEXT.get(char, char) for char in inner)}{after}}}"


# ---------------------------------------------------------------------- elements
def _tag(part: _Element) -> str:
    """Return the name of an element without prefix or namespace."""
    return str(part.tag).rpartition("}")[2].rpartition(":")[2].lower()


def _children(element: _Element) -> list[_Element]:
    return [child for child in element if isinstance(child.tag, str)]


def _token(element: _Element) -> str:
    """Return the characters of a token element with white space collapsed, except no-break spaces."""
    words = inner_text(element)
    return unicodedata.normalize("NFC", " ".join(filter(None, re.split("[ \t\r\n]+", words))))


def _sole(part: _Element) -> _Element:
    """Return the only child of a part if the part is just a group, or else the part itself."""
    for _ in range(8):
        if _tag(part) not in _GROUPS or len(inner := _children(part)) != 1:
            break
        part = inner[0]
    return part


def _operator_of(part: _Element) -> str | None:
    """Return the characters of an operator, which may be in a group, or None for other parts."""
    part = _sole(part)
    if _tag(part) != "mo":
        return None
    is_fence = part.get("fence") == "true" or part.get("data-mjx-texclass") in ("OPEN", "CLOSE")
    return _token(part) or (NO_DELIMITER if is_fence else "")


def _core(part: _Element) -> str | None:
    """Return the operator of a part, ignoring scripts and accents, such as the text above an arrow."""
    for _ in range(4):
        if _tag(part) not in _SCRIPTED or not (inner := _children(part)):
            break
        part = _sole(inner[0])
    return _operator_of(part)


def _pairs(operators: Sequence[str | None]) -> dict[int, int]:
    """Match the delimiters in a row: return the index of the closing one for each opening one, properly nested."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    for i, name in enumerate(operators):
        if name is None:
            continue
        top = operators[stack[-1]] if stack else None
        if name in OPENING or (name in BARS and top not in (name, NO_DELIMITER)) or (name == NO_DELIMITER and not i):
            stack.append(i)
        elif name in BARS or (name == NO_DELIMITER and stack):
            pairs[stack.pop()] = i
        elif name in CLOSING:
            while stack and operators[stack[-1]] in BARS:
                stack.pop()
            if stack:
                pairs[stack.pop()] = i
    return pairs


def _joins_terms(operators: Sequence[str | None], i: int) -> bool:
    """Return True if operator i is binary, such as a minus that is not a sign."""
    before = operators[i - 1] if 0 < i < len(operators) - 1 else "("
    return before is None or not (before in RELATIONS or before in BINARY or before in OPENING or before in ",;:")


def _em(length: str) -> float:
    """Return a length in em, or a quarter if it is a name, such as ``thickmathspace``."""
    match = _length(length)
    return float(match[1]) * _UNITS.get(match[2], 1.0) if match else 0.25


def _is_stack(part: _Element) -> bool:
    """Return True for a fraction without a bar."""
    return _tag(part) == "mfrac" and _em(part.get("linethickness") or "1") == 0


def _scripts_of(element: _Element) -> tuple[_Element | None, _Element | None, _Element | None]:
    """Return the base, the subscript and the superscript of an element."""
    base, first, second, *_ = *_children(element), None, None, None
    if _tag(element) in ("msup", "mover"):
        return base, None, first
    return base, first, second


class _FormulaWriter:
    """Writes a formula. Keeps track of the depth, and of small print, which has no spaces."""

    def __init__(self) -> None:
        self._depth = 0
        self._small = 0

    def node(self, part: _Element | None) -> str:
        """Return a part of a formula, or an empty string if it is missing."""
        if part is None:
            return ""
        if self._depth >= MAX_DEPTH:
            return _characters("".join(inner_text(part).split()))
        self._depth += 1
        written = _WRITERS.get(_tag(part), _FormulaWriter.row)(self, part)
        self._depth -= 1
        return written

    def small(self, part: _Element | None) -> str:
        """Return a part as a sub- or superscript."""
        self._small += 1
        written = _tidy(self.node(part))
        self._small -= 1
        return written

    # ------------------------------------------------------------------ rows
    def row(self, element: _Element) -> str:
        row = _children(element)
        if any(text and not text.isspace() for text in (element.text, *(child.tail for child in element))):
            return _characters(" ".join(inner_text(element).split()))  # only broken pages have text between elements
        if len(row) < 2:
            return self.node(row[0]) if row else ""
        operators = [_operator_of(part) for part in row]
        closing = _pairs(operators)
        pieces: list[str] = []
        while len(pieces) < len(row):
            i = len(pieces)
            matrix, end = None, closing.get(i, i + 2)
            is_open = operators[i] == "{" and (end == len(row) or (end == len(row) - 1 and operators[end] == ""))
            if end == i + 2 and (i in closing or is_open):
                marks = [operators[i] or "", *(operators[end : end + 1])]
                matrix = self._in_delimiters("".join(filter(None, marks)), row[i + 1])
            if matrix is None:
                pieces.append(self._piece(row, operators, i))
            else:
                closing.pop(i, None)
                pieces += [matrix, "", ""][: len(row) - i]
        heights = [0, *accumulate(_tall(piece) is not None for piece in pieces)]
        for i, j in closing.items():  # delimiters grow around tall content
            tall = heights[j] > heights[i + 1] and _sole(row[i]).get("stretchy") != "false"
            if tall or NO_DELIMITER in (operators[i], operators[j]):
                pieces[i] = f"\\left{_DELIMITERS[operators[i] or '']}"
                pieces[j] = f"\\right{_DELIMITERS[operators[j] or '']}"
        return _join(pieces)

    def _in_delimiters(self, delimiters: str, part: _Element) -> str | None:
        """Return the matrix, the cases or the binomial between two delimiters, or None for other content."""
        inner = _sole(part)
        if delimiters == "()" and _is_stack(inner):
            top, bottom, *_ = *_children(inner), None, None
            return f"\\binom{_group(self.small(top))}{_group(self.small(bottom))}"
        name = _MATRICES.get(delimiters)
        return self.table(inner, name) if name and _tag(inner) == "mtable" else None

    def _piece(self, row: Sequence[_Element], operators: Sequence[str | None], i: int) -> str:
        part, name = row[i], operators[i]
        if name == NO_DELIMITER:
            return ""
        if name in _PRIMES and i:
            return _PRIMES[name]
        if _tag(part) == "mi" and i + 1 < len(row) and operators[i + 1] in ("\u2061", "("):
            return self.identifier(part, is_applied=True)
        piece = self.node(part)
        main = name or _core(part)
        if not main or self._small or i + 1 == len(row):
            return piece
        if (main in (",", ";") and _tag(part) == "mo") or main in LARGE:
            return piece + " "
        return f" {piece} " if (main in RELATIONS or main in BINARY) and _joins_terms(operators, i) else piece

    # ------------------------------------------------------------------ tokens
    def identifier(self, element: _Element, is_applied: bool = False) -> str:
        """Convert an ``<mi>`` or ``<mn>``. ``is_applied`` means that it is a function of what follows."""
        name = _token(element)
        variant = element.get("mathvariant") or ""
        if len(name) > 1 and name not in SYMBOLS and _tag(element) == "mi":
            is_word = name.isascii() and name.isalnum()
            if name in FUNCTIONS:
                return f"\\{name}"
            if is_word and is_applied:
                return f"\\operatorname{{{name}}}"
            if " " in name or (name.isalpha() and not name.isascii() and not any(_letter(char)[0] for char in name)):
                return _text(name)
            variant = variant or ("normal" if is_word else "")
        written = _thousands("{,}", _characters(name))
        command = _VARIANTS.get(variant)
        if not command or not written or (command == "mathrm" and (not name.isascii() or not name.isalpha())):
            return written
        return _in_font(written, command)

    def operator(self, element: _Element) -> str:
        """Convert an ``<mo>``, without the space around it between two terms."""
        name = _token(element)
        if len(name) > 1 and name.isascii() and name.isalpha():
            return f"\\{name}" if name in FUNCTIONS else f"\\operatorname{{{name}}}"
        return SYMBOLS.get(name) or _characters(name)

    def words(self, element: _Element) -> str:
        """Convert an ``<mtext>``. A single symbol becomes a symbol of the formula."""
        words = inner_text(element)
        symbol = words.strip()
        is_symbol = symbol in SYMBOLS and not symbol.isalnum() and symbol not in _TEXT
        if is_symbol or any(_letter(char)[0] for char in symbol):
            return _characters(symbol)
        return _text(words)

    def space(self, element: _Element) -> str:
        if element.get("linebreak") == "newline":
            return " \\\\ "
        width = _em(element.get("width") or "0")
        return next((command for least, command in _SPACES if width >= least), "\\!")

    # ------------------------------------------------------------------ scripts
    def _base(self, part: _Element | None) -> str:
        """Return the base of scripts, in braces if the scripts would otherwise only apply to its last piece."""
        written = _tidy(self.node(part))
        if part is None or not written:
            return "{}"
        part = _sole(part)
        row = _children(part)
        is_delimited = len(row) > 1 and _pairs([_operator_of(child) for child in row]).get(0) == len(row) - 1
        is_whole = _tag(part) in _TOKENS or _tag(part) == "mfenced" or is_delimited or _atom(written)
        return written if is_whole else f"{{{written}}}"

    def _script(self, mark: str, part: _Element | None) -> str:
        if part is None:
            return ""
        if mark == "^" and len(part) < 5 and not any(map(len, part)):
            shown = "".join(inner_text(part).split())
            if shown and all(char in _PRIMES for char in shown):
                return "".join(_PRIMES[char] for char in shown)
        written = self.small(part)
        if not written:
            return ""
        return mark + (written if len(written) == 1 and written not in "\\'" else f"{{{written}}}")

    def scripts(self, element: _Element) -> str:
        base, below, above = _scripts_of(element)
        return self._base(base) + self._script("_", below) + self._script("^", above)

    def limits(self, element: _Element) -> str:
        base, below, above = _scripts_of(element)
        written = _tidy(self.node(base)) or "{}"
        name = _name(written)
        if name and below is not None:
            written = f"\\operatorname*{{{name[1]}}}"
        if written in _LIMITS or written.startswith(("\\overbrace{", "\\underbrace{", "\\operatorname*{")):
            return written + self._script("_", below) + self._script("^", above)
        arrow = _ARROWS.get((_operator_of(base) if base is not None else None) or "")
        if arrow and (below is not None or above is None or _operator_of(above) not in ACCENTS):
            return f"{arrow}{_optional(self.small(below))}{_group(self.small(above))}"
        if above is not None:
            accents = ACCENTS.get(accent := _token(_sole(above)))
            if accents:
                is_narrow = bool(_atom(written)) and above.get("stretchy") != "true" and accent not in "―‾"
                written = f"\\{accents[0 if is_narrow else -1]}{_group(written)}"
            elif small := self.small(above):
                written = f"\\overset{{{small}}}{_group(written)}"
        if below is not None:
            mark, label, *_ = *(_children(below) if _tag(below) == "munder" else [below]), None, None
            command = None if mark is None else _BELOW.get(_token(_sole(mark)))
            if command:
                written = f"\\{command}{_group(written)}" + self._script("_", label)
            elif small := self.small(below):
                written = f"\\underset{{{small}}}{_group(written)}"
        return written

    def multiscripts(self, element: _Element) -> str:
        parts = _children(element)
        tags = [_tag(child) for child in parts]
        middle = tags.index("mprescripts") if "mprescripts" in tags else len(parts)
        before = self._columns(parts[middle + 1 :], "{}")
        base = self._base(parts[0] if parts and middle else None)
        return _join([*before, base, *self._columns(parts[1:middle], "")])

    def _columns(self, scripts: list[_Element], base: str) -> list[str]:
        """Return pairs of scripts, with an empty base for each after the first one."""
        written: list[str] = []
        for below, above in zip_longest(scripts[::2], scripts[1::2]):
            pair = self._script("_", below) + self._script("^", above)
            if pair:
                written.append((base or "{}" * bool(written)) + pair)
        return written

    # ------------------------------------------------------------------ layout
    def fraction(self, element: _Element) -> str:
        top, bottom, *_ = *map(_tidy, map(self.node, _children(element))), "", ""
        return f"{{{top} \\atop {bottom}}}" if _is_stack(element) else f"\\frac{{{top}}}{{{bottom}}}"

    def root(self, element: _Element) -> str:
        base, degree, *_ = *_children(element), None, None
        return f"\\sqrt{_optional(self.small(degree))}{_group(self.node(base))}"

    def fenced(self, element: _Element) -> str:
        opening, closing = (element.get("open", "(").strip(), element.get("close", ")").strip())
        inner = _children(element)
        matrix = self._in_delimiters(opening + closing, inner[0]) if len(inner) == 1 else None
        if matrix is not None:
            return matrix
        separators = "".join((element.get("separators") or ",").split())[:1] + " " * (not self._small)
        content = (_characters(separators[:1]) + separators[1:]).join(map(self.node, inner))
        if _tall(content) and opening in _DELIMITERS and closing in _DELIMITERS and opening + closing:
            return _join([f"\\left{_DELIMITERS[opening]}", content, f"\\right{_DELIMITERS[closing]}"])
        return _join([_characters(opening), content, _characters(closing)])

    def enclosed(self, element: _Element) -> str:
        command = _ENCLOSED.get((element.get("notation") or "").strip().partition(" ")[0])
        content = self.row(element)
        return f"\\{command}{_group(content)}" if command else content

    def first(self, element: _Element) -> str:
        """Write the first child that is not an annotation."""
        return self.node(next((child for child in _children(element) if "annotation" not in _tag(child)), None))

    def table(self, element: _Element, name: str = "") -> str:
        """Return a table as the named environment, or as the best-fitting one."""
        rows: list[list[str]] = []
        for row in _children(element):
            cells = _children(row) if _tag(row) in ("mtr", "mlabeledtr", "tr") else [row]
            rows.append([_tidy(self.node(cell)) for cell in cells])
        columns = max(map(len, rows), default=0)
        content = " \\\\ ".join(map(" & ".join, rows))
        if not name and columns < 2 and self._small:
            return f"\\substack{{{content}}}"
        if not name:
            aligned = (element.get("columnalign") or "").split()[:2] == ["right", "left"]
            name = "aligned" if aligned else "gathered" if columns < 2 else "matrix"
        return f"\\begin{{{name}}} {content} \\end{{{name}}}"


_Writer: TypeAlias = Callable[[_FormulaWriter, _Element], str]
_WRITERS: dict[str, _Writer] = {
    "mi": _FormulaWriter.identifier, "mn": _FormulaWriter.identifier, "mo": _FormulaWriter.operator,
    "ms": _FormulaWriter.words, "mtext": _FormulaWriter.words, "mspace": _FormulaWriter.space,
    "mfrac": _FormulaWriter.fraction, "mroot": _FormulaWriter.root,
    "msqrt": lambda writer, element: f"\\sqrt{_group(writer.row(element))}",
    "mfenced": _FormulaWriter.fenced, "menclose": _FormulaWriter.enclosed, "mtable": _FormulaWriter.table,
    "maction": _FormulaWriter.first, "semantics": _FormulaWriter.first, "mmultiscripts": _FormulaWriter.multiscripts,
    **dict.fromkeys(("msub", "msup", "msubsup"), _FormulaWriter.scripts),
    **dict.fromkeys(("munder", "mover", "munderover"), _FormulaWriter.limits),
    **dict.fromkeys("mphantom annotation annotation-xml none mprescripts script style".split(), lambda *_: ""),
}  # fmt: skip
"""Writers of elements by their tags. Other elements are rows."""
