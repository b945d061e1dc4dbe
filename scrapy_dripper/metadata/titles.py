"""The title of a page: the heading that its names name, or the name that fits best, without that of the site."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MOST_CHARS = 500
"""Characters of a title at most."""
SHARED = 0.5
"""Share of the words of a heading, or of a name of the page, that the other has at least if it is the headline."""

_words = re.compile(r"\w+").findall
_separator = re.compile(r"\s{1,3}(?:[|»«·•:~/\\>]|::|-{1,3}|–|—|―)\s{1,3}|\s?\|\s?|:\s{1,3}").split
_strong = re.compile(r"\s{1,3}(?:[|»«·•~]|::|-{1,3}|–|—|―)\s{1,3}").split


def best_title(
    headings: Sequence[str], subheadings: Iterable[str], names: Sequence[str], site: str, host: str = ""
) -> str:
    """Return the title of a page, or an empty text.

    ``headings`` are those of the first level and ``names`` what the page calls itself: a headline in its data, the
    title of its social card, its document title, the most reliable first.
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
    """Return a name of a page without the name of its site, which stands at its end or its beginning."""
    parts = _strong(name)
    if len(parts) > 1 and _is_site(parts[-1], of_site):
        name = name[: name.rindex(parts[-1])]
    elif len(parts) > 1 and _is_site(parts[0], of_site):
        name = name[name.index(parts[0]) + len(parts[0]) :]
    return name.strip(" |»«·•:~-–—―")


def _is_site(text: str, of_site: tuple[str, str]) -> bool:
    """Return True if a text is the name of the site, or is in its host."""
    name, host = of_site
    said = _squeezed(text)
    return bool(said) and (said == name or (len(said) > 3 and said in host))


def _fit(heading: str, names: Sequence[str]) -> float:
    """Return how well a heading fits the names of the page, 0 to 1; the first part of a name counts most."""
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
