"""The URLs of a page: resolve them, and leave out those that could run code in a browser."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urljoin, urlsplit

from scrapy_dripper.characters import without_controls
from scrapy_dripper.declared.elements import LONGEST_URL
from scrapy_dripper.structures.items import Audio, Image, Item, Items, Link, Run, Runs, Video, inside, line_text

Medium = TypeVar("Medium", Image, Video, Audio)

_SCRIPT = r"(?:feed:|jar:|view-source:)*(?:javascript|livescript|mocha|vbscript)\s*:"
_DATA = r"data(?!:image/(?!svg)[\w.-]+[;,])\s*:"  # images are safe, but +xml types are documents
_SAFE = ("http://", "https://")
_script = re.compile(_SCRIPT, re.I).match
_unsafe = re.compile(f"{_SCRIPT}|{_DATA}", re.I).match
_unsafe_in_set = re.compile(rf"(?:^|[\s,])(?:{_SCRIPT}|{_DATA})", re.I).search
_redirect = re.compile(r"https?://(?:www\.)?google\.[a-z.]{2,6}/url\?", re.I).match
_invisible = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\ufeff]+")  # browsers ignore these characters


def unsafe_url(url: str) -> bool:
    """Return True if following or loading the URL could run code, in any spelling."""
    return ":" in url and not url.startswith(_SAFE) and _unsafe(_invisible.sub("", url)) is not None


def script_url(url: str) -> bool:
    """Return True if the URL is a script, such as ``javascript:``, in any spelling. A ``data:`` URL is none."""
    return ":" in url and not url.startswith(_SAFE) and _script(_invisible.sub("", url)) is not None


def direct(url: str) -> str:
    """Return the target of a redirect address that Google Docs and search results put in place of a link."""
    if "google." not in url[:20] or not _redirect(url):
        return url
    try:
        values = parse_qs(url[:LONGEST_URL].partition("?")[2].partition("#")[0], max_num_fields=20)
    except ValueError:  # more fields
        return url
    return next((value for name in ("q", "url") for value in values.get(name, ()) if value.startswith(_SAFE)), url)


def unsafe_source_set(value: str) -> bool:
    """Return True if a URL of a ``srcset`` could run code."""
    return _unsafe_in_set(value) is not None


def comparable(url: str) -> str:
    """Return a URL without its fragment, in the form in which two spellings of it are equal.

    It is empty if the URL is longer than :data:`LONGEST_URL`.
    """
    return unquote(url.partition("#")[0]).rstrip("/") if len(url) <= LONGEST_URL else ""


def resolver(base_url: str, growth: int = sys.maxsize) -> Callable[[str], str]:
    """Return a function that makes URLs absolute. It never raises. URLs that could run code become empty.

    ``growth`` limits the characters that it adds to all URLs in total. Once it is used up, URLs are not changed.
    """
    # Each link gets a copy of it.
    base_url = without_controls(base_url) if len(base_url) <= LONGEST_URL else ""
    try:
        parts = urlsplit(base_url)
        origin = f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") and parts.netloc else ""
    except ValueError:
        base_url = origin = ""

    def join(url: str) -> str:
        if origin and url[:1] == "/" and url[1:2] != "/" and "/." not in url:  # as most links; urljoin is slow
            return origin + url
        try:
            return urljoin(base_url, url)
        except ValueError:  # such as https://[your-domain]/
            return url

    def resolve(url: str) -> str:
        nonlocal growth
        url = direct(url.strip())
        if url.startswith(_SAFE):
            return url
        if unsafe_url(url):
            return ""
        if growth < len(base_url):  # the maximum that it can add
            return url
        joined = join(url)
        growth -= max(0, len(joined) - len(url))
        return joined

    return resolve


@dataclass(frozen=True, slots=True)
class Outlink:
    """A link of the main content."""

    url: str
    """Absolute URL if the page's URL is known."""
    text: str
    """The text of the link with white space collapsed; for an image, its alternative text."""


def outlinks(items: Items) -> tuple[Outlink, ...]:
    """Return the links of a content list in order, without duplicates of the same URL and text.

    Links within the page (``#...``) are included. An image is only included if there is a link around it. The URLs of
    images and players themselves are not links.
    """
    return tuple(dict.fromkeys(link for item in items for link in _links(item) if link.url))


def media(items: Items, kind: type[Medium]) -> list[Medium]:
    """Return the images, videos or sounds of a content list in order, each URL once."""
    found: dict[str, Medium] = {}
    todo: list[Any] = [*reversed(items)]
    while todo:
        part: Any = todo.pop()
        if isinstance(part, kind) and part.src:
            found.setdefault(part.src, part)
        todo += reversed([*getattr(part, "runs", ()), *inside(part)])
    return list(found.values())


def _links(part: Item | Run) -> Iterator[Outlink]:
    if type(part) is Link:
        images = (run.alt for run in part.runs if type(run) is Image)
        yield Outlink(part.href, " ".join(line_text(part.runs).split()) or " ".join(filter(None, images)))
        return
    if type(part) is Image:
        yield Outlink(part.href, part.alt)
    runs: Runs = getattr(part, "runs", ())
    for inner in (*runs, *inside(part)):
        yield from _links(inner)
