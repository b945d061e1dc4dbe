"""The headline: the heading that names the main content, found by what the head says of the page, not by a model.

Ground truths differ on whether it belongs to the text, so models learn it by chance; a reader always wants it.
"""

from __future__ import annotations

import re
from itertools import accumulate, chain, combinations, takewhile
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.tags import TAGS

Bools = npt.NDArray[np.bool_]

BODY_WORDS = 10
"""Words from which on a main block is the body of a text, and no date, name or label above it."""
FIRST = 0.15
"""Share of the words of main content that are its first lines."""
SHARED = 0.75
"""Share of its words that a heading and a name have in common at least."""
SAME = 2
MOST_PARTS = 8
"""Parts of a title that are looked at."""
SURE = 0.7
"""A block above the headline that is likelier than this stays, and so does a longer one."""
LONGEST = 300
"""Characters of a headline at most."""
PLAIN = 5
"""Words at least of a headline that is no heading by its markup."""
LEAD = 0.4
"""A sentence that stands between the headline and the text is main if it is likelier than this."""
BELOW = 4
"""Blocks below the headline, dates and authors among them, of which one may be such a sentence."""

_NO_LEAD = (
    Flag.NAV | Flag.FOOTER | Flag.ASIDE | Flag.FORM | Flag.HIDDEN | Flag.NOSCRIPT | Flag.DIALOG
    | Flag.LIST | Flag.LINK | Flag.BUTTON | Flag.FIGURE | Flag.HEADING
)  # fmt: skip
_HEADING = int(Flag.HEADING)
_UNSEEN = int(Flag.FOOTER | Flag.DIALOG | Flag.HIDDEN)
_ELSEWHERE = int(Flag.NAV | Flag.ASIDE)
_LISTED = int(Flag.LIST | Flag.LINK | Flag.BUTTON | Flag.FORM)
_H1 = TAGS["h1"]
_LINK = TAGS["a"]
_site_class = re.compile(r"(?:^|[\s_-])(?:site[-_]?(?:title|name|logo)|menu-title|logo|brand)(?=[\s_-]|$)", re.I).search
_separators = re.compile(r" [-–—|·•:»«/~:]{1,20} | ?[|｜»«_] ?|: ").split
_ends_sentence = re.compile(r"[.!?…。！？][\"”»“’」』]?\Z").search
_words = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+").findall


def with_headline(page: Page, probabilities: npt.NDArray[np.float32], main: Bools, title: str) -> Bools:
    """Return the labels with the headline main and first, or, if ``title`` is ``drop``, without it.

    All arrays have shape (n,) for the page's n blocks. What is main above the headline goes if it is short and not
    sure: dates, categories and breadcrumbs. A lead below the headline becomes main, if it is not unlikely: models take
    it for a summary. Where nothing is main, or no heading names what is, the labels stay.
    """
    found = headline(page, main)
    if found is None:
        return main
    labels: Bools = main.copy()
    labels[_lead(page, probabilities, main, found)] = True
    if title == "drop":
        labels[found] = False
        return labels
    labels[found] = True
    for i in np.flatnonzero(main[:found]).tolist():
        labels[i] = probabilities[i] >= SURE or len(_words(page.blocks.text[i])) >= BODY_WORDS
    return labels


def _lead(page: Page, probabilities: npt.NDArray[np.float32], main: Bools, found: int) -> list[int]:
    """Return the blocks right below the headline, above the first main one, that are sentences of the text."""
    below = range(found + 1, min(found + 1 + BELOW, len(main)))
    flags = page.tree.flags[page.blocks.context] | page.tree.flags[page.blocks.leaf]
    texts = page.blocks.text
    return [
        i
        for i in takewhile(lambda i: not main[i], below)
        if probabilities[i] >= LEAD
        and not flags[i] & _NO_LEAD
        and _ends_sentence(texts[i].rstrip()[-2:])
        and len(_words(texts[i])) >= BODY_WORDS
    ]


def headline(page: Page, main: Bools) -> int | None:
    """Return the number of the block that names the main content, None if there is none.

    It is the heading nearest above the first body of main text that has the words of ``og:title``, of a headline in
    JSON-LD, or of ``<title>`` or a part of it; an ``h1`` rather than another, and one that has exactly those words can
    follow the first lines. Else it is a line above that text that is no heading but has exactly the words of a name, or
    the ``h1`` above it, if the page has but one. It is never the name of the site, nor hidden.
    """
    top, body = _beginning(page, main)
    flags = (page.tree.flags[page.blocks.context] | page.tree.flags[page.blocks.leaf]).tolist()
    # What the text itself stands in, such as a <nav> that is never closed, says nothing.
    around = flags[body] if body >= 0 else 0
    unseen, elsewhere = _UNSEEN & ~around, _ELSEWHERE & ~around
    tags = page.tree.tag[page.blocks.context].tolist()
    names, sites = _names(page), _sites(page)
    sets = [frozenset(name) for name in names]
    tail = _last_part(page, sites)
    best: tuple[bool, int, int] | None = None
    words_of: dict[int, list[str]] = {}
    firsts: dict[str, int] = {}  # the h1 elements
    fronts: dict[int, bool] = {}
    exact = {"".join(name) for name in names if len(name) >= PLAIN}
    plain: int | None = None
    for i, text in enumerate(page.blocks.text[: top + 1]):
        if flags[i] & unseen or len(text) > LONGEST:
            continue
        words = _words(text.lower())
        if not flags[i] & _HEADING:
            if (
                i <= body
                and not flags[i] & (elsewhere | _LISTED)
                and "".join(words) in exact
                and not tail.issuperset(words)
            ):
                plain = i
            continue
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
        if rank and (best is None or (i <= body, rank, i) > best):
            best = i <= body, rank, i
    if best is not None:
        chosen = set(words_of[best[-1]])
        # An h1 that says more, such as the number of the chapter, and not the heading of its first section.
        return next((i for i in firsts.values() if i < best[-1] and chosen.issubset(words_of[i])), best[-1])
    return plain if plain is not None or len(firsts) != 1 else next(iter(firsts.values()))


def _beginning(page: Page, main: Bools) -> tuple[int, int]:
    """Return the last block of the first lines of main content, and the first that is no heading, date or label.

    The first lines are a share of the words, and two blocks at least: a forum's page may begin with a copy of its post.

    Both are -1 where nothing is main.
    """
    numbers = np.flatnonzero(main).tolist()
    if not numbers:
        return -1, -1
    sizes = [len(_words(page.blocks.text[i])) for i in numbers]
    flags = page.tree.flags[page.blocks.context]
    texts = (i for i, n in zip(numbers, sizes, strict=True) if n >= BODY_WORDS and not flags[i] & Flag.HEADING)
    body = next(texts, numbers[-1])
    least = FIRST * sum(sizes)
    first = next((i for i, n in zip(numbers, accumulate(sizes), strict=True) if n > least), numbers[-1])
    return max(body, first, numbers[min(1, len(numbers) - 1)]), body


def _names(page: Page) -> list[list[str]]:
    """Return the words of each name that the head has for the page, and of the parts of its title but the site's.

    What separates parts may stand within a name too: parts that follow each other are also taken together.
    """
    title, sites = _title(page), _sites(page)
    names = [_words(name.lower()) for name in (*(name[:LONGEST] for name in page.about.headlines), title)]
    parts = [_words(part.lower()) for part in _separated(title)[:MOST_PARTS]]
    names += [list(chain(*parts[a:b])) for a, b in combinations(range(len(parts) + 1), 2)]
    return [words for words in names if words and "".join(words) not in sites]


def _title(page: Page) -> str:
    """Return the title, of an absurd one the beginning: each heading is compared with it."""
    return (page.title or "")[: 2 * LONGEST]


def _last_part(page: Page, sites: frozenset[str]) -> frozenset[str]:
    """Return the words of the last part of a title: the site's name, unless it is longer than the first or that is."""
    parts = [words for words in map(_words, _separated(_title(page).lower())) if words]
    if len(parts) < 2 or len(parts[-1]) > len(parts[0]) or "".join(parts[0]) in sites:
        return frozenset()
    return frozenset(parts[-1])


def _match(words: list[str], have: frozenset[str], name: list[str], want: frozenset[str], *, h1: bool) -> int:
    """Return :data:`SAME` if a heading has the words of a name, 1 if it has most of them, else 0.

    An ``h1`` may have more of its own, and a name may go on where it ends, with the name of the site.
    """
    if words == name:
        return SAME
    if min(len(have), len(want)) < 2:
        return 0
    common = len(have & want)
    most = common >= SHARED * len(want)
    return int(most if h1 else most and common >= SHARED * len(have)) or int(h1 and name[: len(words)] == words)


def _sites(page: Page) -> frozenset[str]:
    """Return the names of the site, without spaces: what the head says, and its host's."""
    names = {"".join(_words(page.about.site.lower()))}
    try:
        host = urlsplit(page.url).hostname or ""
    except ValueError:  # such as "http://["
        host = ""
    labels = host.removeprefix("www.").split(".")
    names |= {".".join(labels).replace(".", ""), *("".join(_words(label)) for label in labels[:-1] if len(label) > 2)}
    return frozenset(names - {""})


def _is_site(page: Page, block: int, fronts: dict[int, bool]) -> bool:
    """Return True if a heading has the class of a site's name, or is a link to the front page of another page.

    ``fronts`` keeps of each node in a link if it leads there.
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
    """Return True for a link to the front page of the site, from another page."""
    try:
        target, own = urlsplit(str(page.tree.nodes[link].get("href") or "").strip()), urlsplit(page.url)
    except ValueError:
        return False
    front = target.path in ("", "/") and not target.query and not target.fragment
    return front and own.path not in ("", "/") and target.netloc in ("", own.netloc)


def _separated(title: str) -> list[str]:
    """Return the parts of a title: what the page is about, its section, its site."""
    return _separators(" ".join(title.split()))
