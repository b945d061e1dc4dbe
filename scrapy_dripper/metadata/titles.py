"""The title of a page: the heading that matches one of its names, or the best name without the site's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MOST_CHARS = 500
"""Maximum length of a title, in characters."""
SHARED = 0.5
"""Minimum share of words that the headline has in common with a name of the page."""

_words = re.compile(r"\w+").findall
_separator = re.compile(r"\s{1,3}(?:[|»«·•:~/\\>]|::|-{1,3}|–|—|―)\s{1,3}|\s?\|\s?|:\s{1,3}").split
_strong = re.compile(r"\s{1,3}(?:[|»«·•~]|::|-{1,3}|–|—|―)\s{1,3}").split


def best_title(
    headings: Sequence[str], subheadings: Iterable[str], names: Sequence[str], site: str, host: str = ""
) -> str:
    """Return the title of a page, or an empty text.

    ``headings`` are of the first level, ``subheadings`` of the second. ``names`` are the names that the page gives
    itself, the most reliable first: the headline in its data, the title of its social card, the document's title.
    """
    known = [name[:MOST_CHARS] for name in names if name]
    of_site = (_squeezed(site), _squeezed(host))
    texts = [heading for heading in headings if heading and len(heading) <= MOST_CHARS]
    own = [text for text in texts if not _is_site(text, of_site)]
    fitting = [(fit, -i) for i, text in enumerate(own) if (fit := _fit(text, known)) >= SHARED]
    if fitting:
        return own[-max(fitting)[1]]
    parts = {_squeezed(part) for name in known for part in (name, *_separator(name))}
    for text in subheadings:
        if _squeezed(text) in parts and not _is_site(text, of_site):
            return text
    if len(own) == 1 and (len(texts) == 1 or not known):
        return own[0]
    return next((bare for name in known if (bare := _without_site(name, of_site))), "") or next(iter(texts), "")


def _without_site(name: str, of_site: tuple[str, str]) -> str:
    """Return a name of a page without the name of its site at its end or its beginning."""
    parts = _strong(name)
    if len(parts) > 1 and _is_site(parts[-1], of_site):
        name = name[: name.rindex(parts[-1])]
    elif len(parts) > 1 and _is_site(parts[0], of_site):
        name = name[name.index(parts[0]) + len(parts[0]) :]
    return name.strip(" |»«·•:~-–—―")


def _is_site(text: str, of_site: tuple[str, str]) -> bool:
    """Return True if a text is the name of the site, or part of its host."""
    name, host = of_site
    said = _squeezed(text)
    return bool(said) and (said == name or (len(said) > 3 and said in host))


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
