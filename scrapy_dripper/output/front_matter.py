"""Write YAML front matter: the metadata of a page, in front of its Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_CHARS = 1_000
"""Maximum length of a value, in characters."""

# Characters that need escaping in double quotes (YAML 1.2, 5.1 and 5.7).
_special = re.compile('["\\\\]|[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]').sub


def front_matter(values: Iterable[tuple[str, str | None]]) -> str:
    """Return names and values between two lines of three dashes, or an empty string if there are no values.

    Each value is written as a double-quoted string on one line, with white space collapsed. YAML 1.1 and 1.2 parsers
    read it as this string, whatever it contains.
    """
    known = ((name, " ".join((value or "").split())[:MOST_CHARS].rstrip()) for name, value in values)
    lines = [f"{name}: {quoted(value)}" for name, value in known if value]
    return "\n".join(["---", *lines, "---"]) if lines else ""


def quoted(text: str) -> str:
    """Return a string as a double-quoted YAML scalar."""
    return '"' + _special(_escaped, text) + '"'


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    if char in '"\\':
        return "\\" + char
    if "\ud800" <= char <= "\udfff":
        return "\ufffd"  # a lone surrogate
    return f"\\u{ord(char):04x}"
