"""Read the JSON-LD of a page (schema.org): the node that describes the page's main content, and the breadcrumbs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from itertools import chain
from typing import Any

from scrapy_dripper.declared.text import LONGEST_TEXT, LONGEST_TITLE, MOST_NODES, MOST_VALUES

MOST_HEADLINES = 3
"""Maximum number of headlines to read from a script. The first is the page's own; a list holds those of other pages."""

Node = dict[str, Any]

_ARTICLES = frozenset(
    "report blogposting socialmediaposting liveblogposting discussionforumposting techarticle".split()
)
_WORKS = frozenset(
    "question qapage recipe videoobject howto course review podcastepisode episode book creativework dataset "
    "softwaresourcecode imageobject faqpage".split()
)
_THINGS = frozenset("product individualproduct productgroup event jobposting softwareapplication place service".split())
_PAGES = frozenset("webpage itempage collectionpage aboutpage profilepage medicalwebpage searchresultspage".split())
_KEYS_OF_OTHERS = frozenset(
    "itemlistelement relatedlink ispartof haspart mentions comment suggestedanswer acceptedanswer review isrelatedto "
    "issimilarto citation breadcrumb publisher author creator isbasedon hasvariant offers subjectof about worksfor "
    "liveblogupdate".split()
)
"""Keys, in lower case, of things other than the subject of the page."""
_SUBJECT, _OTHER, _STEP = range(3)
"""Where a node is: it may be the subject of the page, it is of another thing, or in breadcrumbs."""
_tag = re.compile(r"<[^<>]*>").sub
_decode = json.JSONDecoder(strict=False).raw_decode
_opening = re.compile(r"\s*(?:<!--|/[*/]\s?<!\[CDATA\[(?:\s?\*/)?|<!\[CDATA\[)?\s*").match


@dataclass(frozen=True, slots=True)
class Linked:
    """The JSON-LD of a page. ``main`` is the node about its content, ``page`` the node about the page itself."""

    main: Node
    page: Node
    rank: int | None
    """The rank of ``main`` as the subject of a page (:func:`_rank`); None without one."""
    breadcrumbs: Node
    site: Node
    by_id: dict[str, Node]
    roots: list[Any]
    """The values of all scripts."""
    types: frozenset[str]
    """The types of all nodes, in lower case."""
    headlines: tuple[str, ...]
    """The first headlines of each script."""

    @property
    def is_article(self) -> bool:
        """True if the page is about an article."""
        return self.rank == 0

    @property
    def is_thing(self) -> bool:
        """True if the page is about a product, an event, a job or a place."""
        return self.rank == 2

    def values(self, *keys: str) -> Iterator[Any]:
        """Yield the values of the two nodes under the keys, in order of the keys, the main node's value first."""
        for key in keys:
            for node in (self.main, self.page):
                value = node.get(key)
                if value:
                    yield value

    def texts(self, *keys: str) -> Iterator[str]:
        """Yield the texts under the keys."""
        return chain.from_iterable(map(texts, self.values(*keys)))

    def text(self, *keys: str) -> str:
        """Return the first text under the keys, or an empty string."""
        return next(self.texts(*keys), "")

    def names(self, *keys: str) -> list[str]:
        """Return the names of people or organizations under the first key that has any."""
        for value in self.values(*keys):
            names = [name for one in _as_list(value)[:MOST_VALUES] if (name := self._name(one))]
            if names:
                return names
        return []

    def _name(self, value: Any) -> str:
        if isinstance(value, dict):
            named = value if value.get("name") or value.get("givenName") else self.by_id.get(_identity(value), value)
            whole = next(texts(named.get("name")), "")
            return whole or " ".join(next(texts(named.get(key)), "") for key in ("givenName", "familyName")).strip()
        return next(texts(value), "")

    def url(self, *keys: str) -> str:
        """Return the first URL under the keys, which is a text or the URL of an image object."""
        for value in self.values(*keys):
            for one in _as_list(value)[:MOST_VALUES]:
                # An object may be described elsewhere in the data.
                known = self.by_id.get(_identity(one), one) if isinstance(one, dict) else {"url": one}
                for text in chain(texts(known.get("url")), texts(known.get("contentUrl"))):
                    return text
        return ""


def read_json_ld(scripts: Iterable[str]) -> Linked:
    """Return the JSON-LD in the texts of scripts, without what is not valid JSON: that is one script in a thousand."""
    roots: list[Any] = []
    subjects: dict[int, Node] = {}
    breadcrumbs: Node = {}
    site: Node = {}
    by_id: dict[str, Node] = {}
    types: set[str] = set()
    headlines: list[str] = []
    left = MOST_NODES
    for script in scripts:
        value = parsed(script)
        if value is None:
            continue
        roots.append(value)
        found: list[str] = []
        todo: list[tuple[Any, int]] = [(value, _SUBJECT)]
        while todo and left:
            left -= 1
            value, place = todo.pop()
            if isinstance(value, list):
                todo.extend((one, place) for one in reversed(value[:MOST_NODES]) if isinstance(one, (dict, list)))
                continue
            kinds = types_of(value)
            types.update(kinds)
            headline = value.get("headline")
            if isinstance(headline, str) and len(headline) <= LONGEST_TITLE:
                found.append(headline)
            if place != _STEP and len(value) > 1 and (name := _identity(value)):
                by_id.setdefault(name, value)
            if "breadcrumblist" in kinds:
                # Some sites also describe shorter paths to the page.
                breadcrumbs = max(breadcrumbs, value, key=lambda node: len(_as_list(node.get("itemListElement"))))
                place = _STEP
            elif "website" in kinds:
                site = site or value
            rank = _rank(kinds)
            # A node within another thing, such as an article of a list, is not the subject of the page.
            if rank is not None and place == _SUBJECT:
                subjects.setdefault(rank, value)
            for key, one in reversed(value.items()):
                if isinstance(one, (dict, list)) and key != "@context":
                    todo.append((one, max(place, _OTHER if key.lower() in _KEYS_OF_OTHERS else _SUBJECT)))
        headlines += [unescape(one).strip() for one in found[:MOST_HEADLINES]]
    rank = min(subjects, default=None)
    main, page = {} if rank is None else subjects[rank], subjects.get(3, {})
    return Linked(
        main=main,
        page=page if page is not main else {},
        rank=rank,
        breadcrumbs=breadcrumbs,
        site=site,
        by_id=by_id,
        roots=roots,
        types=frozenset(types),
        headlines=tuple(headlines),
    )


def parsed(text: str) -> Any:
    """Return the JSON object or list of a script, which may have comments around it, or None if it has none."""
    start = _opening(text)
    with suppress(ValueError, RecursionError):
        value, _ = _decode(text, start.end() if start else 0)
        return value if isinstance(value, (dict, list)) else None
    return None


def types_of(node: Node) -> list[str]:
    """Return the types of a node, in lower case and without the address of their vocabulary."""
    types = (one[:100] for one in _as_list(node.get("@type"))[:10] if isinstance(one, str))
    return [name for one in types if (name := one.rpartition("/")[2].rpartition(":")[2].lower())]


def _rank(types: list[str]) -> int | None:
    """Return the rank of a node as the subject of a page: 0 for articles, None for types that are never a subject."""
    if any(one in _ARTICLES or one.endswith("article") for one in types):
        return 0
    for rank, kinds in ((1, _WORKS), (2, _THINGS), (3, _PAGES)):
        if any(one in kinds for one in types):
            return rank
    return None


def _identity(node: Node) -> str:
    name = node.get("@id")
    return name if isinstance(name, str) else ""


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def items(node: Node) -> list[Node]:
    """Return the elements of an ``ItemList``."""
    return [one for one in _as_list(node.get("itemListElement"))[:MOST_VALUES] if isinstance(one, dict)]


def texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value, which is a text or a list, without tags and with entities resolved."""
    for one in _as_list(value)[:MOST_VALUES]:
        if isinstance(one, dict):
            one = one.get("@value") or one.get("name")
        if isinstance(one, str):
            one = one[:LONGEST_TEXT]
            if "&" in one:
                one = unescape(one)
            if "<" in one:
                one = _tag(" ", one)
            one = " ".join(one.split())
            if one:
                yield one
