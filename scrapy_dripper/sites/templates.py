"""The templates of hosts: clusters of pages with similar layouts, each with rules made of the model's labels on a few.

A template labels the blocks of a page, or says why the model has to. Its rules are selectors for the places of a
template: short CSS that a person can read, made of the tags and classes of pages.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.characters import on_one_line, to_json
from scrapy_dripper.page.page import Bools, Flag, Page
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.paths import portable, replace_file
from scrapy_dripper.rules import (
    CHARS,
    DROP,
    KEEP,
    LARGEST_FILE,
    MODEL,
    WHOLE,
    RuleError,
    Rules,
    SelectorError,
    SiteRule,
    find,
    host_of,
    loaded,
    read_rules,
)
from scrapy_dripper.sites.memory import HASH, Floats, name_of

Vector = npt.NDArray[np.uint8]

ALIKE = 0.7
"""Minimum cosine of a page and its template."""
PURE = 0.85
"""Minimum share of main text, or of other text, in a place with which the place decides about a block."""
COVERED = 0.95
"""Minimum share of a page's text about which the template must decide."""
LENGTH_FACTOR = 4.0
"""Maximum factor by which the main content may be longer than the longest, or shorter than the shortest, of the pages
from which the template was learnt.
"""
EXAMPLE_TEXTS = 256
"""Maximum number of texts in an example."""
MOST_PATHS = 512
"""Maximum number of paths in an example, and of a template. Of a template, those on the fewest pages are left out."""
MOST_RULES = 128
"""Maximum number of rules of a template. Most have fewer than 30. A template with more never answers."""
LONGEST_TEXT = 300
"""Maximum length of a text in an example, in characters."""
VECTOR_SIZE = 1_024
"""Length of the vector of a page. The names of elements at each depth, and the pairs of parent and child, are hashed
into this many slots and counted.
"""
COUNTED_DEPTH = 12
"""Maximum depth of the elements that are counted. Deeper elements belong to the content, which differs from page to
page.
"""
MOST_HOSTS = 256
"""Maximum number of hosts with templates. A new host replaces the least recently seen one."""
MOST_TEMPLATES = 12
"""Maximum number of templates of a host. A new one replaces the least recently seen one that does not answer. If all
answer, it replaces the least recently seen one. So single odd pages do not replace a template of many pages."""
LONGEST_FILE_NAME = 240
"""Maximum length of a host in the name of a file. Names of files have at most 255 bytes."""
EXAMPLES = 8
"""Number of pages that a template is made of, the last ones, so that it adapts to changes of the site."""
LARGEST_EXAMPLE = 16_384
"""Maximum size of a page's example in bytes. Larger ones are not learnt. Most have fewer than 4,000."""
LARGEST_UNPACKED = 1_000_000
"""Maximum size of an example in bytes before it is compressed. Names on a page can be longer, which says nothing."""
BYTES_PER_HOST = MOST_TEMPLATES * EXAMPLES * (LARGEST_EXAMPLE + VECTOR_SIZE)
"""Maximum size of what is known about a host, in bytes."""
LEAST_PAGES = 2
"""Minimum number of pages on which a place or a text must have been seen to become a rule."""
CHECKS = 2
"""Number of checks in a row in which a template must agree with the model before it answers."""
AGREED = 0.98
"""Minimum agreement of the template's and the model's labels in a check (:func:`agreement`)."""
FAILED = 0.8
"""If the agreement in an audit is below this value, the template is forgotten, and learnt again from scratch."""
AUDITED = 0.05
"""Share of pages on which the model is asked although the template could answer."""
DOUBTED = 0.25
"""The same share of pages of which the template leaves out a table or code. The model may have lost it on the first
pages, from which the template would lose it on all."""
STRUCTURES = {
    kind: [TAGS[tag] for tag in tags.split()]
    for kind, tags in {"table": "table", "list": "ul ol dl", "code": "pre"}.items()
}
"""The numbers of the tags of the structures that are compared."""
MARGINS = int(Flag.NAV | Flag.HEADER | Flag.FOOTER | Flag.ASIDE | Flag.FORM | Flag.HIDDEN)
"""Where nobody misses a table."""
_SCALE = 16.0
_UP, _DEPTH, _EDGE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_SHIFT = np.uint64(64 - VECTOR_SIZE.bit_length() + 1)


# ---------------------------------------------------------------------- layouts
def layout(page: Page) -> Vector:
    """Return logarithms of the counts in each slot, shape (:data:`VECTOR_SIZE`,).

    Class names with digits are left out, because many of them identify a single page.
    """
    tree = page.tree
    _, first, which = np.unique(tree.tag_class, return_index=True, return_inverse=True)
    named = (blake2b(name_of(tree.nodes[node]), digest_size=HASH.itemsize).digest() for node in first.tolist())
    names = np.frombuffer(b"".join(named), dtype=HASH)[which]
    high = np.flatnonzero(tree.depth <= COUNTED_DEPTH)
    inner = high[tree.parent[high] >= 0]
    at = names[high] + tree.depth[high].astype(np.uint64) * _DEPTH
    edges = names[tree.parent[inner]] * _EDGE + names[inner]
    slots = ((np.concatenate([at, edges]) * _UP) >> _SHIFT).astype(np.intp)
    counts = np.bincount(slots, minlength=VECTOR_SIZE)
    vector = np.where(counts > 0, _SCALE * (1 + np.log(np.maximum(counts, 1))), 0)
    return np.minimum(vector, 255).astype(np.uint8)


def alike(one: npt.NDArray[np.number], other: npt.NDArray[np.number]) -> float:
    """Return the cosine of two vectors; 0 if one of them is zero."""
    a, b = one.astype(np.float32), other.astype(np.float32)
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size else 0.0


# ---------------------------------------------------------------------- what a template says about a page
class Outcome(Enum):
    """The outcome for a page: the template has answered, or why it has not."""

    NEW = "new"
    """The page is like none of the host's earlier pages."""
    UNCOVERED = "uncovered"
    """Too much of its text is in places that the template does not decide about."""
    LENGTH = "length"
    """The template finds no main content, or far less or more than on other pages."""
    LEARNING = "learning"
    """The template would have answered, but has not agreed with the model on enough pages."""
    AUDIT = "audit"
    """The template would have answered, and the model was asked to check it."""
    ANSWERED = "answered"
    """The template has answered."""

    @property
    def is_answer(self) -> bool:
        """True if the template has labelled the page."""
        return self is Outcome.ANSWERED


@dataclass(frozen=True, slots=True, eq=False)
class TemplateRules:
    """The rules of a template, in the form in which they are sent with a document."""

    number: int
    ready: bool
    shortest: int
    """Number of characters in the shortest main content of its pages."""
    longest: int
    """Number of characters in the longest main content of its pages."""
    rules: Rules
    centroid: Vector
    """The mean of the vectors of its pages; all zero if it is unknown."""


def pack_rules(templates: Sequence[TemplateRules]) -> bytes:
    """Return the rules of a host's templates as bytes."""
    rows = [(one.number, one.ready, one.shortest, one.longest, one.rules, _hex(one.centroid)) for one in templates]
    return json.dumps(rows, separators=(",", ":")).encode()


def unpack_rules(data: bytes) -> list[TemplateRules]:
    """Return the rules of a host's templates; none for no data. Raise ValueError if the data are invalid."""
    try:
        return [
            TemplateRules(
                int(number), bool(ready), int(least), int(most), Rules(SiteRule(*one) for one in rules), _vector(own)
            )
            for number, ready, least, most, rules, own in json.loads(data or b"[]")
        ]
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"expected rules of a template ({error})") from None


def _hex(vector: Vector) -> str:
    return vector.tobytes().hex()


def _vector(digits: str) -> Vector:
    """Return the vector in hexadecimal digits. Raise ValueError if it has another length."""
    return np.frombuffer(bytes.fromhex(digits), dtype=np.uint8).reshape(VECTOR_SIZE)


@dataclass(frozen=True, slots=True, eq=False)
class TemplateLabels:
    """What the templates of a host say about a page of n blocks."""

    page: Page
    vector: Vector
    outcome: Outcome
    number: int = 0
    """Number of the template; 0 if there is none."""
    main: Bools | None = None
    """The labels, shape (n,); None if no template is like the page."""
    probabilities: Floats | None = None
    """How sure the template is that each block is main, shape (n,); None if no template is like the page."""

    def example(self, main: Bools) -> bytes:
        """Return what the templates learn from the page. ``main`` are the final labels, which are the model's unless
        the template has answered.
        """
        sizes = self.page.blocks.chars()
        length = int(sizes[main].sum())
        if self.outcome.is_answer:
            return TemplateExample(self.number, self.outcome, -1, length).pack()
        agreed = -1.0 if self.main is None else agreement(self.page, main, self.main)
        paths, texts = _places(self.page, sizes, main)
        return TemplateExample(self.number, self.outcome, agreed, length, self.vector, paths, texts).pack()


@dataclass(frozen=True, slots=True, eq=False)
class TemplateExample:
    """What a template learns from one page."""

    number: int
    """Number of the template that the page is like; 0 if there was none."""
    outcome: Outcome
    agreed: float
    """Agreement of the template's labels and the model's; negative if they were not compared."""
    length: int
    """Number of characters of main content."""
    vector: Vector = field(default_factory=lambda: np.zeros(VECTOR_SIZE, dtype=np.uint8))
    paths: list[tuple[int, str, float, bool]] = field(default_factory=list)
    """For each path, from the root down: the number of the one above it (-1 for none), the tag and classes of its last
    element, the share of main text in it, and whether it is the innermost box around a block."""
    texts: list[tuple[int, str, bool]] = field(default_factory=list)
    """Blocks: the number of the path, the text, and whether it is main."""

    def pack(self) -> bytes:
        """Return the example as bytes, without places and texts if it would be larger than :data:`LARGEST_UNPACKED`."""
        facts = (self.number, self.outcome.value, self.agreed, self.length, self.paths, self.texts, _hex(self.vector))
        data = json.dumps(facts, separators=(",", ":")).encode()
        return zlib.compress(data, 1) if len(data) <= LARGEST_UNPACKED else replace(self, paths=[], texts=[]).pack()


def read_example(data: bytes) -> TemplateExample:
    """Return the example in the result of :meth:`TemplateLabels.example`. Raise ValueError for other data."""
    try:
        number, outcome, agreed, length, paths, texts, vector = json.loads(
            zlib.decompressobj().decompress(data, LARGEST_UNPACKED)
        )
        paths = [(int(above), str(step), float(share), bool(holds)) for above, step, share, holds in paths]
        texts = [(int(at), str(text), bool(main)) for at, text, main in texts]
        found = TemplateExample(
            int(number), Outcome(outcome), float(agreed), int(length), _vector(vector), paths, texts
        )
    except (TypeError, OverflowError, RecursionError, zlib.error) as error:
        raise ValueError(f"expected the example of a page ({error})") from None
    if (
        len(paths) > MOST_PATHS
        or len(texts) > EXAMPLE_TEXTS
        or not all(-1 <= above < i for i, (above, *_) in enumerate(paths))
        or not all(0 <= at < len(paths) for at, _, _ in texts)
    ):
        raise ValueError(f"expected the example of a page (got {len(data):,} bytes)")
    return found


def agreement(page: Page, one: Bools, other: Bools) -> float:
    """Return the least of the F1 of two labellings of a page in its characters, tables, lists, code and images.

    Structures that neither keeps do not count, so a short table that one loses is not outweighed by a long text.
    """
    blocks = page.blocks
    pairs: list[tuple[npt.NDArray[np.number[Any]], Bools, Bools]]
    pairs = [(blocks.chars(), one, other), (blocks.images, one, other)]
    for tags in STRUCTURES.values():
        nodes = np.flatnonzero(np.isin(page.tree.tag, tags))
        pairs.append((np.ones(len(nodes)), _kept(page, nodes, one), _kept(page, nodes, other)))
    wholes = [(size[a & b].sum(), size[a].sum() + size[b].sum()) for size, a, b in pairs]
    return min((float(2 * both / whole) for both, whole in wholes if whole), default=1.0)


def _kept(page: Page, nodes: npt.NDArray[np.intp], main: Bools) -> Bools:
    """Return of which nodes at least half of the text is main."""
    sizes, tree = page.blocks.chars(), page.tree
    of_all, of_main = (np.concatenate(([0], np.cumsum(values))) for values in (sizes, sizes * main))
    whole, part = (sums[tree.block_end[nodes]] - sums[tree.block_start[nodes]] for sums in (of_all, of_main))
    kept: Bools = (whole > 0) & (2 * part >= whole)
    return kept


def _leaves_out(page: Page, main: Bools) -> bool:
    """Return True if a table or code with text, outside of margins, is left out."""
    tree = page.tree
    nodes = np.flatnonzero(np.isin(tree.tag, STRUCTURES["table"] + STRUCTURES["code"]) & ((tree.flags & MARGINS) == 0))
    whole = _kept(page, nodes, np.ones(len(main), dtype=np.bool_))
    return bool((whole & ~_kept(page, nodes, main)).any())


def template_labels(page: Page, templates: Sequence[TemplateRules]) -> TemplateLabels:
    """Return what a template says about a page: of those that are like the page, the one that decides about most of its
    text. On a share of the pages it does not answer, so that the model can check it.
    """
    vector, sizes = layout(page), page.blocks.chars()
    like = [one for one in templates if not one.centroid.any() or alike(vector, one.centroid) >= ALIKE]
    found = [(one, *applied(page, one.rules.of(page.url))) for one in like]
    if not found:
        return TemplateLabels(page, vector, Outcome.NEW)
    best, p, sure = max(found, key=lambda one: (int(sizes[one[2]].sum()), alike(vector, one[0].centroid)))
    p = _with_headings(page, p, sure)
    main = p > 0.5
    length = int(sizes[main].sum())
    outcome = Outcome.ANSWERED
    if sizes[sure].sum() < COVERED * sizes.sum():
        outcome = Outcome.UNCOVERED
    elif not max(1.0, best.shortest / LENGTH_FACTOR) <= length <= LENGTH_FACTOR * best.longest:
        outcome = Outcome.LENGTH
    elif not best.ready:
        outcome = Outcome.LEARNING
    elif is_audited(page.url, DOUBTED if _leaves_out(page, main) else AUDITED):
        outcome = Outcome.AUDIT
    return TemplateLabels(page, vector, outcome, best.number, main, p)


PROBABILITIES = {WHOLE: 0.95, KEEP: 0.95, MODEL: 0.5, DROP: 0.05}
"""How likely text is main content of which a template says that, in the order in which the kinds count."""


def applied(page: Page, rules: Sequence[SiteRule]) -> tuple[Floats, Bools]:
    """Return how likely each block is main according to rules, and whether they decide about it: shapes (n,).

    Of nested elements, the innermost one counts. Rules do not decide about a box that none of them names in an element
    that is kept, because a new box can hold anything.
    """
    tree = page.tree
    numbers = {node: i for i, node in enumerate(tree.nodes)}
    kinds: dict[int, str] = {}
    for kind in PROBABILITIES:
        for rule in rules:
            if rule.kind == kind:
                with suppress(SelectorError):  # a name on the page that cannot be in a selector
                    kinds |= dict.fromkeys(find(rule.selector, numbers), kind)
    whole = WHOLE in kinds.values()
    p = np.full(len(tree.nodes), PROBABILITIES[DROP if whole else MODEL], dtype=np.float32)
    sure = np.full(len(tree.nodes), whole)
    boxes = (i for i, node in enumerate(tree.nodes) if is_box(str(node.tag)))
    for node in sorted({*kinds, *boxes}):
        inside = slice(node, int(tree.end[node]))
        if node in kinds:
            p[inside], sure[inside] = PROBABILITIES[kinds[node]], kinds[node] != MODEL
        elif p[node] > 0.5 and not whole:
            sure[inside] = False
    at = _places_of(page)
    return p[at], sure[at]


def _with_headings(page: Page, p: Floats, sure: Bools) -> Floats:
    """Return the probabilities with those of the next block for headings whose place does not decide.

    Models often differ on headings from page to page. A heading goes with the text below it.
    """
    heading = (page.tree.flags[page.blocks.context] & int(Flag.HEADING)) != 0
    found: Floats = p.copy()
    for i in np.flatnonzero(heading[:-1] & ~sure[:-1])[::-1]:
        found[i] = found[i + 1]
    return found


def _places(
    page: Page, sizes: npt.NDArray[np.int64], main: Bools
) -> tuple[list[tuple[int, str, float, bool]], list[tuple[int, str, bool]]]:
    """Return the paths to the blocks of a page with the share of main text in each, and the texts of the blocks."""
    tree = page.tree
    of_each, paths = path_of_each(page)
    at = [of_each[node] for node in _places_of(page).tolist()]
    boxes: list[int] = []
    for i, (above, step) in enumerate(paths):
        boxes.append(i if is_box(step) or above < 0 else boxes[above])
    own = {boxes[i] for i in at}
    of_all, of_main = (np.concatenate(([0], np.cumsum(values))) for values in (sizes, sizes * main))
    whole, part = (
        np.bincount(of_each, weights=sums[tree.block_end] - sums[tree.block_start], minlength=len(paths))
        for sums in (of_all, of_main)
    )
    kept = np.flatnonzero(whole > 0)[:MOST_PATHS].tolist()
    place = {old: new for new, old in enumerate(kept)}
    shares = (part / np.maximum(whole, 1)).round(3).tolist()
    found = [(place.get(paths[i][0], -1), paths[i][1], shares[i], i in own) for i in kept]
    texts = [
        (place[i], " ".join(text.split()), said)
        for i, text, said in zip(at, page.blocks.text, main.tolist(), strict=True)
        if i in place and len(text) <= LONGEST_TEXT
    ]
    return found, texts[:EXAMPLE_TEXTS]


def _places_of(page: Page) -> npt.NDArray[np.int32]:
    """Return the innermost node around the beginning of each block that holds all of a block."""
    tree, blocks = page.tree, page.blocks
    holds = tree.block_end[blocks.leaf] > tree.block_start[blocks.leaf]
    at: npt.NDArray[np.int32] = np.where(holds, blocks.leaf, blocks.context)
    return at


# ---------------------------------------------------------------------- what templates learn
def rules_of(examples: Sequence[TemplateExample], host: str, least: int = LEAST_PAGES) -> Rules:
    """Return rules for a host, made of the places that at least ``least`` pages have, and of the texts that are in the
    same place of several pages.
    """
    places: dict[Steps, list[float]] = defaultdict(list)
    texts: dict[tuple[Steps, str], set[tuple[int, bool]]] = defaultdict(set)
    own: set[Steps] = set()
    for number, example in enumerate(examples):
        paths: list[Steps] = []
        for above, step, share, holds in example.paths:
            paths.append((*(paths[above] if above >= 0 else ()), step))
            places[paths[-1]].append(share)
            own.update(paths[-1:] if holds else ())
        for at, text, main in example.texts:
            texts[paths[at], text].add((number, main))
    most = sorted(places.items(), key=lambda place: -len(place[1]))[:MOST_PATHS]  # an inner path is on fewer pages
    said = {path: _kind(shares) if len(shares) >= least else "" for path, shares in most}
    found = distilled(said, own, MOST_RULES)
    for (path, text), pages in texts.items():
        kinds = {KEEP if main else DROP for _, main in pages}
        selector = of_text(path[-1], text)
        if len(pages) >= LEAST_PAGES and len(kinds) == 1 and said.get(path) not in kinds and selector is not None:
            found[kinds.pop(), selector] = None
    return Rules(SiteRule(host, kind, selector) for kind, selector in found) if len(found) <= MOST_RULES else Rules()


def _kind(shares: Sequence[float]) -> str:
    mean = sum(shares) / len(shares)
    return KEEP if mean >= PURE else DROP if mean <= 1 - PURE else MODEL


@dataclass(slots=True, eq=False)
class Template:
    """A template, and the pages from which it has learnt or a file with its rules."""

    number: int
    url: str = ""
    """URL of its first page."""
    checks: tuple[float, ...] = ()
    """F1 in the last :data:`CHECKS` checks, the latest one last."""
    examples: list[bytes] = field(default_factory=list)
    vectors: list[Vector] = field(default_factory=list)
    from_file: TemplateRules | None = None
    """The rules, if they are from a file. The template then learns no others."""

    @property
    def ready(self) -> bool:
        """True if the template answers."""
        return len(self.checks) >= CHECKS and min(self.checks, default=1.0) >= AGREED

    @property
    def centroid(self) -> Floats:
        """The mean of the vectors of its pages."""
        mean: Floats = np.mean(self.vectors, axis=0, dtype=np.float32)
        return mean

    def rules(self, host: str) -> TemplateRules:
        """Return the rules of the template, to be sent with a document."""
        if self.from_file is not None:
            return replace(self.from_file, ready=self.ready)
        examples = [read_example(one) for one in self.examples]
        lengths = [one.length for one in examples]
        centroid = np.rint(self.centroid).astype(np.uint8)
        return TemplateRules(self.number, self.ready, min(lengths), max(lengths), rules_of(examples, host), centroid)

    def holds(self, example: TemplateExample) -> bool:
        """Record a check. Return False if the template is so wrong that it has to be forgotten."""
        if example.outcome not in (Outcome.LEARNING, Outcome.AUDIT):
            return True
        was_ready = self.ready
        self.checks = (*self.checks, example.agreed)[-CHECKS:]
        return not was_ready or example.agreed >= FAILED

    def learn(self, data: bytes, example: TemplateExample) -> None:
        """Learn from a page."""
        self.examples = [*self.examples, data][-EXAMPLES:]
        self.vectors = [*self.vectors, example.vector][-EXAMPLES:]


class Templates:
    """The templates of hosts, for one thread at a time.

    Their size is limited to :data:`BYTES_PER_HOST` for each of :data:`MOST_HOSTS` hosts. A template answers if it has
    agreed with the model on the last pages on which both were asked. It is forgotten when it is wrong in an audit.
    """

    def __init__(self, most_hosts: int = MOST_HOSTS, folder: Path | None = None) -> None:
        """``folder`` holds the files of :func:`write_rules`. The templates are then those in it, and no others."""
        self._hosts: OrderedDict[str, list[Template]] = OrderedDict()
        self._packed: dict[str, bytes] = {}
        self._most, self._folder = most_hosts, folder

    def __len__(self) -> int:
        """Return the number of hosts."""
        return len(self._hosts)

    def __iter__(self) -> Iterator[tuple[str, list[Template]]]:
        """Yield the hosts with their templates, the most recently seen one last."""
        yield from self._hosts.items()

    def rules(self, url: str) -> bytes:
        """Return the rules of the templates of a page's host, for :func:`template_labels`. Raise RuleError for a
        file that cannot be read.
        """
        name = host_of(url)
        if self._folder is not None and name and name not in self._hosts:
            self.put(name, read_templates(self._folder, name))
        if name not in self._packed:
            templates = self._hosts.get(name)
            if not templates:
                return b""
            self._packed[name] = pack_rules([one.rules(name) for one in templates])
        return self._packed[name]

    def learn(self, url: str, data: bytes) -> int:
        """Learn from a page, and return the number of templates that are forgotten because of it.

        Raise ValueError if ``data`` is not what :meth:`.TemplateLabels.example` returns.
        """
        example, name = read_example(data), host_of(url)
        if not name:
            return 0
        own = list(self._hosts.get(name, ()))
        number = max((one.number for one in own), default=0) % 0xFFFF + 1  # of a new template
        found = _template_of(own, example)
        dropped = found is not None and example.number == found.number and not found.holds(example)
        if found is not None:  # it is now the most recently seen one
            own.remove(found)
        if self._folder is not None:
            found = None if dropped else found
        elif example.paths and not example.outcome.is_answer and len(data) <= LARGEST_EXAMPLE:
            if found is None or dropped:
                found, own = Template(number, url), _with_room(own)
            found.learn(data, example)
        if found is not None:
            own.append(found)
        self.put(name, own, same=example.outcome.is_answer)
        return int(dropped)

    def put(self, name: str, templates: list[Template], *, same: bool = False) -> None:
        """Set the templates of a host, and make it the most recently seen one. ``same`` says that their rules have not
        changed.
        """
        if not same:
            self._packed.pop(name, None)
        self._hosts[name] = templates
        self._hosts.move_to_end(name)
        while len(self._hosts) > self._most:
            self._packed.pop(self._hosts.popitem(last=False)[0], None)


# ---------------------------------------------------------------------- files
def write_rules(folder: Path, name: str, templates: Sequence[Template], about: str) -> int:
    """Write a file for each template of a host that answers, for people to read and to edit, and return the number of
    files. Raise OSError if that fails.
    """
    count = 0
    for one in templates:
        found = one.rules(name) if one.ready else None
        if found is not None and (usable := usable_rules(found.rules)):
            count += 1
            text = to_toml(usable, on_one_line(f"Pages like {one.url}, {about}"), (found.shortest, found.longest))
            replace_file(_file(folder, name, count), text)
    return count


def to_toml(rules: Iterable[SiteRule], about: str, chars: Sequence[int] = ()) -> str:
    """Return rules of one pattern as a file for ``DRIPPER_RULES``, below a comment of one line."""
    lines, selectors = [f"# {about}"], defaultdict(list)
    for rule in rules:
        lines += [] if lines[1:] else [f"[{to_json(rule.pattern)}]"]
        selectors[rule.kind].append(rule.selector)
    lines += [f"{CHARS} = {list(chars)}"] if chars else []
    for kind, own in selectors.items():
        lines += [f"{kind} = [", *(f"    {to_json(selector)}," for selector in own), "]"]
    return "\n".join(lines) + "\n"


def read_rules_file(path: Path) -> tuple[Rules, tuple[int, int]]:
    """Return the rules in the file of a template, and the fewest and most characters of its pages (:data:`CHARS`).

    Raise :exc:`RuleError` if one of them is wrong.
    """
    rules, found = read_rules(path), loaded(path)
    chars = next((value[CHARS] for value in found.values() if CHARS in value), [1, LARGEST_FILE])
    if not isinstance(chars, list) or len(chars) != 2 or not all(type(one) is int and one >= 0 for one in chars):
        raise RuleError(f"{CHARS} as two numbers of characters, in {str(path)[:200]}")
    return rules, (chars[0], chars[1])


def _file(folder: Path, name: str, number: int) -> Path:
    return folder / f"{portable(name[:LONGEST_FILE_NAME])}.{number}.toml"


def usable_rules(rules: Rules) -> Rules:
    """Return the rules that can be read again from a file: names on pages may have any characters."""
    found: list[SiteRule] = []
    for rule in rules:
        with suppress(RuleError):
            found += read_rules([rule])
    return Rules(found)


def read_templates(folder: Path, name: str) -> list[Template]:
    """Return the templates of a host in the files of a folder. Raise RuleError for a file that cannot be used."""
    templates = []
    for number in range(1, MOST_TEMPLATES + 1):
        if os.path.isfile(path := _file(folder, name, number)):  # False for a name that no file can have
            rules, (shortest, longest) = read_rules_file(path)
            found = TemplateRules(number, True, shortest, longest, rules, np.zeros(VECTOR_SIZE, dtype=np.uint8))
            templates.append(Template(number, checks=(1.0,) * CHECKS, from_file=found))
    return templates


def _with_room(own: list[Template]) -> list[Template]:
    """Return the templates of a host. If it has the maximum number, remove one to make room."""
    if len(own) < MOST_TEMPLATES:
        return own
    out = next((one for one in own if not one.ready), own[0])
    return [one for one in own if one is not out]


def _template_of(own: list[Template], example: TemplateExample) -> Template | None:
    """Return the template of a page, or None if the page is the first of its kind."""
    for one in own:
        if one.number == example.number:
            return one
    if example.outcome.is_answer:
        return None
    # There was no template when the page was sent, but there may be one by now.
    best = max(own, key=lambda one: alike(example.vector, one.centroid), default=None)
    return best if best is not None and alike(example.vector, best.centroid) >= ALIKE else None


def is_audited(url: str, share: float = AUDITED) -> bool:
    """Return True for a share of all URLs. It only depends on the URL, so the order of pages does not matter."""
    data = blake2b(url.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(data, "big") < share * 2**32


BOXES = frozenset(
    "html body div section article aside nav header footer main form fieldset details summary dialog".split()
)
"""Elements with which a theme divides a page, and not a writer a text. Custom elements are such boxes as well."""
LONGEST_PATH = 32
"""Maximum number of elements in a path. Deeper elements are within the last of them."""
_NAMED = BOXES - {"html", "body", "div", "section", "form", "fieldset", "details", "summary"}
"""Tags that say by themselves which part of a page they are."""
_FLAT = frozenset("p h1 h2 h3 h4 h5 h6".split())
"""Tags of elements that are not in one another, because parsers end the first where the next begins."""
MOST_INSIDE = 5
"""Number of elements in an element with which it is not compared with a text."""
_escaped = partial(re.compile(r"^-|[^\w-]").sub, r"\\\g<0>")


def path_of_each(page: Page) -> tuple[list[int], list[tuple[int, str]]]:
    """Return the number of the path of each node, and each path: the number of the one above it (-1 for none), and the
    tag and the classes of its last element.
    """
    tree = page.tree
    steps: dict[int, str] = {}
    numbers: dict[tuple[int, str], int] = {}
    paths: list[tuple[int, str]] = []
    of_each: list[int] = []
    parents, depths = tree.parent.tolist(), tree.depth.tolist()
    for node, own in enumerate(tree.tag_class.tolist()):
        above = of_each[parents[node]] if parents[node] >= 0 else -1
        if depths[node] >= LONGEST_PATH:
            of_each.append(above)
            continue
        if own not in steps:
            steps[own] = name_of(tree.nodes[node]).decode("utf-8", "replace").strip()
        key = above, steps[own]
        if key not in numbers:
            numbers[key] = len(paths)
            paths.append(key)
        of_each.append(numbers[key])
    return of_each, paths


def is_box(step: str) -> bool:
    """Return True if the last element of a path is a box."""
    tag = step.partition(" ")[0]
    return tag in BOXES or "-" in tag


Steps = tuple[str, ...]
"""The tags and classes of the elements from the root to a place."""


def distilled(said: Mapping[Steps, str], own: Container[Steps], most: int) -> dict[tuple[str, str], None]:
    """Return the rules of places as kinds and selectors, given what happens to each place, from the root down.

    A place has the label of the one above it, unless a rule says something else. A box that is kept has a rule if it is
    in ``own``, which has the boxes with text of their own: one that is new might hold anything.
    """
    places: dict[str, list[Steps]] = defaultdict(list)
    for path in said:
        places[_tag(path)].append(path)
    rules: dict[tuple[str, str], None] = {}
    held: dict[Steps, str] = {}
    for path, kind in said.items():
        held[path] = above = held.get(path[:-1], MODEL)
        kept_box = kind == KEEP and is_box(path[-1])
        if kind and (path in own if kept_box else kind != above):
            held[path] = kind
            others = [other for other in places[_tag(path)] if said[other] != kind]
            rules[kind, shortest(path, others)] = None
            if len(rules) > most:
                break
    return rules


def shortest(path: Steps, others: Sequence[Steps]) -> str:
    """Return the shortest selector of a path that selects none of the others, and has a name in it."""
    for size in range(1, len(path) + 1):
        part = path[-size:]
        others = [other for other in others if len(other) >= size and _selects(part[0], other[-size])]
        if not others and any(_says_something(step) for step in part):
            break
    unwanted: dict[int, set[str]] = defaultdict(set)
    for other in others:
        for i in range(1, min(len(path), len(other)) + 1):
            more = sorted(_classes(other[-i]) - _classes(path[-i]))
            if more:
                unwanted[i].add(more[0])
                break
    return " > ".join(_css(step, unwanted[len(part) - i]) for i, step in enumerate(part))


def _selects(step: str, other: str) -> bool:
    return _tag((step,)) == _tag((other,)) and _classes(step) <= _classes(other)


def _tag(path: Steps) -> str:
    return path[-1].partition(" ")[0]


@lru_cache(maxsize=10_000)
def _classes(step: str) -> frozenset[str]:
    return frozenset(step.split(" ")[1:])


def _says_something(step: str) -> bool:
    return " " in step or step in _NAMED or "-" in step


def _css(step: str, unwanted: Iterable[str]) -> str:
    tag, *classes = map(_escaped, step.split(" "))
    without = "".join(f":not(.{_escaped(name)})" for name in sorted(unwanted))
    return ".".join([tag, *classes]) + without


def of_text(step: str, text: str) -> str | None:
    """Return XPath for the elements that have the tag and the classes of a step and only a text, or None if there is
    none.

    The text of nested elements takes quadratic time, so elements with many others inside are left out.
    """
    if '"' in text and "'" in text:
        return None
    quote = '"' if "'" in text else "'"
    tag, *classes = step.split(" ")
    has = "".join(f"[contains(concat(' ', @class, ' '), ' {name} ')]" for name in classes if "'" not in name)
    few = "" if tag in _FLAT else f"[not(descendant::*[{MOST_INSIDE}])]"
    return f"//{tag}{has}{few}[normalize-space()={quote}{text}{quote}]"
