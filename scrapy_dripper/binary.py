"""Recognise files that are not HTML by their first characters."""

from __future__ import annotations

import re
from collections.abc import Callable

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
