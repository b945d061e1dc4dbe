"""What a page declares with schema.org: the nodes of its JSON-LD, the facts in all notations, and which a text holds.

The notations of facts are JSON-LD, microdata and RDFa. Of the nodes, one describes the page's main content, and another
has the breadcrumbs. A declaration is evidence, not an answer: pages also declare their menus, or the recipes of other
pages. So the tagger gets features, and no block has a label because of a declaration.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.characters import CJK
from scrapy_dripper.declared.elements import LONGEST_TEXT, LONGEST_TITLE, MOST_NODES, MOST_VALUES, START

if TYPE_CHECKING:
    from lxml.html import HtmlElement

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

    def places(self, *keys: str) -> tuple[list[str], list[str]]:
        """Return the names and addresses of the places under the keys, and their regions and countries."""
        nodes = [_named(one) for value in self.values(*keys) for one in _as_list(value)[:MOST_VALUES]]
        real = [one for one in nodes if "virtuallocation" not in types_of(one)]
        where = chain.from_iterable(map(_as_list, (one.get("address") for one in real)))
        addresses = list(map(_named, islice(where, MOST_VALUES)))
        exact = [
            *real,
            *addresses,
            *(one.get(key) for key in ("streetAddress", "addressLocality") for one in addresses),
        ]
        around = [one.get(key) for key in ("addressRegion", "addressCountry") for one in addresses]
        return list(chain.from_iterable(map(texts, exact))), list(chain.from_iterable(map(texts, around)))

    def tracks(self) -> list[str]:
        """Return the names of the recordings of an album."""
        tops = [one for root in self.roots for one in _as_list(root)[:MOST_VALUES] if isinstance(one, dict)]
        nodes = chain(tops, chain.from_iterable(_as_list(one.get("@graph")) for one in tops))
        values = chain.from_iterable(_as_list(one.get("track")) for one in nodes if isinstance(one, dict))
        lists = (items(one) or [one] for one in islice(values, MOST_VALUES) if isinstance(one, dict))
        return [name for one in chain.from_iterable(lists) if (name := self._name(one.get("item", one)))]

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


def _named(value: Any) -> Node:
    return value if isinstance(value, dict) else {"name": value}


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


DETAILS = ("price", "place", "author", "detail")
"""The kinds of short values. Those of ``detail`` are brands, nutrition, dates and others."""
KINDS = ("ingredient", "step", "question", "answer", "body", "description", "post", *DETAILS)
"""The kinds of facts."""

KEYS: Mapping[str, str] = {
    "recipeingredient": "ingredient", "ingredients": "ingredient", "supply": "ingredient", "tool": "ingredient",
    "recipeinstructions": "step", "instructions": "step", "step": "step", "steps": "step",
    "articlebody": "body", "reviewbody": "post", "commenttext": "post",
    "acceptedanswer": "answer", "suggestedanswer": "answer",
    "price": "price", "lowprice": "price", "highprice": "price", "brand": "detail", "sku": "detail", "mpn": "detail",
    "manufacturer": "detail", "nutrition": "detail", "calories": "detail", "recipeyield": "detail",
    "startdate": "detail", "enddate": "detail", "location": "place", "address": "place", "streetaddress": "place",
    "author": "author", "datepublished": "detail", "telephone": "detail", "openinghours": "detail",
}  # fmt: skip
"""The kind of the texts below each key of schema.org, in lower case."""

TEXTS = frozenset({"text", "name", "description", "@value"})
"""The keys of the texts of a thing, in lower case."""

TYPES: Mapping[str, str] = {
    "howtostep": "step", "howtodirection": "step", "howtosection": "step", "howtotip": "step",
    "answer": "answer", "discussionforumposting": "post", "comment": "post", "socialmediaposting": "post",
}  # fmt: skip
"""The kind of the text of a thing of each type, in lower case."""

DESCRIBED = frozenset(
    "product individualproduct productgroup jobposting event course softwareapplication mobileapplication "
    "webapplication localbusiness place".split()
)
"""Types whose description is main content, in lower case. That of an article is its teaser."""

OTHERS = frozenset(
    "isrelatedto issimilarto mentions relatedlink ispartof haspart publisher breadcrumb hasvariant citation "
    "isaccessoryorsparepartfor worksfor video image logo potentialaction".split()
)
"""Keys of things other than the subject of the page, in lower case."""

MOST_CHARS = 400_000
"""Maximum number of characters of the facts of a page."""
GRAM = 3
"""Length of the runs of tokens by which facts are found."""
VISIBLE, KEPT = 0.8, 0.5
"""A page shows a fact if its text holds this share of the fact's runs, and an extraction keeps it with this share."""
CHECKED = ("ingredient", "step", "question", "answer", "body")
"""The kinds that are the subject of a page that declares them."""

_tokens = re.compile(rf"[{CJK}]|[^\W{CJK}]+").findall
_spaced = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}
_cjk = re.compile(f"[{CJK}]").search
_tags = re.compile(r"<[^<>]*>").sub


@dataclass(frozen=True, slots=True)
class Fact:
    """A text that a page declares about itself."""

    kind: str
    """One of :data:`KINDS`."""
    text: str


def tokens(text: str) -> list[str]:
    """Return the words of a text in lower case. Each CJK character is a word."""
    if text.isascii():  # six times as fast as the regular expression
        return text.lower().translate(_spaced).split()
    return _tokens(text.lower())


def declared_facts(values: Iterable[Any], elements: Iterable[HtmlElement]) -> tuple[Fact, ...]:
    """Return the facts of a page, each once.

    ``values`` are those of its JSON-LD. ``elements`` are those with an ``itemprop`` or ``property`` attribute, in
    document order. What is over the limits of this module is left out.
    """
    found: dict[Fact, None] = {}
    chars = 0
    for kind, text in islice(chain(_in_json(values), _in_elements(elements)), MOST_NODES):
        text = text[: MOST_CHARS - chars]
        if not text.strip():
            continue
        fact = Fact(kind, text)
        if fact not in found:
            chars += len(text)
            found[fact] = None
    return tuple(found)


def _in_json(values: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yield the kind and text of each fact in JSON-LD, in document order."""
    todo: list[tuple[Any, str]] = [(value, "") for value in values][::-1]
    for _ in range(MOST_NODES):
        if not todo:
            return
        value, kind = todo.pop()
        if isinstance(value, list):
            todo.extend((one, kind) for one in reversed(value[:MOST_NODES]))
        elif isinstance(value, dict):
            types = types_of(value)
            for name, one in reversed(list(islice(value.items(), MOST_NODES))):
                inner = _kind_below(name.lower(), types, kind, isinstance(one, (dict, list)))
                if inner is not None:
                    todo.append((one, inner))
        elif kind and isinstance(value, (str, int, float)) and not isinstance(value, bool):
            yield kind, plain(str(value)[:MOST_CHARS])


def _kind_below(key: str, types: Sequence[str], kind: str, holds_more: bool) -> str | None:
    """Return the kind of what is below a key of a thing, an empty string for none, or None if it is not read.

    ``types`` are those of the thing, and ``kind`` is that of its own texts.
    """
    if key in OTHERS or (key.startswith("@") and key not in ("@graph", "@value")):
        return None
    own = next((TYPES[one] for one in types if one in TYPES), kind)
    if key == "name" and "question" in types:
        return "question"
    if key == "description" and not DESCRIBED.isdisjoint(types):
        return "description"
    if key in KEYS or key in TEXTS:
        return KEYS.get(key, own)
    return (own if own in ("step", *DETAILS) else "") if holds_more else None


def _in_elements(elements: Iterable[HtmlElement]) -> Iterator[tuple[str, str]]:
    """Yield the kind and text of each fact in microdata or RDFa."""
    for element in elements:
        names = element.get("itemprop") or element.get("property")
        if not names:
            continue
        for name in names[:LONGEST_TEXT].lower().split():
            name = name.rpartition(":")[2].rpartition("/")[2]
            kind = KEYS.get(name, "")
            if name in ("text", "name", "description"):
                thing = next((one for one in element.iterancestors() if one.get("itemscope") is not None), None)
                of = ((thing.get("itemtype") or "") if thing is not None else "").lower().rpartition("/")[2].strip()
                if name == "name":
                    kind = "question" if of == "question" else ""
                elif name == "description":
                    kind = "description" if of in DESCRIBED else ""
                else:
                    kind = TYPES.get(of, "")
            if kind:
                texts = islice(element.itertext(), START if kind in DETAILS else None)
                yield kind, element.get("content") or " ".join(texts)
                break


def plain(text: str) -> str:
    """Return a text without tags and with entities resolved. Some sites escape their texts twice."""
    if "&" in text:
        text = unescape(unescape(text))
    return _tags(" ", text) if "<" in text else text


def missing(facts: Sequence[Fact], page: Iterable[str], text: str) -> tuple[str, ...]:
    """Return the kinds of facts that a page declares and shows, and of which its extraction has lost more than half.

    ``page`` are the texts of its blocks, and ``text`` is that of its extraction. The check takes linear time and needs
    no model.
    """
    some = [fact for fact in facts if fact.kind in CHECKED]
    if not some:
        return ()
    index = FactIndex(some)
    kept = index.shares(tokens(text)) >= KEPT
    if kept.all():
        return ()
    shown = index.shares([token for one in page for token in tokens(one)]) >= VISIBLE
    of_kind = ((kind, shown & (index.kinds == KINDS.index(kind))) for kind in CHECKED)
    return tuple(kind for kind, these in of_kind if these.any() and kept[these].mean() < 0.5)


Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class FactIndex:
    """Finds the facts of a page in its texts. Building and searching take linear time."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._short: dict[str, int] = {}
        self.cjk = False
        """True if a fact has CJK characters, each of which is a token."""
        flat: list[str] = []
        kinds: list[int] = []
        sizes: list[int] = []
        for fact in facts:
            words = tokens(fact.text)
            kind = KINDS.index(fact.kind)
            if len(words) < GRAM:
                name = " ".join(words)
                self._short[name] = self._short.get(name, 0) | 1 << kind
                continue
            self.cjk |= bool(_cjk(fact.text))
            flat += words
            kinds.append(kind)
            sizes.append(len(words))
        self.kinds: Ints = np.array(kinds, dtype=np.int64)
        """The kind of each fact of at least :data:`GRAM` tokens, as its number in :data:`KINDS`."""
        self._ids = {word: i for i, word in enumerate(dict.fromkeys(flat), start=1)}
        owner = np.repeat(np.arange(len(kinds)), sizes)
        self._codes, places = _grams(self._numbers(flat), owner)
        self._owner = owner[places]
        order = np.argsort(self._codes, kind="stable")
        self._known, starts = np.unique(self._codes[order], return_index=True)
        bits = np.left_shift(1, self.kinds[self._owner[order]])
        self._bits: Ints = np.bitwise_or.reduceat(bits, starts) if len(bits) else bits

    def cover(self, words: Sequence[str], size: Ints) -> Floats:
        """Return which share of each of n texts facts of each kind cover, of shape (n, kinds).

        The texts are given by the :func:`tokens` of all, and the number of tokens of each. A fact of fewer than
        :data:`GRAM` tokens only covers a text that is equal to it.
        """
        share = np.zeros((len(size), len(KINDS)), dtype=np.float32)
        text = np.repeat(np.arange(len(size)), size)
        if len(self._known) and len(words) >= GRAM:
            codes, places = _grams(self._numbers(words), text)
            at = np.minimum(np.searchsorted(self._known, codes), len(self._known) - 1)
            hit = np.where(self._known[at] == codes, self._bits[at], 0)
            marks = np.zeros(len(words), dtype=np.int64)
            for i in range(GRAM):
                marks[places + i] |= hit
            found = int(np.bitwise_or.reduce(hit)) if len(hit) else 0
            for kind in range(len(KINDS)):
                if found >> kind & 1:
                    covered = (marks >> kind & 1) != 0
                    share[:, kind] = np.bincount(text[covered], minlength=len(size)) / np.maximum(size, 1)
        if self._short:
            ends = np.cumsum(size)
            for row in np.flatnonzero((size > 0) & (size < GRAM)).tolist():
                end = int(ends[row])
                bits = self._short.get(" ".join(words[end - int(size[row]) : end]), 0)
                for kind in range(len(KINDS) if bits else 0):
                    if bits >> kind & 1:
                        share[row, kind] = 1
        return share

    def shares(self, words: Sequence[str]) -> Floats:
        """Return for each fact of at least :data:`GRAM` tokens which share of its runs a text holds."""
        codes, _ = _grams(self._numbers(words), np.zeros(len(words), dtype=np.int64))
        n = len(self.kinds)
        known = np.bincount(self._owner, weights=np.isin(self._codes, codes), minlength=n)
        return (known / np.maximum(np.bincount(self._owner, minlength=n), 1)).astype(np.float32)

    def _numbers(self, words: Sequence[str]) -> Ints:
        """Return the tokens as numbers, with 0 for those of no fact."""
        return np.fromiter(map(self._ids.get, words, repeat(0)), dtype=np.int64, count=len(words))


def _grams(flat: Ints, text: Ints) -> tuple[Ints, Ints]:
    """Return a code for each run of :data:`GRAM` known tokens of a text, and where it begins."""
    n = len(flat) - GRAM + 1
    if n < 1:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    known = text[:n] == text[GRAM - 1 :]
    code = np.zeros(n, dtype=np.int64)
    for i in range(GRAM):
        part = flat[i : i + n]
        known = known & (part > 0)
        code = (code << 21) + part  # facts have fewer tokens than 2 ** 21
    places = np.flatnonzero(known)
    return code[places], places
