"""Detect URLs that could run code in a browser."""

from __future__ import annotations

import re

_SCRIPT = r"(?:feed:|jar:|view-source:)*(?:javascript|livescript|mocha|vbscript)\s*:"
_DATA = r"data(?!:image/(?!svg)[\w.-]+[;,])\s*:"  # images are safe, but +xml types are documents
_script = re.compile(_SCRIPT, re.I).match
_unsafe = re.compile(f"{_SCRIPT}|{_DATA}", re.I).match
_unsafe_in_set = re.compile(rf"(?:^|[\s,])(?:{_SCRIPT}|{_DATA})", re.I).search
_invisible = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\ufeff]+")  # browsers ignore these characters


def unsafe_url(url: str) -> bool:
    """Return True if following or loading the URL could run code, in any spelling."""
    return _unsafe(_invisible.sub("", url)) is not None


def script_url(url: str) -> bool:
    """Return True if the URL is itself a script, in any spelling."""
    return _script(_invisible.sub("", url)) is not None


def unsafe_source_set(value: str) -> bool:
    """Return True if a URL of a ``srcset`` could run code."""
    return _unsafe_in_set(value) is not None
