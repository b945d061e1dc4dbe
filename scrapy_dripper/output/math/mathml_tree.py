"""Queries on the parts of a MathML tree."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, cast

from scrapy_dripper.output.math.tex_symbols import BARS, BINARY, CLOSING, OPENING, RELATIONS

if TYPE_CHECKING:
    from lxml.etree import _Element

Part: TypeAlias = "_Element | str"
"""An element, or text between elements, which only broken pages have."""

SHORT = 200
"""Maximum number of nodes, and of characters, in something short."""

NO_DELIMITER = "."
"""An invisible delimiter, as in LaTeX."""

TOKENS = frozenset({"mi", "mn", "mo", "mtext", "ms"})
ROWS = frozenset({"mrow", "mstyle", "mpadded", "math", "mtd"})
_SCRIPTED = frozenset({"msub", "msup", "msubsup", "munder", "mover", "munderover", "mrow", "mstyle"})

BAR_OF = {"∣": "|", "∥": "‖", "❘": "|", "\uff5c": "|", "||": "‖"}
"""Characters that can be relations or delimiters, and the delimiter."""

_UNITS = {"em": 1.0, "rem": 1.0, "ex": 0.43, "px": 1 / 16, "pt": 1 / 12, "mu": 1 / 18, "cm": 2.4, "mm": 0.24, "in": 6.0}
_SPACES = dict(zip("veryverythin verythin thin medium thick verythick veryverythick".split(), range(1, 8), strict=True))

_white_space = re.compile("[ \t\r\n]+").split
_length = re.compile(r"\s*([-+]?[0-9]*\.?[0-9]+)\s*([a-z]*)").match


def tag_of(part: Part) -> str:
    """Return the name of an element without prefix or namespace, or an empty string for text."""
    if isinstance(part, str):
        return ""
    return str(part.tag).rpartition("}")[2].rpartition(":")[2].lower()


def children(element: _Element) -> list[_Element]:
    """Return the elements in an element."""
    return [child for child in element if isinstance(child.tag, str)]


def parts(element: _Element) -> list[Part]:
    """Return the elements and the texts in an element."""
    found: list[Part] = []
    if element.text and not element.text.isspace():
        found.append(element.text)
    for child in element:
        if isinstance(child.tag, str):
            found.append(child)
        if child.tail and not child.tail.isspace():
            found.append(child.tail)
    return found


def inner_text(element: _Element) -> str:
    """Return the characters in an element."""
    return "".join(cast("Iterator[str]", element.itertext()))


def short_text(element: _Element) -> str | None:
    """Return the characters in an element, or None if it has more than :data:`SHORT` nodes or characters.

    This also limits the time, so it can be called for each of many nested elements.
    """
    if next(islice(element.iter(), SHORT, None), None) is not None:
        return None
    text = inner_text(element)
    return text if len(text) <= SHORT else None


def is_blank(element: _Element) -> bool:
    """Return True if an element only holds white space."""
    return all(text.isspace() for text in cast("Iterator[str]", element.itertext()))


def token(element: _Element) -> str:
    """Return the characters of a token element with XML white space collapsed."""
    words = inner_text(element) if len(element) else element.text or ""
    if words.isascii() and words.isalnum():
        return words
    return unicodedata.normalize("NFC", " ".join(filter(None, _white_space(words))))


def sole(part: Part) -> Part:
    """Return the only child of a part if the part is just a group, or else the part itself."""
    for _ in range(8):
        if isinstance(part, str) or tag_of(part) not in ("mrow", "mstyle", "mpadded"):
            break
        inner = parts(part)
        if len(inner) != 1:
            break
        part = inner[0]
    return part


def operator_of(part: Part) -> str | None:
    """Return the characters of an operator, which may be in a group, or None for other parts."""
    part = sole(part)
    if isinstance(part, str):
        return None
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


def core(part: Part) -> str | None:
    """Return the operator of a part, ignoring scripts and accents, such as the text above an arrow."""
    for _ in range(4):
        if isinstance(part, str) or not len(part) or tag_of(part) not in _SCRIPTED:
            break
        part = sole(part[0])
    return operator_of(part)


def joins_terms(operators: list[str | None], i: int) -> bool:
    """Return True if operator i is binary, such as a minus that is not a sign."""
    if not 0 < i < len(operators) - 1:
        return False
    before = operators[i - 1]
    return before is None or not (
        before in RELATIONS or before in BINARY or before in OPENING or before in (",", ";", ":")
    )


def pairs(row: Sequence[Part], operators: list[str | None]) -> dict[int, int]:
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


def _bar(part: Part, i: int, operators: list[str | None], stack: list[int], found: dict[int, int]) -> None:
    """Decide whether a delimiter that can open or close does one or the other."""
    part = sole(part)
    form = "" if isinstance(part, str) else part.get("form") or part.get("data-mjx-texclass")
    if form not in ("prefix", "OPEN") and stack and operators[stack[-1]] in (operators[i], NO_DELIMITER):
        found[stack.pop()] = i
    elif form not in ("postfix", "CLOSE"):
        stack.append(i)


def is_stack(part: Part) -> bool:
    """Return True for a fraction without a bar."""
    return not isinstance(part, str) and tag_of(part) == "mfrac" and em(part.get("linethickness") or "1") == 0


def has_lines(table: _Element) -> bool:
    """Return True if a table has lines between its columns."""
    return any(line in (table.get("columnlines") or "") for line in ("solid", "dashed"))


def em(length: str) -> float:
    """Return a length in em, or 1 if it is invalid."""
    name = length.strip()
    sign = -1 if name.startswith("negative") else 1
    name = name.removeprefix("negative").removesuffix("mathspace")
    if name in _SPACES:
        return sign * _SPACES[name] / 18
    found = _length(length)
    return float(found[1]) * _UNITS.get(found[2], 1.0) if found else 1.0
