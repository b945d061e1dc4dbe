"""Number the entries of lists with letters or Roman numerals (HTML standard, 4.4.5: ``<ol type>``; CSS Lists 3)."""

from __future__ import annotations

from typing import Literal, TypeAlias

Numeral: TypeAlias = Literal["a", "A", "i", "I"]

_ROMAN = (
    *((1_000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_LARGEST = 3_999


def numeral(number: int, kind: Numeral) -> str:
    """Return a number as browsers show it: those that a system does not have are decimal."""
    if kind in ("i", "I"):
        text = _roman(number) if 0 < number <= _LARGEST else ""
    else:
        text = _letters(number) if number > 0 else ""
    if not text:
        return str(number)
    return text.upper() if kind in ("A", "I") else text


def _letters(number: int) -> str:
    text = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


def _roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        times, number = divmod(number, value)
        text += letters * times
    return text
