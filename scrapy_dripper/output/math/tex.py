"""Write LaTeX, and clean the LaTeX of pages. Braces always stay balanced."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from string import ascii_letters


def _table(pairs: str) -> dict[str, str]:
    words = pairs.split()
    return {char: f"\\{name}" for char, name in zip(words[::2], words[1::2], strict=True)}


LETTERS = _table(
    "α alpha β beta γ gamma δ delta ϵ epsilon ε varepsilon ζ zeta η eta θ theta ϑ vartheta ι iota κ kappa ϰ varkappa "
    "λ lambda μ mu µ mu ν nu ξ xi π pi ϖ varpi ρ rho ϱ varrho σ sigma ς varsigma τ tau υ upsilon ϕ phi φ varphi χ chi "
    "ψ psi ω omega ϝ digamma Γ Gamma Δ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma ϒ Upsilon Υ Upsilon Φ Phi Ψ Psi "
    "Ω Omega Ω Omega ∂ partial ∇ nabla ∞ infty ∅ emptyset ℵ aleph ℶ beth ℷ gimel ℸ daleth ℏ hbar ℓ ell ℘ wp ℜ Re "
    "ℑ Im ı imath ȷ jmath ð eth ℧ mho ƛ lambdabar"
)

RELATIONS = _table(
    "≤ leq ≥ geq ≠ neq ≡ equiv ≢ not\\equiv ≈ approx ≉ not\\approx ∼ sim ≁ nsim ≃ simeq ≅ cong ≇ ncong ≊ approxeq "
    "≍ asymp ≐ doteq ≑ doteqdot ≒ fallingdotseq ≓ risingdotseq ≔ coloneqq ≕ eqqcolon ≜ triangleq ≝ "
    "overset{\\text{def}}{=} "
    "∝ propto ∈ in ∉ notin ∋ ni ∌ not\\ni ⊂ subset ⊃ supset ⊆ subseteq ⊇ supseteq ⊄ not\\subset ⊅ not\\supset "
    "⊈ nsubseteq ⊉ nsupseteq ⊊ subsetneq ⊋ supsetneq ⋐ Subset ⋑ Supset ⊏ sqsubset ⊐ sqsupset ⊑ sqsubseteq "
    "⊒ sqsupseteq ≪ ll ≫ gg ⋘ lll ⋙ ggg ≺ prec ≻ succ ⪯ preceq ⪰ succeq ≼ preccurlyeq ≽ succcurlyeq ⩽ leqslant "
    "⩾ geqslant ≦ leqq ≧ geqq ≲ lesssim ≳ gtrsim ⪅ lessapprox ⪆ gtrapprox ≶ lessgtr ≷ gtrless ≮ nless ≯ ngtr "
    "≰ nleq ≱ ngeq ≨ lneqq ≩ gneqq ∣ mid ∤ nmid ∥ parallel ∦ nparallel ⊥ perp ⟂ perp ⊢ vdash ⊣ dashv ⊨ models "
    "⊩ Vdash ⊬ nvdash ⊭ nvDash ⋈ bowtie ⌢ frown ⌣ smile ⊲ vartriangleleft ⊳ vartriangleright ⊴ trianglelefteq "
    "⊵ trianglerighteq → to ← leftarrow ↔ leftrightarrow ⇒ Rightarrow ⇐ Leftarrow ⇔ Leftrightarrow ⟶ longrightarrow "
    "⟵ longleftarrow ⟷ longleftrightarrow ⟹ Longrightarrow ⟸ Longleftarrow ⟺ iff ↦ mapsto ⟼ longmapsto "
    "↪ hookrightarrow ↩ hookleftarrow ↠ twoheadrightarrow ↞ twoheadleftarrow ↣ rightarrowtail ⇀ rightharpoonup "
    "⇁ rightharpoondown ↼ leftharpoonup ↽ leftharpoondown ⇌ rightleftharpoons ⇋ leftrightharpoons ⇄ rightleftarrows "
    "⇆ leftrightarrows ⇉ rightrightarrows ⇈ upuparrows ⇊ downdownarrows ⇝ rightsquigarrow ⇝ rightsquigarrow "
    "↝ leadsto ⤳ leadsto ↗ nearrow ↘ searrow ↙ swarrow ↖ nwarrow ↛ nrightarrow ↚ nleftarrow ⇏ nRightarrow "
    "⇍ nLeftarrow ⊸ multimap ≟ overset{?}{=} ∴ therefore ∵ because ≎ Bumpeq ≏ bumpeq ⋔ pitchfork ⊺ intercal"
) | {"=": "=", "<": "<", ">": ">", ":=": ":=", "==": "==", "!=": "\\neq", "<=": "\\leq", ">=": "\\geq", "->": "\\to",
     "=>": "\\Rightarrow", "<-": "\\leftarrow"}  # fmt: skip

BINARY = _table(
    "± pm ∓ mp × times ÷ div ⋅ cdot · cdot ∘ circ ∙ bullet • bullet ∪ cup ∩ cap ⊎ uplus ∖ setminus ⧵ setminus "
    "∧ wedge ∨ vee ⊕ oplus ⊖ ominus ⊗ otimes ⊘ oslash ⊙ odot ⊚ circledcirc ⊛ circledast ⊔ sqcup ⊓ sqcap ⋆ star "
    "★ bigstar † dagger ‡ ddagger ≀ wr ⨿ amalg ⋉ ltimes ⋊ rtimes ⊠ boxtimes ⊞ boxplus ⊡ boxdot ⊟ boxminus △ triangle "
    "▵ triangle ▽ bigtriangledown ◃ triangleleft ▹ triangleright ⋄ diamond ∔ dotplus ⊻ veebar ⋏ curlywedge ⋎ curlyvee "
    "⋒ Cap ⋓ Cup"
) | {"+": "+", "-": "-", "−": "-", "–": "-", "*": "*", "∗": "*"}

LARGE = _table(
    "∑ sum ∏ prod ∐ coprod ∫ int ∬ iint ∭ iiint ⨌ iiiint ∮ oint ∯ oiint ∰ oiiint ⋃ bigcup ⋂ bigcap ⨆ bigsqcup ⋁ bigvee "
    "⋀ bigwedge ⨁ bigoplus ⨂ bigotimes ⨀ bigodot ⨄ biguplus"
)

OPENING = {"(": "(", "[": "[", "{": "\\{", "⟨": "\\langle", "〈": "\\langle", "⌊": "\\lfloor", "⌈": "\\lceil",
           "⟦": "\\llbracket", "⟮": "\\lgroup", "⎰": "\\lmoustache"}  # fmt: skip
CLOSING = {")": ")", "]": "]", "}": "\\}", "⟩": "\\rangle", "〉": "\\rangle", "⌋": "\\rfloor", "⌉": "\\rceil",
           "⟧": "\\rrbracket", "⟯": "\\rgroup", "⎱": "\\rmoustache"}  # fmt: skip
BARS = {"|": "|", "‖": "\\|", "∥": "\\|", "||": "\\|", "\uff5c": "|", "❘": "|"}
"""Delimiters that can open or close."""

_OTHER = _table(
    "∀ forall ∃ exists ∄ nexists ¬ neg ⊤ top ∠ angle ∡ measuredangle ∢ sphericalangle √ surd □ square ◻ "
    "square ■ blacksquare "
    "◼ blacksquare ▪ blacksquare ◊ lozenge ⧫ blacklozenge △ triangle ▲ blacktriangle ♠ spadesuit ♡ heartsuit "
    "♢ diamondsuit "
    "♣ clubsuit ♭ flat ♮ natural ♯ sharp ✓ checkmark ✠ maltese … ldots ⋯ cdots ⋮ vdots ⋱ ddots ↑ uparrow ↓ downarrow "
    "↕ updownarrow ⇑ Uparrow ⇓ Downarrow ⇕ Updownarrow ′ prime ‵ backprime ° circ § S ¶ P £ pounds ∁ complement "
    "Ⓢ circledS ® circledR ¥ yen"
)

ESCAPES = {"#": "\\#", "$": "\\$", "%": "\\%", "&": "\\&", "_": "\\_", "{": "\\{", "}": "\\}", "\\": "\\backslash",
           "~": "\\sim", "^": "\\wedge", "\xa0": "~"}  # fmt: skip
"""Characters with a special meaning in LaTeX, as written in formulas."""

TEXT_ESCAPES = ESCAPES | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "\xa0": " "}
"""The same, as written in text."""

INVISIBLE = dict.fromkeys("\u2061\u2062\u2063\u2064\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f\u00ad", "")
"""Invisible characters: function application, invisible times, separators, joiners."""

SYMBOLS: dict[str, str] = {
    **ESCAPES, **_OTHER, **LETTERS, **OPENING, **CLOSING, **BARS, **RELATIONS, **BINARY, **LARGE, **INVISIBLE,
    "\u2146": "d", "\u2145": "D", "\u2147": "e", "\u2148": "i", "\u2149": "j",  # differentials and constants
    "\u2033": "''", "\u2034": "'''", "\u2057": "''''", "...": "\\ldots", "ℎ": "h", "−": "-", "\u2215": "/",
    "\u2044": "/",
    "\u2236": ":", "\u2009": "\\,", "\u2006": "\\,", "\u200a": "\\,", "\u2005": "\\:",
    "\u2004": "\\;", "\u2003": "\\quad ",
    "\u2002": "\\enspace ", "\u202f": "\\,",
}  # fmt: skip
"""LaTeX of characters in a formula. Other characters represent themselves."""

FUNCTIONS = frozenset(
    "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln "
    "log max min "
    "Pr sec sin sinh sup tan tanh".split()
)
"""Names of functions that have a command."""

LIMITS = frozenset({"\\" + name for name in "det gcd inf lim liminf limsup max min Pr sup".split()}) | set(
    LARGE.values()
)
"""Commands whose sub- and superscripts are written below and above."""

ACCENTS = {
    "^": ("hat", "widehat"), "ˆ": ("hat", "widehat"), "\u0302": ("hat", "widehat"), "~": ("tilde", "widetilde"),
    "˜": ("tilde", "widetilde"), "∼": ("tilde", "widetilde"), "\u0303": ("tilde", "widetilde"),
    "¯": ("bar", "overline"), "‾": ("bar", "overline"), "ˉ": ("bar", "overline"), "―": ("bar", "overline"),
    "_": ("bar", "overline"), "\u0304": ("bar", "overline"), "\u0305": ("bar", "overline"), "-": ("bar", "overline"),
    "−": ("bar", "overline"), "─": ("bar", "overline"),
    "→": ("vec", "overrightarrow"), "\u20d7": ("vec", "overrightarrow"), "⇀": ("vec", "overrightarrow"),
    "←": ("overleftarrow", "overleftarrow"), "↔": ("overleftrightarrow", "overleftrightarrow"),
    "˙": ("dot", "dot"), ".": ("dot", "dot"), "\u0307": ("dot", "dot"), "⋅": ("dot", "dot"), "·": ("dot", "dot"),
    "¨": ("ddot", "ddot"), "\u0308": ("ddot", "ddot"), "..": ("ddot", "ddot"), "\u20db": ("dddot", "dddot"),
    "ˇ": ("check", "check"), "\u030c": ("check", "check"), "˘": ("breve", "breve"), "\u0306": ("breve", "breve"),
    "´": ("acute", "acute"), "\u0301": ("acute", "acute"), "`": ("grave", "grave"), "\u0300": ("grave", "grave"),
    "˚": ("mathring", "mathring"), "\u030a": ("mathring", "mathring"),
    "⏞": ("overbrace", "overbrace"), "︷": ("overbrace", "overbrace"), "⏜": ("overparen", "overparen"),
}  # fmt: skip
"""Commands for accents: over one character, and over several."""

ACCENTS_BELOW = {
    "_": "underline", "¯": "underline", "―": "underline", "\u0332": "underline", "‾": "underline",
    "─": "underline", "⏟": "underbrace", "︸": "underbrace", "⏝": "underparen", "→": "underrightarrow",
    "←": "underleftarrow", "↔": "underleftrightarrow",
}  # fmt: skip

STRETCHED = {
    "→": "\\xrightarrow", "⟶": "\\xrightarrow", "←": "\\xleftarrow", "⟵": "\\xleftarrow", "↔": "\\xleftrightarrow",
    "⇒": "\\xRightarrow", "⇐": "\\xLeftarrow", "⇔": "\\xLeftrightarrow", "↦": "\\xmapsto", "↪": "\\xhookrightarrow",
    "↩": "\\xhookleftarrow", "⇌": "\\xrightleftharpoons", "⇋": "\\xleftrightharpoons",
}  # fmt: skip
"""Arrows that grow with the text on them."""

_FONTS = (
    ("BOLD ITALIC", "boldsymbol"), ("BOLD SCRIPT", "mathcal"), ("BOLD FRAKTUR", "mathfrak"), ("BOLD", "mathbf"),
    ("ITALIC", ""), ("SCRIPT", "mathcal"), ("FRAKTUR", "mathfrak"), ("BLACK-LETTER", "mathfrak"),
    ("DOUBLE-STRUCK", "mathbb"), ("SANS-SERIF", "mathsf"), ("MONOSPACE", "mathtt"),
)  # fmt: skip


@lru_cache(1_024)
def alphabet(char: str) -> tuple[str, str]:
    """Return the command of a character's alphabet and the plain letter, such as ``("mathbb", "R")``.

    This covers the Unicode blocks Mathematical Alphanumeric Symbols and Letterlike Symbols. For other characters, the
    command is empty.
    """
    if not ("\u2100" <= char <= "\u214f" or "\U0001d400" <= char <= "\U0001d7ff"):
        return "", char
    name = unicodedata.name(char, "").removeprefix("MATHEMATICAL ")
    plain = unicodedata.normalize("NFKC", char)
    for words, command in _FONTS:
        if name.startswith(words) and len(plain) == 1:
            return command, plain
    return "", char


_spaces = re.compile(" {2,}").sub
_runs = re.compile(r"\\(mathrm|mathtt|mathsf|text)\{[^{}\\]*\}(?:\\\1\{[^{}\\]*\})+").sub
_arrows = re.compile(r"(?:\\[; ])? ?\\(Longrightarrow|Longleftarrow|iff) ?\\[; ] ?").sub
_implications = {"Longrightarrow": " \\implies ", "Longleftarrow": " \\impliedby ", "iff": " \\iff "}
_pmod = re.compile(r" ?\\quad ?\(\\mathrm\{mod\}(?:\\[;,]|\\ ) ?([^(){}]*)\)").sub
_braces = re.compile(r"\\.|[{}]", re.DOTALL).finditer


def tidy(tex: str) -> str:
    """Strip LaTeX and collapse its spaces."""
    tex = _spaces(" ", tex).strip(" ")
    end = len(tex) - len(tex.rstrip("\\"))
    return tex[:-1].rstrip(" ") if end % 2 else tex  # drop the backslash of an escaped space


def polish(tex: str) -> str:
    """Return LaTeX as an author would write it: group letters of the same font, and add spaces around arrows."""
    if "}\\" in tex:
        tex = _runs(
            lambda run: f"\\{run[1]}{{{run[0].replace(f'}}{chr(92)}{run[1]}{{', '')[len(run[1]) + 2 : -1]}}}", tex
        )
    if "\\mathrm{mod}" in tex:
        tex = _pmod(r" \\pmod{\1}", tex).replace("\\,\\mathrm{mod}\\,", " \\bmod ")
    if "\\Long" in tex or "\\iff" in tex:
        tex = _arrows(lambda arrow: _implications[arrow[1]], tex)
    return tidy(tex)


def join(pieces: Iterable[str]) -> str:
    """Join pieces of LaTeX, with a space between the name of a command and a letter."""
    joined: list[str] = []
    last = ""
    for piece in pieces:
        if piece:
            if piece[0].isalpha() and last and last[-1] in ascii_letters and last.rstrip(ascii_letters)[-1:] == "\\":
                joined.append(" ")
            joined.append(piece)
            last = piece
    return "".join(joined)


def group(tex: str) -> str:
    """Return LaTeX in braces."""
    return f"{{{tidy(tex)}}}"


def argument(tex: str) -> str:
    """Return LaTeX as a sub- or superscript: in braces unless it is a single character."""
    tex = tidy(tex)
    return tex if len(tex) == 1 and tex not in "\\'" else f"{{{tex}}}"


def optional(tex: str) -> str:
    """Return LaTeX as an optional argument, such as the degree of a root, or an empty string if it is empty."""
    tex = tidy(tex)
    if not tex:
        return ""
    return f"[{{{tex}}}]" if "[" in tex or "]" in tex else f"[{tex}]"


def text(words: str, command: str = "text") -> str:
    """Return words as LaTeX text. White space at either end becomes a space."""
    inner = " ".join(words.split())
    if not inner:
        return "\\ " if words else ""
    before, after = " " * words[0].isspace(), " " * words[-1].isspace()
    return f"\\{command}{{{before}{''.join(TEXT_ESCAPES.get(char, char) for char in inner)}{after}}}"


def characters(symbols: str) -> str:
    """Return the characters of a formula as LaTeX, one by one."""
    if symbols.isascii() and symbols.isalnum():
        return symbols
    pieces: list[str] = []
    for command, chars in groupby(map(_styled, symbols), key=lambda pair: pair[0]):
        plain = join(SYMBOLS.get(char, "\\ " if char == " " else char) for _, char in chars)
        pieces.append(styled(plain, command) if command else plain)
    return join(pieces)


def styled(tex: str, command: str) -> str:
    """Return LaTeX in the font of a command. For bold Greek letters, only ``boldsymbol`` works."""
    return f"\\{'boldsymbol' if command == 'mathbf' and chr(92) in tex else command}{{{tex}}}"


def balanced(tex: str) -> bool:
    """Return True if braces are balanced, ignoring escaped ones."""
    depth = 0
    for found in _braces(tex):
        if found[0] == "{":
            depth += 1
        elif found[0] == "}":
            depth -= 1
            if depth < 0:
                return False
    return depth == 0


def _styled(char: str) -> tuple[str, str]:
    return ("", char) if char in SYMBOLS else alphabet(char)


# The lookbehind makes white space match from its beginning only, and not from each of its characters.
_comment = re.compile(r"(?<!\\)%[^\n]*(?:\n[ \t]*|\Z)").sub
_cdata = re.compile(r"(?:%\s*|(?<!\s)\s+)?<!\[CDATA\[\s*|(?:(?<!\s)\s+)?(?:%\s*)?\]\]>").sub
_blank_lines = re.compile(r"(?:(?<![ \t\r])[ \t\r]+)?\n\s*").sub
_in_style = re.compile(r"\{\s*\\(?:displaystyle|textstyle)\b(.*)\}", re.DOTALL).fullmatch
_DELIMITED = (
    ("\\(", "\\)", False), ("\\[", "\\]", True), ("$$", "$$", True), ("$", "$", False), ("[tex]", "[/tex]", True),
    ("[itex]", "[/itex]", False),
)  # fmt: skip


def clean(source: str, wikipedia: bool = False) -> str:
    """Return LaTeX without comments and blank lines and, with ``wikipedia``, without the style that Wikipedia adds."""
    tex = source.replace("\r\n", "\n").replace("\xa0", " ").replace("\u200b", "")
    if "<![" in tex:
        tex = _cdata("", tex)
    if "%" in tex and "\n" in tex:
        tex = _comment(_last_comment, tex)
    if "\n" in tex:
        tex = _blank_lines("\n", tex)
    tex = tex.strip()
    if wikipedia:
        found = _in_style(tex)
        if found and _whole(tex):
            tex = found[1].strip()
    return without_open_end(tex)


def _last_comment(comment: re.Match[str]) -> str:
    """Return the replacement for a comment. Without a following line it is kept, as it may just be a percent sign."""
    return "" if "\n" in comment[0] else comment[0]


def without_open_end(tex: str) -> str:
    """Return LaTeX without a backslash, or an escaped space, at its end."""
    tex = tex.strip()
    while (len(tex) - len(tex.rstrip("\\"))) % 2:
        tex = tex[:-1].rstrip()
    return tex


def undelimited(tex: str) -> tuple[str, bool | None]:
    """Return LaTeX without its delimiters, and whether they are those of a display formula; None without delimiters."""
    for opening, closing, display in _DELIMITED:
        if tex.startswith(opening) and tex.endswith(closing) and len(tex) >= len(opening) + len(closing):
            inner = tex[len(opening) : -len(closing)]
            plain = inner.replace("\\$", "") if opening[0] == "$" else inner
            if opening not in plain and closing not in plain:
                return without_open_end(inner), display
    return tex, None


def _whole(tex: str) -> bool:
    """Return True if the last brace closes the first."""
    depth = 0
    escaped = False
    for i, char in enumerate(tex):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0 and i < len(tex) - 1:
                return False
    return depth == 0
