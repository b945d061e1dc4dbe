"""Search HTML for active content, with another parser and without the package's own allowlists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

from resiliparse.parse.html import HTMLTree, NodeType

RUNS = frozenset("script style link meta base object embed applet frame svg template portal".split())
URLS = frozenset(
    "href src action formaction data poster cite background longdesc xlink:href manifest codebase classid dynsrc "
    "lowsrc ping".split()
)
"""Attributes that browsers, or scripts for lazy loading, treat as URLs."""

# Characters that the URL standard strips before it parses the scheme.
_stripped = re.compile(r"^[\x00-\x20]+|[\t\n\r]+")
_runs = re.compile(r"(?:javascript|vbscript|livescript|mocha):|data:(?!image/(?!svg))", re.I).match

_suspicious = re.compile(
    rf"<(?:{'|'.join(sorted(RUNS))}|iframe)\b|(?:script|data|mocha)\s*:|on[a-z]+\s*=|srcdoc|style\s*=|http-equiv", re.I
).search


def runs(url: str) -> bool:
    """Return True if a browser that follows or loads the URL could run code from it."""
    return _runs(_stripped.sub("", url)) is not None


def unsafe_html(text: str) -> str | None:
    """Return the part of a document that could run in an HTML5 browser, or None."""
    if not _suspicious(_stripped.sub("", unescape(text))):  # parsing takes longer than everything else
        return None
    document = HTMLTree.parse(text).document
    if document is None:
        return None
    for element in document:  # accessing one element of a collection takes as long as traversing the whole document
        if element.type != NodeType.ELEMENT:
            continue
        tag = (element.tag or "").lower()
        names = element.attrs or ()
        if tag in RUNS and not (tag == "script" and (element.getattr("type") or "").strip().lower()[:5] == "math/"):
            if tag in ("svg", "meta", "link", "style") and not names:
                continue
            return f"<{tag}>"
        for name in names:
            value = element.getattr(name) or ""
            name = name.lower()
            if (
                name.startswith("on")
                or name in ("srcdoc", "style", "http-equiv")
                or (name == "src" and tag == "iframe")
            ):
                return f"<{tag} {name}>"
            if (name in URLS or name.startswith("data-src")) and runs(value):
                return f"<{tag} {name}={value[:40]!r}>"
    return None


def unsafe_urls(value: Any) -> Iterator[str]:
    """Yield the URLs in plain JSON values that could run."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack += one
        elif isinstance(one, dict):
            for name, inner in one.items():
                if isinstance(inner, str):
                    if name in ("url", "src", "href", "poster") and runs(inner):
                        yield inner
                else:
                    stack.append(inner)
