"""Compose pieces of LaTeX. Braces always stay balanced."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from string import ascii_letters

from scrapy_dripper.output.math.tex_symbols import SYMBOLS, TEXT_ESCAPES, alphabet

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
