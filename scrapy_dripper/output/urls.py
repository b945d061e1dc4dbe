"""Which URLs could run code in the browser of whoever follows or loads them."""

from __future__ import annotations

import re

_SCRIPT = r"(?:feed:|jar:|view-source:)*(?:javascript|livescript|mocha|vbscript)\s*:"
_DATA = r"data(?!:image/(?!svg)[\w.-]+[;,])\s*:"  # a type that ends in +xml is a document
_script = re.compile(_SCRIPT, re.I).match
_unsafe = re.compile(f"{_SCRIPT}|{_DATA}", re.I).match
_unsafe_in_set = re.compile(rf"(?:^|[\s,])(?:{_SCRIPT}|{_DATA})", re.I).search
_invisible = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\ufeff]+")  # browsers skip it


def unsafe_url(url: str) -> bool:
    """Return True if following or loading the URL could run code, however it is spelt."""
    return _unsafe(_invisible.sub("", url)) is not None


def script_url(url: str) -> bool:
    """Return True if the URL is itself a script, however it is spelt."""
    return _script(_invisible.sub("", url)) is not None


def unsafe_source_set(value: str) -> bool:
    """Return True if one of the URLs of a ``srcset`` could run code."""
    return _unsafe_in_set(value) is not None
