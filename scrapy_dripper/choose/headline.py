"""Find the headline, which is the heading that names the main content, by comparison with the page's metadata.

Data sets differ on whether the headline is main content, so models are unreliable here. Readers always want it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, chain, combinations, takewhile
from urllib.parse import urlsplit

import numpy as np

from scrapy_dripper.choose.given import Bools, Given
from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.page.vocabulary import SITE_NAMES, either

BODY_WORDS = 10
"""Minimum number of words in a main block that is body text, as opposed to a date, a name or a label."""
FIRST_LINES = 0.15
"""Share of the words of the main content that count as its first lines."""
SHARED_WORDS = 0.75
"""Minimum share of words that a heading and a name have in common."""
SAME = 2
MOST_PARTS = 8
"""Maximum number of parts of a title to consider."""
KEPT_PROBABILITY = 0.7
"""Minimum probability for a short block above the headline to stay."""
LONGEST_HEADLINE = 300
"""Maximum length of a headline, in characters."""
PLAIN_WORDS = 5
"""Minimum number of words in a headline without heading markup, and in a standfirst."""
LEAD_PROBABILITY = 0.4
"""Minimum probability for a sentence between the headline and the text to be main."""
LEAD_BLOCKS = 4
"""Number of blocks below the headline that may hold such a sentence, including dates and authors."""
DESCRIPTION_LETTERS = 20
"""Minimum number of letters that the beginnings of a standfirst and of a description have in common."""
SUBTITLE_WORDS = 3
"""Minimum number of words of a part of the title that a heading below the headline repeats."""
LONGEST_DESCRIPTION = 1_000
"""Maximum number of characters of a standfirst or description to compare."""

_NO_LEAD = (
    Flag.NAV | Flag.FOOTER | Flag.ASIDE | Flag.FORM | Flag.HIDDEN | Flag.NOSCRIPT | Flag.DIALOG
    | Flag.LIST | Flag.LINK | Flag.BUTTON | Flag.FIGURE | Flag.HEADING
)  # fmt: skip
_HEADING = int(Flag.HEADING)
_HIDDEN = int(Flag.HIDDEN)
_UNSEEN = int(Flag.FOOTER | Flag.DIALOG | Flag.HIDDEN)
_ELSEWHERE = int(Flag.NAV | Flag.ASIDE)
_LISTED = int(Flag.LIST | Flag.LINK | Flag.BUTTON | Flag.FORM)
_H1 = TAGS["h1"]
_LINK = TAGS["a"]
_site_class = re.compile(rf"(?:^|[\s_-])(?:{either(SITE_NAMES)})(?=[\s_-]|$)", re.I).search
_separators = re.compile(r" [-–—|·•:»«/~:]{1,20} | ?[|｜»«_] ?|: ").split
_ends_sentence = re.compile(r"[.!?…。！？][\"”»“’」』]?\Z").search
_words = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+").findall


def with_headline(given: Given, main: Bools) -> Bools:
    """Return the labels with the headline as the first main block or, if the user drops it, without the headline.

    Short main blocks above the headline are removed unless the
    model is sure of them; they are dates, categories and breadcrumbs. A lead below the headline becomes main if it is
    likely enough, or if it is the page's own description, because models often mistake it for a summary. If nothing is
    main, or no headline is found, the labels are returned unchanged.
    """
    page, p = given.page, given.probabilities
    found = headline(page, main)
    if found is None:
        return main
    labels: Bools = main.copy()
    labels[_lead(given, main, found)] = True
    if given.title == "drop":
        labels[found] = False
        return labels
    labels[found] = True
    for i in np.flatnonzero(main[:found]).tolist():
        labels[i] = p[i] >= KEPT_PROBABILITY or len(_words(page.blocks.text[i])) >= BODY_WORDS
    return labels


def _lead(given: Given, main: Bools, found: int) -> list[int]:
    """Return the blocks between the headline and the first main block that are a standfirst or sentences of the text.

    A standfirst is what a description in the page's head says, or a heading that repeats another part of its title.
    """
    below = range(found + 1, min(found + 1 + LEAD_BLOCKS, len(main)))
    page, flags, texts = given.page, given.flags, given.page.blocks.text
    name = _letters(texts[found])
    told = [text for text in map(_letters, page.about.descriptions) if text and text != name]
    subtitles = {"".join(words) for words in _names(page) if len(words) >= SUBTITLE_WORDS} - {name}
    barred = _NO_LEAD & ~Flag.HEADING
    lead: dict[str, int] = {}  # by text, because themes repeat a standfirst for narrow screens
    for i in takewhile(lambda i: not main[i], below):
        letters = _letters(texts[i])
        if (
            (flags[i] & barred == 0 and flags[i] & Flag.HEADING and letters in subtitles)
            or (told and not flags[i] & barred and len(_words(texts[i])) >= PLAIN_WORDS and _is_told(letters, told))
            or (
                given.probabilities[i] >= LEAD_PROBABILITY
                and not flags[i] & _NO_LEAD
                and _ends_sentence(texts[i].rstrip()[-2:])
                and len(_words(texts[i])) >= BODY_WORDS
            )
        ):
            lead.setdefault(letters, i)
    return list(lead.values())


def _letters(text: str) -> str:
    return "".join(_words(text[:LONGEST_DESCRIPTION].lower()))


def _is_told(text: str, descriptions: Sequence[str]) -> bool:
    """Return True if a text is one of the descriptions, either of which may be cut off."""
    return any(
        text == told
        or (min(len(text), len(told)) >= DESCRIPTION_LETTERS and (text.startswith(told) or told.startswith(text)))
        for told in descriptions
    )


def headline(page: Page, main: Bools) -> int | None:
    """Return the number of the block that is the headline, or None if there is none.

    The names of a page are its ``og:title``, the headlines in its JSON-LD, and its ``<title>`` and parts of it. The
    headline is the nearest heading above the first body text that shares its words with a name. An ``h1`` comes before
    other headings, which may be subtitles, series or versions, unless it only repeats the end of the title. An ``h1``
    with exactly the words of a name may also follow the first lines. Without such a heading, the headline is a line
    above the text that is not a heading but has exactly the words of a name, or the ``h1`` above the text if there is
    only one. A hidden ``h1`` is only the headline if there is none of these (:func:`_drawn`). The name of the site and
    other hidden blocks are never the headline.
    """
    top, body = _beginning(page, main)
    flags = (page.tree.flags[page.blocks.context] | page.tree.flags[page.blocks.leaf]).tolist()
    # Ignore flags that the text itself has, for example because of an unclosed <nav>.
    around = flags[body] if body >= 0 else 0
    unseen, elsewhere = _UNSEEN & ~around, _ELSEWHERE & ~around
    tags = page.tree.tag[page.blocks.context].tolist()
    names, sites = _names(page), _sites(page)
    sets = [frozenset(name) for name in names]
    tail = _last_part(page, sites)
    parts = _separated(_title(page).lower())
    ending = _letters(parts[-1]) if len(parts) > 1 else ""  # may be the name of the site, which an h1 may repeat
    best: tuple[bool, int, bool, int] | None = None
    words_of: dict[int, list[str]] = {}
    firsts: dict[str, int] = {}  # the h1 elements
    fronts: dict[int, bool] = {}
    exact = {"".join(name) for name in names if len(name) >= PLAIN_WORDS}
    plain: int | None = None
    hidden: list[int] = []
    for i, text in enumerate(page.blocks.text[: top + 1]):
        if flags[i] & unseen or len(text) > LONGEST_HEADLINE:
            if tags[i] == _H1 and i < body and flags[i] & unseen == _HIDDEN:
                hidden.append(i)
            continue
        if not flags[i] & _HEADING:
            may_be = exact and i <= body and not flags[i] & (elsewhere | _LISTED)
            if may_be and _is_plain(_words(text.lower()), exact, tail):
                plain = i
            continue
        words = _words(text.lower())
        if not words or "".join(words) in sites or tail.issuperset(words) or _is_site(page, i, fronts):
            continue
        h1 = tags[i] == _H1
        have = frozenset(words)
        rank = max((_match(words, have, name, want, h1=h1) for name, want in zip(names, sets, strict=True)), default=0)
        if (i > body or flags[i] & elsewhere) and not (h1 and rank == SAME):
            continue
        words_of[i] = words
        if h1 and not flags[i] & elsewhere:
            firsts["".join(words)] = i
        first = h1 and not flags[i] & elsewhere and "".join(words) != ending
        if rank and (best is None or (i <= body, rank, first, i) > best):
            best = i <= body, rank, first, i
    if best is not None:
        chosen = set(words_of[best[-1]])
        # Prefer an h1 that also has other words, such as a chapter number, to the heading of its first section.
        return next((i for i in firsts.values() if i < best[-1] and chosen.issubset(words_of[i])), best[-1])
    if plain is not None:
        return plain
    return next(iter(firsts.values())) if len(firsts) == 1 else _drawn(page, hidden, sites, top)


def _is_plain(words: Sequence[str], exact: set[str], tail: frozenset[str]) -> bool:
    """Return True if a line has exactly the words of a name, and is not just the end of the title."""
    return "".join(words) in exact and not tail.issuperset(words)


def _drawn(page: Page, hidden: Sequence[int], sites: frozenset[str], top: int) -> int | None:
    """Return the hidden ``h1`` that has exactly the words of a headline in the metadata, if no other block has them.

    It is there for search engines. A script draws the headline, so readers see it nevertheless.
    """
    names = {_letters(name[:LONGEST_HEADLINE]) for name in page.about.headlines} - sites - {""}
    texts = page.blocks.text
    found = next((i for i in hidden if len(texts[i]) <= LONGEST_HEADLINE and _letters(texts[i]) in names), None)
    if found is None:
        return None
    name = _letters(texts[found])
    drawn = sum(len(text) <= LONGEST_HEADLINE and _letters(text) == name for text in texts[: top + 1]) == 1
    return found if drawn else None


def _beginning(page: Page, main: Bools) -> tuple[int, int]:
    """Return the last block of the first lines of the main content, and the first block of body text.

    The first lines are a share of the words and at least two blocks, because a forum page may begin with a copy of its
    post. Both numbers are -1 if nothing is main.
    """
    numbers = np.flatnonzero(main).tolist()
    if not numbers:
        return -1, -1
    sizes = [len(_words(page.blocks.text[i])) for i in numbers]
    flags = page.tree.flags[page.blocks.context]
    texts = (i for i, n in zip(numbers, sizes, strict=True) if n >= BODY_WORDS and not flags[i] & Flag.HEADING)
    body = next(texts, numbers[-1])
    least = FIRST_LINES * sum(sizes)
    first = next((i for i, n in zip(numbers, accumulate(sizes), strict=True) if n > least), numbers[-1])
    return max(body, first, numbers[min(1, len(numbers) - 1)]), body


def _names(page: Page) -> list[list[str]]:
    """Return the words of each name of the page, including the parts of its title except the name of the site.

    A separator may also occur within a name, so consecutive parts are combined as well.
    """
    title, sites = _title(page), _sites(page)
    names = [_words(name.lower()) for name in (*(name[:LONGEST_HEADLINE] for name in page.about.headlines), title)]
    parts = [_words(part.lower()) for part in _separated(title)[:MOST_PARTS]]
    names += [list(chain(*parts[a:b])) for a, b in combinations(range(len(parts) + 1), 2)]
    return [words for words in names if words and "".join(words) not in sites]


def _title(page: Page) -> str:
    """Return the title. It is cut off if it is extremely long, because each heading is compared with it."""
    return (page.title or "")[: 2 * LONGEST_HEADLINE]


def _last_part(page: Page, sites: frozenset[str]) -> frozenset[str]:
    """Return the words of the last part of a title, which is usually the name of the site.

    Return nothing if it is longer than the first part, or if the first part is the name of the site.
    """
    parts = [words for words in map(_words, _separated(_title(page).lower())) if words]
    if len(parts) < 2 or len(parts[-1]) > len(parts[0]) or "".join(parts[0]) in sites:
        return frozenset()
    return frozenset(parts[-1])


def _match(words: list[str], have: frozenset[str], name: list[str], want: frozenset[str], *, h1: bool) -> int:
    """Return :data:`SAME` if a heading has exactly the words of a name, 1 if it has most of them, and 0 otherwise.

    An ``h1`` may have further words, and a name may begin with the words of an ``h1``, followed by the name of the
    site.
    """
    if words == name:
        return SAME
    if min(len(have), len(want)) < 2:
        return 0
    common = len(have & want)
    most = common >= SHARED_WORDS * len(want)
    return int(most if h1 else most and common >= SHARED_WORDS * len(have)) or int(h1 and name[: len(words)] == words)


def _sites(page: Page) -> frozenset[str]:
    """Return the names of the site without spaces, from the metadata and from the host."""
    names = {"".join(_words(page.about.site.lower()))}
    try:
        host = urlsplit(page.url).hostname or ""
    except ValueError:  # such as "http://["
        host = ""
    labels = host.removeprefix("www.").split(".")
    names |= {".".join(labels).replace(".", ""), *("".join(_words(label)) for label in labels[:-1] if len(label) > 2)}
    return frozenset(names - {""})


def _is_site(page: Page, block: int, fronts: dict[int, bool]) -> bool:
    """Return True if a heading has a class for site names, or links to the front page while the page is another one.

    ``fronts`` caches for each node in a link whether the link leads to the front page.
    """
    tree = page.tree
    if _site_class(tree.names[int(page.blocks.context[block])][:512]):
        return True
    node = int(page.blocks.leaf[block])
    path: list[int] = []
    while node not in fronts:
        if node < 0 or not tree.flags[node] & Flag.LINK:
            fronts[node] = False
        elif tree.tag[node] == _LINK:
            fronts[node] = _leads_to_front(page, node)
        else:
            path.append(node)
            node = int(tree.parent[node])
    fronts.update(dict.fromkeys(path, fronts[node]))
    return fronts[node]


def _leads_to_front(page: Page, link: int) -> bool:
    """Return True for a link from another page to the front page of the site."""
    try:
        target, own = urlsplit(str(page.tree.nodes[link].get("href") or "").strip()), urlsplit(page.url)
    except ValueError:
        return False
    front = target.path in ("", "/") and not target.query and not target.fragment
    return front and own.path not in ("", "/") and target.netloc in ("", own.netloc)


def _separated(title: str) -> list[str]:
    """Return the parts of a title: its subject, the section, the site."""
    return _separators(" ".join(title.split()))
