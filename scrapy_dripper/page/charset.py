"""Decode documents to text. Crawls use this as well, because Scrapy would decode ``response.text`` in their process.

Encodings are tried in this order: byte order mark, strict UTF-8, UTF-8 with a few broken characters, the charset of the
header, the one of a ``<meta>`` or XML declaration, a statistical detector. UTF-8 comes before the declared charsets,
because declarations are often wrong, and text in another encoding is rarely valid UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5
from w3lib.encoding import html_body_declared_encoding, read_bom, resolve_encoding, to_unicode

MAX_DAMAGE = 0.01
"""Maximum share of U+FFFD and C1 controls among the characters of an accepted text."""
MAX_DAMAGE_NON_ASCII = 0.1
"""The same among the non-ASCII characters. Markup can hide a wrong guess from the first limit."""

_PREFIX = 4_096
_LAST_RESORT = "cp1252"
_NOT_FOR_TEXT = frozenset({"undefined", "unicode-escape", "raw-unicode-escape", "idna", "punycode", "mbcs", "oem"})
_c1 = re.compile("[\x80-\x9f]").findall


def decode_html(body: bytes, charset: str | None = None) -> str:
    """Return the text of a document. Never raises.

    ``charset`` is the charset of its Content-Type header, if any. Bytes that cannot be decoded become U+FFFD.
    """
    return decoded(body, charset)[0]


def in_utf8(text: str) -> bytes:
    """Return a text in UTF-8. Lone surrogates become question marks."""
    return text.encode("utf-8", "replace")


def decoded(body: bytes, charset: str | None = None) -> tuple[str, bytes]:
    """Return the text of a document as :func:`decode_html` does, and the text in UTF-8."""
    marked, mark = read_bom(body)
    if mark:
        body = body[len(mark) :]
    if marked in (None, "utf-8") and not _wide_or_escaped(body):
        found = _utf8(body)
        if found is not None:
            return found
    best, least, tried = "", 2.0, set()
    for name in _candidates(body, marked, charset):
        if name is None or name in tried:
            continue
        tried.add(name)
        try:
            text = to_unicode(body, name)
        except (LookupError, ValueError):  # not a text codec, or one that does not support replacements
            continue
        damage = _damage(text)
        if damage <= MAX_DAMAGE:
            return text, in_utf8(text)
        if damage < least:
            best, least = text, damage
    return best, in_utf8(best)


def _wide_or_escaped(body: bytes) -> bool:
    """Return True if the bytes look like UTF-16, UTF-32 or ISO 2022, even if they are valid UTF-8."""
    return body.find(b"\0", 0, _PREFIX) >= 0 or (body.find(b"\x1b", 0, 16 * _PREFIX) >= 0 and body.isascii())


def _utf8(body: bytes) -> tuple[str, bytes] | None:
    """Return the text of a document and its bytes if they are UTF-8, which are not encoded again."""
    try:
        return body.decode(), body
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":  # the document was cut off within a character
            body = body[: error.start]
            return body.decode(), body
    return None


def _candidates(body: bytes, marked: str | None, charset: str | None) -> Iterator[str | None]:
    """Yield codec names, the most trusted first. The costly detection only runs if the others have failed."""
    yield marked
    header = _codec(charset)
    # A short text in other letters than Latin ones has few zero bytes, unless it has much markup.
    wide = _wide(body, 0.1 if header and header.startswith(("utf-16", "utf-32")) else 0.4)
    yield wide
    declared = _codec(html_body_declared_encoding(body[:_PREFIX]))
    if body.isascii():
        yield from (name for name in (header, declared) if name and name.startswith("iso2022"))
        if b"\x1b" in body:
            found = _codec(_detected(body))
            yield found if found and found.startswith("iso2022") else None
    yield "utf-8"
    for name in (header, declared):
        # Without NULs in its markup, a text is not UTF-16, whatever is declared. Browsers do the same for <meta>.
        yield None if name and name.startswith(("utf-16", "utf-32")) and not wide else name
    yield _codec(_detected(body))
    yield _LAST_RESORT


def _wide(body: bytes, least: float) -> str | None:
    """Return the UTF-16 or UTF-32 codec that the positions of zero bytes indicate, if any.

    More than the share ``least`` of the bytes at such a position are zero.
    """
    prefix = body[:_PREFIX]
    quarter = len(prefix) // 4
    if quarter == 0:
        return None
    mostly_zero = "".join("0" if prefix[i::4].count(0) > least * quarter else "x" for i in range(4))
    return {"x000": "utf-32-le", "000x": "utf-32-be", "x0x0": "utf-16-le", "0x0x": "utf-16-be"}.get(mostly_zero)


def _codec(label: str | None) -> str | None:
    """Return Python's codec for a label as browsers read it (latin-1 is windows-1252), or None for an unknown one."""
    if not label:
        return None
    label = label.strip(" \t\r\n\"';")
    try:
        name = map_encoding_to_html5(label, fallback_utf8=False) or resolve_encoding(label)
        name = resolve_encoding(name) if name else None  # the first knows more labels, the second wider codecs
    except (LookupError, ValueError):
        return None
    return None if name in _NOT_FOR_TEXT else name


def _detected(body: bytes) -> str | None:
    # With html5_compatible, the detector does not know cp949 and answers utf-8 for Korean.
    name: str | None = detect_encoding(body, html5_compatible=False)
    return name


def _damage(text: str) -> float:
    """Return the share of characters that indicate a wrong codec, at least ``2 * MAX_DAMAGE`` if markup hides it."""
    bad = text.count("\ufffd") + len(_c1(text))
    if bad == 0:
        return 0.0
    beyond = len(text) - len(text.encode("ascii", "ignore"))
    share = bad / len(text)
    return share if bad <= MAX_DAMAGE_NON_ASCII * beyond else max(share, 2 * MAX_DAMAGE)
