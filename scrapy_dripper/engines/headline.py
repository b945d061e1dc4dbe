"""The headline: the heading that names the main content, found by what the head says of the page, not by a model.

Ground truths differ on whether it belongs to the text, so models learn it by chance; a reader always wants it.
"""

from __future__ import annotations

import re
from itertools import accumulate
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

_UNSEEN = Flag.FOOTER | Flag.DIALOG | Flag.HIDDEN
_ELSEWHERE = Flag.NAV | Flag.ASIDE
_H1 = TAGS["h1"]
_LINK = TAGS["a"]
_separated = re.compile(r"\s+[-–—|·•:»«/~:]+\s+|\s*[|｜»«_]\s*|:\s+").split
_words = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+").findall


def with_headline(page: Page, probabilities: npt.NDArray[np.float32], main: Bools, title: str) -> Bools:
    """Return the labels with the headline main and first, or, if ``title`` is ``drop``, without it.

    All arrays have shape (n,) for the page's n blocks. What is main above the headline goes if it is short and not
    sure: dates, categories and breadcrumbs. Where nothing is main, or no heading names what is, the labels stay.
    """
    found = headline(page, main)
    if found is None:
        return main
    labels: Bools = main.copy()
    if title == "drop":
        labels[found] = False
        return labels
    labels[found] = True
    for i in np.flatnonzero(main[:found]).tolist():
        labels[i] = probabilities[i] >= SURE or len(_words(page.blocks.text[i])) >= BODY_WORDS
    return labels


def headline(page: Page, main: Bools) -> int | None:
    """Return the number of the block that names the main content, None if there is none.

    It is the heading nearest above the first body of main text that has the words of ``og:title``, of a headline in
    JSON-LD, or of ``<title>`` or a part of it; one that has exactly those can follow the first lines. Else it is the
    ``h1`` above that text, if the page has but one. It is never the name of the site, nor hidden.
    """
    top, body = _beginning(page, main)
    flags = (page.tree.flags[page.blocks.context] | page.tree.flags[page.blocks.leaf]).tolist()
    tags = page.tree.tag[page.blocks.context].tolist()
    names, sites = _names(page), _sites(page)
    best: tuple[int, int, int] | None = None
    alone: dict[str, int] = {}
    for i, text in enumerate(page.blocks.text[: top + 1]):
        if not flags[i] & Flag.HEADING or flags[i] & _UNSEEN or len(text) > LONGEST:
            continue
        words = _words(text.lower())
        if not words or "".join(words) in sites or _leads_home(page, i):
            continue
        rank = max((_match(words, name, h1=tags[i] == _H1) for name in names), default=0)
        if rank < SAME and (i > body or flags[i] & _ELSEWHERE):
            continue
        if tags[i] == _H1:
            alone["".join(words)] = i
        elif flags[i] & _ELSEWHERE:
            continue
        if rank and (best is None or (rank, i <= body, i) >= best):
            best = rank, i <= body, i
    if best is not None:
        return best[2]
    return next(iter(alone.values())) if len(alone) == 1 else None


def _beginning(page: Page, main: Bools) -> tuple[int, int]:
    """Return the last block of the first lines of main content, and the first that is no heading, date or label.

    Both are -1 where nothing is main.
    """
    numbers = np.flatnonzero(main).tolist()
    if not numbers:
        return -1, -1
    sizes = [len(_words(page.blocks.text[i])) for i in numbers]
    flags = page.tree.flags[page.blocks.context]
    texts = (i for i, n in zip(numbers, sizes, strict=True) if n >= BODY_WORDS and not flags[i] & Flag.HEADING)
    body = next(texts, numbers[-1])
    first = next(i for i, n in zip(numbers, accumulate(sizes), strict=True) if n > FIRST * sum(sizes))
    return max(body, first), body


def _names(page: Page) -> list[list[str]]:
    """Return the words of each name that the head has for the page, and of the parts of its title but the site's."""
    title, sites = page.title or "", _sites(page)
    names = [_words(name.lower()) for name in (*page.about.headlines, title, *_separated(title)[:MOST_PARTS])]
    return [words for words in names if words and "".join(words) not in sites]


def _match(words: list[str], name: list[str], *, h1: bool) -> int:
    """Return :data:`SAME` if a heading has the words of a name, 1 if it has most of them, else 0.

    One of an ``h1`` may have more than the other: a title goes on with the name of the site, or is cut off.
    """
    if words == name:
        return SAME
    have, want = set(words), set(name)
    common = len(have & want)
    if min(len(have), len(want)) < 2:
        return 0
    shares = sorted((common / len(have), common / len(want)))
    return int(shares[h1] >= SHARED)


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


def _leads_home(page: Page, block: int) -> bool:
    """Return True if a block is in a link to the front page, as the name of a site is, unless that is the page."""
    tree = page.tree
    node = int(page.blocks.leaf[block])
    while node >= 0 and tree.flags[node] & Flag.LINK:
        if tree.tag[node] == _LINK:
            href = str(tree.nodes[node].get("href") or "").strip()
            try:
                target, own = urlsplit(href), urlsplit(page.url)
            except ValueError:
                return False
            front = target.path in ("", "/") and not target.query and not target.fragment
            return front and own.path not in ("", "/") and target.netloc in ("", own.netloc)
        node = int(tree.parent[node])
    return False
