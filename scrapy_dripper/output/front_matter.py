"""YAML front matter: what is known of a page, before its Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_CHARS = 1_000
"""Characters of a value."""

# All that YAML 1.2 (5.1, 5.7) would not read as it is within double quotes.
_special = re.compile('["\\\\]|[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]').sub


def front_matter(values: Iterable[tuple[str, str | None]]) -> str:
    """Return names and values between two lines of three dashes; nothing if no value is known.

    Each value is a string in double quotes on a line of its own, whatever a page has written in it: YAML 1.1 and 1.2
    read it as that string, white space collapsed.
    """
    known = ((name, " ".join((value or "").split())[:MOST_CHARS].rstrip()) for name, value in values)
    lines = [f"{name}: {quoted(value)}" for name, value in known if value]
    return "\n".join(["---", *lines, "---"]) if lines else ""


def quoted(text: str) -> str:
    """Return a string in the double quotes of YAML."""
    return '"' + _special(_escaped, text) + '"'


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    if char in '"\\':
        return "\\" + char
    if "\ud800" <= char <= "\udfff":
        return "\ufffd"  # half a character
    return f"\\u{ord(char):04x}"
