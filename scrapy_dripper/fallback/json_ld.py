"""Reduce JSON-LD and ``meta`` elements to what Trafilatura can read in linear time.

Trafilatura compares each new name with all others, and searches broken JSON with regular expressions whose time is
quadratic or worse.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_NAMES, MAX_NAME_CHARACTERS = 50, 1_000
"""Limits for the names of authors, publishers and sites of a page: their number, and their characters in total."""
MAX_CONTENT, MAX_TAGS = 10_001, 100
"""Limits for the content of a ``meta`` element: its characters, one more than Trafilatura keeps, and its tags. The
first limit also applies to strings in JSON-LD."""
MAX_SEARCHED = 100_000_000
"""Limit for the steps of a search for tags in the JSON-LD of a page. A step takes about a nanosecond."""

_TYPES = ("application/ld+json", "application/settings+json")
_READ = frozenset(
    "@context @graph @type author publisher name legalName alternateName givenName additionalName familyName headline "
    "liveBlogUpdate".split()
)
"""Keys from which Trafilatura reads the values of :class:`~scrapy_dripper.extraction.Metadata`."""
_tag = re.compile(r"<[^>]*>?").sub
_names_authors = re.compile("author|creator|byl").search


class Names:
    """A budget for the names of a page: at most :data:`MAX_NAMES`."""

    def __init__(self) -> None:
        self._left = MAX_NAMES
        self._characters = MAX_NAME_CHARACTERS

    def take(self, name: str) -> str:
        """Return a name, or a string with several names. Return an empty string once the budget is used up."""
        if not self._left or len(name) > self._characters:
            return ""
        self._left -= 1
        self._characters -= len(name)
        return name


def bound_meta(root: HtmlElement, names: Names) -> None:
    """Limit the contents of the ``meta`` elements of a tree."""
    for meta in root.iter("meta"):
        content = meta.get("content")
        if content:
            key = (meta.get("property") or meta.get("name") or meta.get("itemprop") or "").lower()
            content = (names.take(content) if _names_authors(key) else content)[:MAX_CONTENT]
            meta.set("content", _without_tags(content) if content.count("<") > MAX_TAGS else content)


def json_ld(root: HtmlElement, names: Names) -> Iterator[Any]:
    """Yield the parsed JSON-LD scripts of a tree, reduced to the keys that Trafilatura reads. Skip broken JSON."""
    for script in _scripts(root):
        with suppress(ValueError, RecursionError):
            # Like Trafilatura, resolve character references if the script has backslashes.
            yield _read(json.loads(script.text, strict=False), "", "\\" in script.text, names)


def drop_broken(root: HtmlElement) -> None:
    """Remove JSON-LD from a tree if it is not valid JSON, or if a search for tags in it takes long.

    Trafilatura reads articles from valid JSON-LD only, but it searches broken JSON-LD with regular expressions first.
    """
    left = MAX_SEARCHED
    for script in _scripts(root):
        left -= sum(len(part) * part.count("=") for part in re.split("[<>]", script.text))
        try:
            json.loads(script.text, strict=False)
            valid = left >= 0
        except (ValueError, RecursionError):
            valid = False
        if not valid:
            script.text = None


def _scripts(root: HtmlElement) -> Iterator[Any]:
    return (script for script in root.iter("script") if script.get("type") in _TYPES and script.text)


def _read(value: Any, key: str, escaped: bool, names: Names) -> Any:
    if isinstance(value, str):
        plain = " ".join(_without_tags(unescape(value) if escaped else value).split())
        return names.take(plain) if key == "author" or key.lower().endswith("name") else plain[:MAX_CONTENT]
    if isinstance(value, list):
        return [_read(one, key, escaped, names) for one in value]
    if isinstance(value, dict):
        return {key: _read(one, key, escaped, names) for key, one in value.items() if key in _READ}
    return value


def _without_tags(text: str) -> str:
    return _tag(lambda tag: "" if tag[0].endswith(">") else tag[0].replace("<", " "), text)
