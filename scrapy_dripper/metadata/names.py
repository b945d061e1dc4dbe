"""Names of authors, split and cleaned of the other parts of a byline."""

from __future__ import annotations

import re
from collections.abc import Iterable

from scrapy_dripper.metadata.dates import MONTHS

LONGEST_NAME = 150
"""Maximum length of a name, in characters."""
MOST_NAMES = 500
"""Maximum number of authors of a page."""

_NOBODY = frozenset(
    "admin administrator anonymous author authors blog by by: contributor default editor editorial follow guest home "
    "moderator n/a none null root staff superuser support system undefined unknown user username webmaster website "
    "wordpress".split()
) | {
    "about the author", "get in touch", "guest author", "licensed", "see all posts", "site admin", "super user",
    "the author", "topic author", "wp admin", "written by",
}  # fmt: skip
"""Words that pages have in place of an author's name."""
_lead = re.compile(
    r"(?:(?:written|posted|published|reviewed|authored|edited|created|contributed)\s{1,3})?"
    r"(?:by|von|par|por|di|door|av|af|przez|автор)(?:\s{0,3}:\s{0,3}|\s{1,3})|(?:author|autor|auteur)s?\s{0,3}:\s{0,3}",
    re.I,
).match
_tail = re.compile(
    r"\s{1,3}(?:[|·•–—-]\s{1,3}|on\s{1,3}(?=\w{3,9}\s{1,3}\d|\d|\w{3,6}day\b)|(?:published|updated|posted|last)\b)",
    re.I,
).search
_date = re.compile(
    rf"(?:,?\s{{1,3}}|^)(?:(?:{'|'.join(sorted(MONTHS))})\b\.?\s{{0,3}}\d|\d{{1,2}}(?:st|nd|rd|th)?[./ ]|\d{{4}})", re.I
).search
_between = re.compile(r"\s{0,3}[;|/]\s{1,3}|\s{1,3}[•·]\s{1,3}").split
_and = re.compile(r",?\s{1,3}(?:and|&|und|et|y|e|og|och|en|with)\s{1,3}").split
_name = re.compile(r"[^\W\d_]").search
_no_name = re.compile(r"https?://|www\.|[@{}<>]|\.(?:com|org|net|html?|php)\b", re.I).search


def authors(written: Iterable[str]) -> tuple[str, ...]:
    """Return the names of authors, each once, from texts with names separated by ``;``, ``,`` or "and"."""
    found: dict[str, str] = {}
    for text in written:
        for name in _apart(" ".join(text[: 20 * LONGEST_NAME].split())):
            cleaned = _cleaned(name)
            if cleaned:
                found.setdefault(cleaned.casefold(), cleaned)
        if len(found) >= MOST_NAMES:
            break
    return tuple(found.values())[:MOST_NAMES]


def byline(text: str) -> str:
    """Return the part of a line such as "By Ann Bell | May 6, 2024" that names authors, or an empty string."""
    text = " ".join(text[:LONGEST_NAME].split())
    lead = _lead(text)
    text = text[lead.end() :] if lead else text
    for cut in (_tail, _date):
        end = cut(text)
        if end is not None:
            text = text[: end.start()]
    return text.strip(" ,:;|-–—·•")


def _apart(text: str) -> list[str]:
    """Return the names in a text. A comma or an "and" separates names only if both sides are full names."""
    parts: list[str] = []
    for part in _between(text):
        sides = _and(part)
        names = [name for side in sides for name in (side.split(", ") if _all_full(side.split(", ")) else [side])]
        parts += names if _all_full(names) else [part]
    return parts


def _all_full(names: list[str]) -> bool:
    return len(names) == 1 or all(2 <= len(name.split()) <= 5 for name in names)


def _cleaned(name: str) -> str:
    name = name.strip(" ,;:|\"'()[]")
    lead = _lead(name)
    if lead:
        name = name[lead.end() :].strip()
    if not 2 <= len(name) <= LONGEST_NAME or name.casefold() in _NOBODY:
        return ""
    return "" if _no_name(name) or not _name(name) or name.casefold() in MONTHS else name
