"""Name a page, from what it says that it is called and from its headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, combinations
from urllib.parse import urljoin, urlsplit

from scrapy_dripper.characters import CJK
from scrapy_dripper.declared.elements import LONGEST_TEXT, LONGEST_TITLE
from scrapy_dripper.declared.schema_org import tokens

MOST_PARTS = 8
"""Maximum number of parts of a title to consider."""
SHARED = 0.5
"""Minimum share of words that the heading of the page has in common with a name of it."""
SHARED_WORDS = 0.75
"""Minimum share of words that a heading and a name have in common."""
LINE = "the line that is most of the name that the page gives itself"
ONLY_HEADING = "the only <h1>, which shares few words with what the page says that it is called"
LINE_WORDS = 5
"""Minimum number of words of a name that a line without heading markup may repeat."""
BEGIN_WORDS = 3
"""Minimum number of words of a heading below the first level with which a name may begin."""

_host = re.compile(r"(?:www\.|w\d{1,3}\.)?([^/:]{1,253})").match
_SEPARATOR = r"\s{1,3}[-–—―－|·•●:»«›‹/~\\>]{1,20}\s{1,3}|\s?[|｜»«_]\s?|:\s{1,3}"
_separators = re.compile(_SEPARATOR).split
_before_site = re.compile(rf"{_SEPARATOR}|(?<=[{CJK}])-{{1,2}}(?=[{CJK}])").split
_is_colon = re.compile(r"\s{0,3}:").match
_parts = re.compile(r"\s{0,3}[-–—―－|｜·•●:：_»«›‹/~\\>]").match
_default = re.compile(
    r"untitled(?:[ -](?:document|page|\d{1,3}))?|(?:new|blank) (?:document|page)(?: \d{1,3})?|document"
    r"|unbenanntes dokument|document sans (?:nom|titre)|documento (?:sin|sem|senza) (?:título|titolo)"
    r"|无标题文档|無標題文件|新建网页 ?\d{1,3}|無題ドキュメント|제목 없음|документ без названия",
    re.I,
).fullmatch
"""Matches the titles that editors give to a page whose author gives it none."""
_around = " |»«›‹·•●:~-–—―－"


@dataclass(frozen=True, slots=True)
class Name:
    """What a page is called."""

    text: str = ""
    reason: str = "the page names itself nowhere"
    """Where the name is from."""


class Match(IntEnum):
    """Which words of a name a heading has."""

    FEW = 0
    FIRST = 1
    """The first ones, in a heading below the first level."""
    MOST = 2
    ALL = 3
    """All of them, and no others."""


class Names:
    """What a page says that it and its site are called."""

    def __init__(
        self,
        declared: Sequence[str],
        document_title: str,
        site: str,
        url: str,
        headings: Sequence[tuple[str, int]],
    ) -> None:
        """``declared`` are the names in its data and ``meta`` elements, the most reliable ones first. ``headings`` are
        those of the first level, each with where its link leads (:func:`leads_up`).
        """
        declared = [name[:LONGEST_TITLE] for name in declared if name]
        self._title = title = "" if _default(document_title) else document_title[:LONGEST_TITLE]
        pairs = [(part, words) for part in _separators(title) if (words := tokens(part))]
        parts = [words for _, words in pairs]
        short = (text for text, _ in headings if len(text) <= LONGEST_TITLE)
        self.headings = [(text, words) for text in short if (words := tokens(text))]
        names = [*declared, title] if title else declared
        begin = [_joined(tokens(name)) for name in names]
        up = ((_joined(tokens(text[:LONGEST_TITLE])), level) for text, level in headings if level)
        of_site = {said for said, level in up if level == 1 or not any(name.startswith(said) for name in begin)}
        self._sites = {_joined(tokens(site)), *of_site} - {""}
        self._host = _joined(tokens(site_domain(url)))
        # What follows a colon is what is said about a topic, and not the name of the site.
        is_topic = bool(pairs) and title[: title.rindex(pairs[-1][0])].rstrip().endswith(":")
        self.ending = _joined(parts[-1]) if len(parts) > 1 and not is_topic else ""
        """The last part of ``<title>``, which an ``h1`` may repeat."""
        if leads_up("/", url):  # only the front page has the name of the site
            names = [name for name in names if not self.is_site(tokens(name))] or names
        self.texts = names
        """The names of the page."""
        whole = _joined(tokens(title))
        agreed = (words for words in map(tokens, declared) if _joined(words) in whole and not self.is_site(words))
        self._agreed = frozenset(chain.from_iterable(agreed))
        self._declared = frozenset(_joined(tokens(name)) for name in declared)
        ends = (
            self.ending
            and len(parts[-1]) <= len(parts[0])
            and not self.is_site(parts[0])
            and not self._agreed.intersection(parts[-1])
        )
        self._site_part = frozenset(parts[-1] if ends else ())
        # A separator may also be in a name, so consecutive parts are combined as well.
        some = parts[:MOST_PARTS]
        runs = (list(chain(*some[a:b])) for a, b in combinations(range(len(some) + 1), 2))
        known = (one for one in (*map(tokens, names), *runs) if one and _joined(one) not in self._sites)
        self.words = list({_joined(one): one for one in known}.values())
        """The words of each name, and of the parts of ``<title>``, except those of the site."""
        self._sets = [frozenset(one) for one in self.words]
        self._joined = {_joined(one) for one in self.words}

    def is_site(self, words: Sequence[str]) -> bool:
        """Return True for the name of the site, or a part of its host."""
        said = _joined(words)
        return said in self._sites or (len(said) > 3 and said in self._host)

    def is_other(self, words: Sequence[str]) -> bool:
        """Return True for words that name the site, or have none in common with the names on which ``<title>`` and the
        data agree, and are no name in the data.
        """
        disagrees = bool(self._agreed) and self._agreed.isdisjoint(words) and _joined(words) not in self._declared
        return disagrees or self.is_site(words)

    def ends(self, words: Sequence[str]) -> bool:
        """Return True for words of the last part of ``<title>`` if that is short, as the name of a site is."""
        return self._site_part.issuperset(words)

    def is_named(self, words: Sequence[str]) -> bool:
        """Return True for exactly the words of a name that is not that of the site."""
        return _joined(words) in self._joined and not self.is_site(words)

    def is_line(self, words: Sequence[str]) -> bool:
        """Return True if a line that is no heading has exactly the words of a name, and is long enough for one."""
        return len(words) >= LINE_WORDS and self.is_named(words) and not self._site_part.issuperset(words)

    def is_most(self, line: str) -> bool:
        """Return True for a line that is ``<title>``, or most of it: all but other parts behind it, or before it."""
        if 2 * len(line) <= len(self._title) or len(words := tokens(line)) < LINE_WORDS or self.is_site(words):
            return False
        before, found, behind = self._title.partition(line)
        beside = before[::-1] or behind
        return bool(found) and not (before and behind) and (not beside or _parts(beside) is not None)

    def begin_with(self, words: Sequence[str]) -> bool:
        """Return True if a part of ``<title>``, or another name, begins with these words and goes on."""
        return any(len(name) > len(words) and name[: len(words)] == words for name in self.words)

    def match(self, words: Sequence[str], *, h1: bool) -> Match:
        """Return which words of a name a heading has.

        An ``h1`` may have further words, and a name may begin with the words of a heading, followed by the name of the
        site or the author.
        """
        have = frozenset(words)
        best = Match.FEW
        for name, want in zip(self.words, self._sets, strict=True):
            if words == name:
                return Match.ALL
            if min(len(have), len(want)) >= 2:
                common = len(have & want)
                begins = (h1 or len(words) >= BEGIN_WORDS) and name[: len(words)] == words
                most = common >= SHARED_WORDS * len(want) and (h1 or common >= SHARED_WORDS * len(have))
                best = max(best, Match.MOST if most or (h1 and begins) else Match.FIRST if begins else Match.FEW)
        return best

    def fit(self, words: Sequence[str]) -> float:
        """Return how well a heading fits the names, 0 to 1. The first part of a name counts most."""
        have = frozenset(words)
        best = 0.0
        for name in self.texts if have else ():
            for i, part in enumerate((name, *_separators(name)[:MOST_PARTS])):
                said = frozenset(tokens(part))
                if said:
                    best = max(best, 2 * len(have & said) / (len(have) + len(said)) - i / 100)
        return best

    def without_site(self, name: str) -> str:
        """Return a name without the names of the site at its end and its beginning."""
        parts = _before_site(name)
        while len(parts) > 1 and self.is_site(tokens(parts[-1])):
            end = name.rindex(parts.pop())
            name = name[: name.rindex(parts[-1], 0, end) + len(parts[-1])]
        while len(parts) > 1 and self.is_site(tokens(parts[0])) and not _is_colon(name, len(parts[0])):
            name = name[name.index(parts[1], len(parts.pop(0))) :]
        return name.strip(_around)


def name_of(names: Names, subheadings: Iterable[str], lines: Iterable[str], headline: str = "") -> Name:
    """Return the name of a page: the heading that fits best to the names that the page gives itself, or else one of
    these names, or the one of its lines that is most of it. ``headline`` is the heading below the first level that is
    marked as one.
    """
    own = [(text, words) for text, words in names.headings if not names.is_other(words)]
    fitting = [(fit, -i) for i, (_, words) in enumerate(own) if (fit := names.fit(words)) >= SHARED]
    fit, first = max(fitting, default=(0.0, 0))
    best, said = own[-first] if fitting else ("", [])
    may_be_site = not best or _joined(said) == names.ending  # above the heading of the page
    bare = next(filter(None, map(names.without_site, names.texts)), "")
    may_be_chapter = fit < SHARED_WORDS and names.begin_with(said)  # "Chapter 3", above the name of the chapter
    if may_be_site or may_be_chapter:
        parts = {*map(_joined, names.words)} - {_joined(said), names.ending if best else ""}
        for text in subheadings:
            words = tokens(text)
            if _joined(words) in parts and not names.is_site(words) and (may_be_site or len(words) > len(said)):
                return Name(text, "the <h2> that is a name of the page, or a part of one")
        line = next((line for line in lines if line in bare and names.is_most(line)), "") if may_be_site else ""
        if line:
            return Name(line, LINE)
    if best:
        return Name(best, "the <h1> that fits best to the names that the page gives itself")
    if len(own) <= 1 and headline and names.headings:
        return Name(headline, "the only <h2> that is marked as the headline")
    if len(own) == 1 and (len(names.headings) == 1 or not names.texts):
        return Name(own[0][0], ONLY_HEADING)
    if bare:
        return Name(bare, "the most reliable name that the page gives itself")
    return Name(names.headings[0][0], "the first <h1>, for want of a name") if names.headings else Name()


def site_domain(url: str) -> str:
    """Return the domain that names the site of a URL: its host without ``www.``, or an empty string."""
    with suppress(ValueError):
        found = _host(urlsplit(url).netloc.rpartition("@")[2])
        return found[1] if found else ""
    return ""


def leads_up(href: str, url: str) -> int:
    """Return 1 for a link from the page at ``url`` to the front page, 2 for one to another page above it, or else 0.

    Addresses such as ``..`` do not count: generators of books put the title of a chapter into such a link.
    """
    if href.lstrip().startswith("."):
        return 0
    try:
        target, own = urlsplit(urljoin(url, href[:LONGEST_TEXT].strip())), urlsplit(url)
    except ValueError:  # such as "http://["
        return 0
    above, below = (f"{one.path.rstrip('/')}/" for one in (target, own))
    is_other = target.query or target.netloc.removeprefix("www.") != own.netloc.removeprefix("www.")
    return 0 if is_other or above == below or not below.startswith(above) else 1 if above == "/" else 2


def _joined(words: Sequence[str]) -> str:
    return "".join(words)
