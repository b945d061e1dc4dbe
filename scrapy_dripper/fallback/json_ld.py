"""Reduce JSON-LD to what Trafilatura can read in linear time."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_SEARCHED = 100_000_000
"""Maximum number of steps of Trafilatura's search for tags in all JSON-LD of a page. A step takes about a
nanosecond.
"""

_TYPES = ("application/ld+json", "application/settings+json")


def drop_broken(root: HtmlElement) -> None:
    """Remove JSON-LD from a tree if it is not valid JSON, or if Trafilatura's search for tags in it would take long.

    Trafilatura only reads articles from valid JSON-LD. But it first searches broken JSON-LD with regular expressions
    that take quadratic time or more. In valid JSON-LD, its pattern for tags takes time proportional to the distance
    between two angle brackets, multiplied by the number of equals signs there.
    """
    left = MAX_SEARCHED
    for script in root.iter("script"):
        if script.get("type") not in _TYPES or not script.text:
            continue
        left -= sum(len(part) * part.count("=") for part in re.split("[<>]", script.text))
        try:
            json.loads(script.text, strict=False)
            valid = left >= 0
        except (ValueError, RecursionError):
            valid = False
        if not valid:
            script.text = None
