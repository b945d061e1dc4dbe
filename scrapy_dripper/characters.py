"""What a word is, and which characters are removed from texts: what a terminal obeys, and optional line breaks."""

from __future__ import annotations

import json
import re
from typing import Any

CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Kana and Han, for a class of a regular expression. Each of them counts as a word."""
words_of = re.compile(rf"[{CJK}]|\w+").findall
"""The words of a text."""

_ASCII = bytes([*range(9), 11, 12, *range(14, 32), 127])
_NEXT_LINE = "\x85"
"""Unicode counts it as white space. It becomes a space, so that the words around it stay apart."""

_not_text = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_breaks = re.compile("[\t-\r\x85\u2028\u2029]").sub
_commands = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]").sub
_not_escaped = re.compile("[\x7f-\x9f\ud800-\udfff]").sub  # by the module json
# Optional line breaks and byte order marks. They separate words in scripts without spaces, such as Thai.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_optional = re.compile(f"[\u00ad\u2060\ufeff]|(?<![{_SPACELESS}])\u200b(?![{_SPACELESS}])").sub
_breakable = re.compile("[\u00ad\u200b\u2060\ufeff]").search


def has_controls(text: str) -> bool:
    """Return True if a text has characters that :func:`without_controls` removes."""
    if text.isprintable():
        return False
    if text.isascii():  # six times as fast as the regular expression
        return len(text.encode("ascii").translate(None, _ASCII)) < len(text)
    return _not_text.search(text) is not None


def without_controls(text: str) -> str:
    """Return a text without characters that XML forbids or that control a terminal.

    These are the C0 controls except tab, line feed and carriage return, as well as DEL, the C1 controls, lone
    surrogates, U+FFFE and U+FFFF.
    """
    if not has_controls(text):
        return text
    return _not_text.sub("", text.replace(_NEXT_LINE, " "))


def unbroken(text: str) -> str:
    """Remove the characters that mark optional line breaks, because they would prevent a search from finding words."""
    return _optional("", text) if not text.isascii() and _breakable(text) else text


def printable(text: str) -> str:
    """Return a text with U+FFFD in place of characters that control a terminal. Names and URLs come from outside."""
    return _commands("\ufffd", text)


def to_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON text. Characters that control a terminal, and those that stand for bytes of the name of a
    file, which UTF-8 does not have, are escaped; others are written as they are.
    """
    return _not_escaped(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False, indent=indent))


def on_one_line(text: str) -> str:
    """Return a printable text with spaces in place of line breaks and tabs, which names of files may have as well."""
    return printable(_breaks(" ", text))
