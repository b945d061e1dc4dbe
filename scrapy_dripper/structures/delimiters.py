"""Find LaTeX formulas in the text of a page, between the delimiters of MathJax and KaTeX.

``\\(..\\)``, ``\\[..\\]`` and amsmath environments are unambiguous. Dollar signs are not: most of them are prices, and
some are shell variables. Unless the page is configured for them (:class:`~scrapy_dripper.declared.head.Notation`),
the text between two dollar signs must look like a formula.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from scrapy_dripper.declared.head import Notation
from scrapy_dripper.structures.items import Emphasis, Formula, LineBreak, Run, Runs, Strong, Sub, Sup, Text

MAX_LENGTH = 10_000
"""Maximum length of a formula between delimiters, in characters."""
MAX_INLINE = 1_000
"""Maximum length of a formula between single dollar signs."""
MAX_OPEN = 10
"""How many of the nearest opening delimiters to try for each closing delimiter."""

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

    Each closing delimiter only closes the nearest :data:`MAX_OPEN` ones, because the text between each pair is read.
    """
    following: dict[str, int] = {}
    opened = [0] * len(marks)
    closes = [0] * len(marks)
    for i in range(len(marks) - 1, -1, -1):
        mark = marks[i][2]
        j = following.get(CLOSING.get(mark, ""), 0)
        opened[j] += 1
        closes[i] = j if opened[j] <= MAX_OPEN else 0
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
    if stop - start > MAX_LENGTH:
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
    if end - begin > MAX_LENGTH:
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
