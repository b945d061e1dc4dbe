"""Show declarative shadow trees in place (HTML standard, 4.12.3): a browser attaches them to the element around them.

``<template shadowrootmode="open">`` is the one template that every browser shows. libxml2 knows no templates, and the
package drops them, so these become an element. What their ``<slot>`` shows is the content of the host, which follows.
"""

from __future__ import annotations

import re

ELEMENT = b"shadow-root"
"""The tag of a shadow tree. As a custom element, it may stand in a line or hold blocks."""

_tags = re.compile(rb"<(/?)template\b([^<>]*)>", re.I)
_is_shadow = re.compile(rb"\sshadowrootmode\s*=\s*[\"']?(?:open|closed)\b", re.I).search


def with_shadow_trees(data: bytes) -> bytes:
    """Return a document with its declarative shadow trees as elements, in linear time. Other templates stay."""
    if b"shadowrootmode" not in data:
        return data
    is_shown: list[bool] = []  # of the templates that are open

    def tag(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return b"</%s>" % ELEMENT if is_shown and is_shown.pop() else match[0]
        is_shown.append(_is_shadow(match[2]) is not None)
        return b"<%s>" % ELEMENT if is_shown[-1] else match[0]

    return _tags.sub(tag, data)
