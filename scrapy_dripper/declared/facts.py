"""The facts that a page declares about itself in JSON-LD, microdata and RDFa (schema.org), and where a text holds them.

A declaration is evidence, not an answer: pages also declare their menus, or the recipes of other pages. So the tagger
gets features, and no block has a label because of a declaration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.characters import CJK
from scrapy_dripper.declared.json_ld import types_of
from scrapy_dripper.declared.text import LONGEST_TEXT, MOST_NODES, START

if TYPE_CHECKING:
    from lxml.html import HtmlElement

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
