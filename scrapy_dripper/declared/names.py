"""Name a page: from what it says that it is called, and from its headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from scrapy_dripper.declared.text import heading_text

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MOST_CHARS = 500
"""Maximum length of a title, in characters."""
LONGEST_URL = 10_000
"""Maximum length of the URL of a link, in characters."""
SHARED = 0.5
"""Minimum share of words that the headline has in common with a name of the page."""

OfSite = tuple[frozenset[str], str]
"""The names and the host of a site, without spaces."""

_host = re.compile(r"(?:www\.|w\d{1,3}\.)?([^/:]{1,253})").match
_words = re.compile(r"\w+").findall
_separator = re.compile(r"\s{1,3}(?:[|»«·•:~/\\>]|::|-{1,3}|–|—|―)\s{1,3}|\s?\|\s?|:\s{1,3}").split
_strong = re.compile(r"\s{1,3}(?:[|»«·•~]|::|-{1,3}|–|—|―)\s{1,3}").split


def leads_up(href: str, url: str) -> int:
    """Return 1 for a link from the page at ``url`` to the front page, 2 for one to another page above it, or else 0.

    Addresses such as ``..`` do not count: generators of books put the title of a chapter into such a link.
    """
    if href.lstrip().startswith("."):
        return 0
    try:
        target, own = urlsplit(urljoin(url, href[:LONGEST_URL].strip())), urlsplit(url)
    except ValueError:  # such as "http://["
        return 0
    above, below = (f"{one.path.rstrip('/')}/" for one in (target, own))
    is_other = target.query or target.netloc.removeprefix("www.") != own.netloc.removeprefix("www.")
    return 0 if is_other or above == below or not below.startswith(above) else 1 if above == "/" else 2


def host_of(url: str) -> str:
    with suppress(ValueError):
        found = _host(urlsplit(url).netloc.rpartition("@")[2])
        return found[1] if found else ""
    return ""


def title_of(
    names: list[str], site: str, url: str, headings: Iterable[HtmlElement], subheadings: Iterable[HtmlElement]
) -> str:
    """Return the title of a page, or an empty text: the heading that fits best to the names that the page gives itself,
    or else one of these names. The most reliable name is the headline in its data, the least the document's title.
    """
    names = [name[:MOST_CHARS] for name in names if name]
    linked = [(heading_text(one), _leads_up(one, url)) for one in headings]
    sites = {text for text, level in linked if level == 1 or (level and not _begins(text, names))}
    of_site = (frozenset(map(_squeezed, (site, *sites))) - {""}, _squeezed(host_of(url)))
    if leads_up("/", url):  # only the front page has the name of the site
        names = [name for name in names if not _is_site(name, of_site)] or names
    titles = [text for text, _ in linked if text and len(text) <= MOST_CHARS]
    own = [text for text in titles if not _is_site(text, of_site)]
    fitting = [(fit, -i) for i, text in enumerate(own) if (fit := _fit(text, names)) >= SHARED]
    if fitting:
        return own[-max(fitting)[1]]
    parts = {_squeezed(part) for name in names for part in (name, *_separator(name))}
    for text in map(heading_text, subheadings):
        if _squeezed(text) in parts and not _is_site(text, of_site):
            return text
    if len(own) == 1 and (len(titles) == 1 or not names):
        return own[0]
    return next((bare for name in names if (bare := _without_site(name, of_site))), "") or next(iter(titles), "")


def _leads_up(heading: HtmlElement, url: str) -> int:
    """Return where the link of a heading leads. A heading that leads up names the site, or a part of it."""
    link = next(chain(heading.iter("a"), islice(heading.iterancestors("a"), 1)), None)
    return 0 if link is None else leads_up(link.get("href") or "", url)


def _begins(text: str, names: Iterable[str]) -> bool:
    return any(_squeezed(name).startswith(_squeezed(text)) for name in names)


def _without_site(name: str, of_site: OfSite) -> str:
    """Return a name of a page without the name of its site at its end or its beginning."""
    parts = _strong(name)
    if len(parts) > 1 and _is_site(parts[-1], of_site):
        name = name[: name.rindex(parts[-1])]
    elif len(parts) > 1 and _is_site(parts[0], of_site):
        name = name[name.index(parts[0]) + len(parts[0]) :]
    return name.strip(" |»«·•:~-–—―")


def _is_site(text: str, of_site: OfSite) -> bool:
    """Return True if a text is the name of the site, or part of its host."""
    names, host = of_site
    said = _squeezed(text)
    return said in names or (len(said) > 3 and said in host)


def _fit(heading: str, names: Sequence[str]) -> float:
    """Return how well a heading matches the names of the page, 0 to 1. The first part of a name counts most."""
    words = set(_words(heading.lower()))
    best = 0.0
    for name in names if words else ():
        for i, part in enumerate((name, *_separator(name)[:10])):
            said = set(_words(part.lower()))
            if said:
                best = max(best, 2 * len(words & said) / (len(words) + len(said)) - i / 100)
    return best


def _squeezed(text: str) -> str:
    return "".join(_words(text.lower()))
