"""What a word is, which characters are removed or replaced, and by which a document is known that is no text."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lxml.html import HtmlElement

CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Kana and Han, for a class of a regular expression. Each of them counts as a word."""
words_of = re.compile(rf"[{CJK}]|\w+").findall
"""The words of a text."""
WIDE = "[\u2e80-\u312f\u31a0-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
is_wide = re.compile(WIDE).match


def spaced(text: str) -> str:
    """Return the words of a text in lower case, each between spaces, to be searched for whole words."""
    return f" {' '.join(words_of(text.lower()))} "


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


_PREFIX = 1_024
MAX_CONTROLS = 0.05
"""Maximum share of control characters, except NUL and white space, at the beginning of an HTML document."""

_controls = re.compile("[\x01-\x08\x0e-\x1a\x1c-\x1f]").findall

# The patterns match decoded text, in which the result for a non-ASCII byte depends on the encoding that was guessed.
_MAGIC: tuple[tuple[Callable[[str], re.Match[str] | None], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL).match, kind)
    for pattern, kind in (
        (r"\s*%PDF-\d", "a PDF"),
        (r"\s*%!PS", "a PostScript file"),
        (r".?PNG\r?\n\x1a", "a PNG image"),
        (r"GIF8[79]a", "a GIF image"),
        (r"[^<]{2,16}(?:JFIF|Exif)\0", "a JPEG image"),
        (r"RIFF.{2,4}(?:WEBP|WAVE|AVI )", "a RIFF file (WebP, WAV or AVI)"),
        (r"BM.{3,4}\0\0\0\0", "a BMP image"),
        (r".{2,4}ftyp", "an MP4 or AVIF file"),
        (r"PK(?:\x03\x04|\x05\x06)", "a ZIP archive or an Office file"),
        (r"7z.{1,2}\x27\x1c|Rar!\x1a", "an archive"),
        (r"\x1f[^<]", "a gzip file"),
        (r"BZh\d1AY&SY|.?7zXZ\0", "an archive"),
        (r"[^<]{1,2}\x11.{1,5}\x1a", "an Office file"),
        (r"\{\\rtf1", "an RTF document"),
        (r"SQLite format 3\0", "a database"),
        (r"wOF[F2]\0", "a font"),
        (r"OggS\0|ID3[\x02-\x04]|fLaC\0", "a sound file"),
        (r".?ELF[\x01\x02]", "a program"),
    )
)


def looks_binary(document: str | bytes) -> str | None:
    """Return the file type that the first 1,024 characters or bytes indicate, such as ``a PDF``; None for text."""
    prefix = document[:_PREFIX]
    text = prefix if isinstance(prefix, str) else prefix.decode("latin-1")
    for magic, kind in _MAGIC:
        if magic(text):
            return kind
    if len(_controls(text)) > max(8, MAX_CONTROLS * len(text)):
        return "binary data"
    return None


MAX_ATTRIBUTES = 1_000
"""Attributes of a tag to keep. libxml2's tree takes 0.2 s for 10,000 attributes, 1 s for 20,000, 12 s for 40,000."""
# lxml rejects these characters in new text, although its parser lets some of them pass.
_not_xml = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def xml_text(text: str) -> str:
    """Replace the characters that lxml rejects by U+FFFD."""
    return _not_xml.sub("\ufffd", text)


def append_text(element: HtmlElement, text: str) -> None:
    """Add text at the end of an element."""
    if len(element):
        last = element[-1]
        last.tail = xml_text((last.tail or "") + text)
    else:
        element.text = xml_text((element.text or "") + text)


def set_attributes(element: HtmlElement, attributes: Mapping[str, str]) -> None:
    """Set the first :data:`MAX_ATTRIBUTES` attributes. Skip names that lxml rejects."""
    for name, value in islice(attributes.items(), MAX_ATTRIBUTES):
        # A name such as ``"`` is rejected. Nothing reads such attributes.
        with contextlib.suppress(ValueError):
            element.set(name, xml_text(value))
