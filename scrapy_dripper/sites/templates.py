"""The templates of hosts. A template is a cluster of pages with similar layouts, with the rules that it has learnt from
the model's labels. It labels the blocks of a page, or says why the model has to.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.sites.columns import (
    HASH,
    Bools,
    Floats,
    Hashes,
    MemoryFileError,
    Tally,
    pack,
    read_file,
    unpack,
    write_file,
)
from scrapy_dripper.sites.memory import LONGEST_HEAD, host_of, name_of, places

Vector = npt.NDArray[np.uint8]
Shares = npt.NDArray[np.uint8]
"""Shares of main text, from 0 to :data:`ALL`."""

ALL = 255
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
TEXT_BIT = np.uint64(1)
"""The bit of a hash that is 1 for texts and 0 for paths."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio (Fibonacci hashing)
LESSON_PATHS = 512
"""Maximum number of paths in a lesson."""
LESSON_TEXTS = 256
"""Maximum number of texts in a lesson."""
SIZE = 1_024
"""Length of the vector of a page. The names of elements at each depth, and the pairs of parent and child, are hashed
into this many slots and counted.
"""
DEPTH = 12
"""Maximum depth of the elements that are counted. Deeper elements belong to the content, which differs from page to
page.
"""

_BOXES = frozenset("div section article aside nav header footer main form fieldset details summary dialog".split())
_SCALE = 16.0
_UP, _DEPTH, _EDGE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_SHIFT = np.uint64(64 - SIZE.bit_length() + 1)
MOST_HOSTS = 256
"""Maximum number of hosts with templates. A new host replaces the least recently seen one."""
MOST_TEMPLATES = 12
"""Maximum number of templates of a host. A new one replaces the least recently seen one that does not answer. If all
answer, it replaces the least recently seen one. So single odd pages do not replace a template of many pages."""
MOST_RULES = 1_024
"""Maximum number of places and texts of a template. Those seen on the fewest pages are removed first, the oldest before
the others.
"""
KEPT_RULES = 768
"""Number of places and texts of a template that remain after a removal."""
BYTES_PER_HOST = MOST_TEMPLATES * (MOST_RULES * Tally.BYTES + 4 * SIZE)
"""Maximum size of the arrays of a host, in bytes."""
MOST_PAGES = 128
"""After this number of pages, all counts of a template are halved, so that it adapts to changes of the site."""
LEAST_PAGES = 2
"""Minimum number of pages on which a place or a text must have been seen to become a rule."""
CHECKS = 2
"""Number of checks in a row in which a template must agree with the model before it answers."""
AGREED = 0.98
"""Minimum F1, by characters, of the template's and the model's main text in a check, to count as agreement."""
FAILED = 0.8
"""If the F1 in an audit is below this value, the template is forgotten, and learnt again from scratch."""
AUDITED = 0.05
"""Share of pages on which the model is asked although the template could answer."""


# ---------------------------------------------------------------------- layouts
@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The layout of a page with m nodes."""

    paths: Hashes
    """Hash of the tags and classes on the path from the root to each node, shape (m,)."""
    levels: list[npt.NDArray[np.intp]]
    """The nodes at each depth, from the root down."""
    boxes: Bools
    """True for elements with which a theme divides a page, such as ``div``, and False for those that authors use. Shape
    (m,).
    """
    vector: Vector
    """Logarithms of the counts in each slot, shape (:data:`SIZE`,)."""


def layout(page: Page) -> Layout:
    """Return the layout of a page. Class names with digits are left out, because many of them identify a single
    page.
    """
    tree = page.tree
    _, first, which = np.unique(tree.signature, return_index=True, return_inverse=True)
    kinds = [tree.nodes[node] for node in first.tolist()]
    named = (blake2b(name_of(kind), digest_size=HASH.itemsize).digest() for kind in kinds)
    names = np.frombuffer(b"".join(named), dtype=HASH)[which]
    tags = [str(kind.tag) for kind in kinds]
    boxes = np.array([tag in _BOXES or "-" in tag for tag in tags], dtype=np.bool_)[which]  # or a custom element
    order = np.argsort(tree.depth, kind="stable")
    levels = np.split(order, np.flatnonzero(np.diff(tree.depth[order])) + 1)
    paths = names.copy()
    for nodes in levels[1:]:
        paths[nodes] = paths[tree.parent[nodes]] * _UP + names[nodes]
    high = np.flatnonzero(tree.depth <= DEPTH)
    inner = high[tree.parent[high] >= 0]
    at = names[high] + tree.depth[high].astype(np.uint64) * _DEPTH
    edges = names[tree.parent[inner]] * _EDGE + names[inner]
    slots = ((np.concatenate([at, edges]) * _UP) >> _SHIFT).astype(np.intp)
    counts = np.bincount(slots, minlength=SIZE)
    vector = np.where(counts > 0, _SCALE * (1 + np.log(np.maximum(counts, 1))), 0)
    return Layout(paths, levels, boxes, np.minimum(vector, 255).astype(np.uint8))


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

    @property
    def is_check(self) -> bool:
        """True if the labels of the template and those of the model can be compared."""
        return self in (Outcome.LEARNING, Outcome.AUDIT)


@dataclass(frozen=True, slots=True, eq=False)
class TemplateRules:
    """The rules of a template, in the form in which they are sent with a document."""

    number: int
    ready: bool
    shortest: int
    longest: int
    centroid: Vector
    hashes: Hashes
    """Sorted."""
    shares: Shares


def pack_rules(known: Sequence[TemplateRules]) -> bytes:
    """Return the rules of a host's templates as bytes."""
    rows = [[one.number, one.ready, one.shortest, one.longest] for one in known]
    return pack(rows, [column for one in known for column in (one.centroid, one.hashes, one.shares)])


def unpack_rules(data: bytes) -> list[TemplateRules]:
    """Return the rules of a host's templates; none for no data. Raise ValueError if the data are invalid."""
    rows, columns = unpack(data) if data else ([], [])
    try:
        return [
            TemplateRules(int(number), bool(ready), int(shortest), int(longest), *own)
            for (number, ready, shortest, longest), *own in zip(
                rows, columns[::3], columns[1::3], columns[2::3], strict=True
            )
        ]
    except TypeError as error:
        raise ValueError(f"expected rules of a template ({error})") from None


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What the templates of a host say about a page of n blocks."""

    page: Page
    layout: Layout
    texts: Hashes
    outcome: Outcome
    number: int = 0
    """Number of the template; 0 if there is none."""
    main: Bools | None = None
    """The labels, shape (n,); None if no template is like the page."""
    probabilities: Floats | None = None
    """Share of main text in the place of each block, shape (n,); None if no template is like the page."""

    def lesson(self, main: Bools) -> bytes:
        """Return what the templates learn from the page. ``main`` are the final labels, which are the model's unless
        the template has answered.
        """
        sizes = _sizes(self.page)
        length = int(sizes[main].sum())
        if self.outcome.is_answer:
            return Lesson(self.number, self.outcome, -1, length).pack()
        agreed = -1.0
        if self.main is not None:
            both = int(sizes[main].sum() + sizes[self.main].sum())
            agreed = 2 * int(sizes[main & self.main].sum()) / both if both else 1.0
        hashes, shares = _of_paths(self.page, self.layout, sizes, main)
        texts, first = np.unique(self.texts, return_index=True)
        texts, first = texts[:LESSON_TEXTS], first[:LESSON_TEXTS]
        said = np.where(main[first], ALL, 0).astype(np.uint8)
        hashes, shares = np.concatenate([hashes, texts]), np.concatenate([shares, said])
        return Lesson(self.number, self.outcome, agreed, length, self.layout.vector, hashes, shares).pack()


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What a template learns from one page."""

    number: int
    """Number of the template that the page is like; 0 if there was none."""
    outcome: Outcome
    agreed: float
    """F1 of the template's main text and the model's, by characters; negative if they were not compared."""
    length: int
    """Number of characters of main content."""
    vector: Vector = field(default_factory=lambda: np.zeros(SIZE, dtype=np.uint8))
    hashes: Hashes = field(default_factory=lambda: np.zeros(0, dtype=HASH))
    shares: Shares = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    def pack(self) -> bytes:
        """Return the lesson as bytes."""
        facts = [self.number, self.outcome.value, self.agreed, self.length]
        return pack(facts, [self.vector, self.hashes, self.shares])


def read_lesson(data: bytes) -> Lesson:
    """Return the lesson in the result of :meth:`Said.lesson`. Raise ValueError for other data."""
    try:
        (number, outcome, agreed, length), (vector, hashes, shares) = unpack(data)
        found = Lesson(int(number), Outcome(outcome), float(agreed), int(length), vector, hashes, shares)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"expected the lesson of a page ({error})") from None
    types = [column.dtype.str for column in (vector, hashes, shares)]
    n = len(hashes)
    if types != ["|u1", "<u8", "|u1"] or len(vector) != SIZE or len(shares) != n or n > LESSON_PATHS + LESSON_TEXTS:
        raise ValueError(f"expected the lesson of a page (got {len(data):,} bytes)")
    return found


def say(page: Page, known: Sequence[TemplateRules], *, audit: bool) -> Said:
    """Return what the template that is most like a page says about it. With ``audit``, the template does not answer, so
    that the model can check it.
    """
    own = layout(page)
    # The hashes of texts in one place begin with the same bits. A lesson takes the lowest hashes, which must not all be
    # of a few places.
    texts = places(page) * _SPREAD | TEXT_BIT
    best = max(known, key=lambda rules: alike(own.vector, rules.centroid), default=None)
    cosine = 0.0 if best is None else alike(own.vector, best.centroid)
    if best is None or cosine < ALIKE:
        return Said(page, own, texts, Outcome.NEW)
    p, sure = _labels(page, own, texts, best)
    p = _with_headings(page, p, sure)
    main = p > 0.5
    sizes = _sizes(page)
    length = int(sizes[main].sum())
    outcome = Outcome.ANSWERED
    if sizes[sure].sum() < COVERED * sizes.sum():
        outcome = Outcome.UNCOVERED
    elif not max(1.0, best.shortest / LENGTH_FACTOR) <= length <= LENGTH_FACTOR * best.longest:
        outcome = Outcome.LENGTH
    elif not best.ready:
        outcome = Outcome.LEARNING
    elif audit:
        outcome = Outcome.AUDIT
    return Said(page, own, texts, outcome, best.number, main, p)


def _labels(page: Page, own: Layout, texts: Hashes, rules: TemplateRules) -> tuple[Floats, Bools]:
    """Return the share of main text in the place of each block, and whether that is enough to decide.

    If a place is not known, its element has the share of the element around it. If the element is one that authors use,
    such as a table or a quotation, that decides as well. A box can hold anything, so the template does not decide about
    it.
    """
    tree = page.tree
    known, shares = _looked_up(own.paths & ~TEXT_BIT, rules)
    sure = known & _is_pure(shares)
    for nodes in own.levels[1:]:
        new = nodes[~known[nodes]]
        above = tree.parent[new]
        shares[new], sure[new] = shares[above], sure[above] & ~own.boxes[new]
    at = _places_of(page)
    p, certain = shares[at], sure[at]
    repeated, said = _looked_up(texts, rules)
    repeated &= _is_pure(said)
    return np.where(repeated, said, p), certain | repeated


def _with_headings(page: Page, p: Floats, sure: Bools) -> Floats:
    """Return the probabilities with those of the next block for headings whose place does not decide.

    Models often differ on headings from page to page. A heading goes with the text below it.
    """
    heading = (page.tree.flags[page.blocks.context] & int(Flag.HEADING)) != 0
    found: Floats = p.copy()
    for i in np.flatnonzero(heading[:-1] & ~sure[:-1])[::-1]:
        found[i] = found[i + 1]
    return found


def _looked_up(hashes: Hashes, rules: TemplateRules) -> tuple[Bools, Floats]:
    at = np.minimum(np.searchsorted(rules.hashes, hashes), max(0, len(rules.hashes) - 1))
    if not len(rules.hashes):
        return np.zeros(len(hashes), dtype=np.bool_), np.zeros(len(hashes), dtype=np.float32)
    known = rules.hashes[at] == hashes
    return known, np.where(known, rules.shares[at] / np.float32(ALL), np.float32(0)).astype(np.float32)


def _is_pure(shares: Floats) -> Bools:
    return np.asarray((shares >= PURE) | (shares <= 1 - PURE))


def _of_paths(page: Page, own: Layout, sizes: npt.NDArray[np.int64], main: Bools) -> tuple[Hashes, Shares]:
    """Return the paths to the blocks of a page and to the elements around them, with the share of main text in each."""
    tree = page.tree
    on = np.zeros(len(tree.parent), dtype=np.bool_)
    on[_places_of(page)] = True
    for nodes in reversed(own.levels[1:]):
        on[tree.parent[nodes[on[nodes]]]] = True
    nodes = np.flatnonzero(on)
    of_all, of_main = (np.concatenate(([0], np.cumsum(values))) for values in (sizes, sizes * main))
    start, end = tree.block_start[nodes], tree.block_end[nodes]
    hashes, which = np.unique(own.paths[nodes] & ~TEXT_BIT, return_inverse=True)
    whole, part = (
        np.bincount(which, weights=sums[end] - sums[start], minlength=len(hashes)) for sums in (of_all, of_main)
    )
    shares = np.rint(ALL * part / np.maximum(whole, 1)).astype(np.uint8)
    hashes, shares = hashes[whole > 0], shares[whole > 0]
    return hashes[:LESSON_PATHS], shares[:LESSON_PATHS]


def _places_of(page: Page) -> npt.NDArray[np.int32]:
    """Return the innermost node around the beginning of each block that holds all of a block."""
    tree, blocks = page.tree, page.blocks
    holds = tree.block_end[blocks.leaf] > tree.block_start[blocks.leaf]
    at: npt.NDArray[np.int32] = np.where(holds, blocks.leaf, blocks.context)
    return at


def _sizes(page: Page) -> npt.NDArray[np.int64]:
    return np.fromiter(map(len, page.blocks.text), dtype=np.int64, count=len(page.blocks))


# ---------------------------------------------------------------------- what templates learn
@dataclass(slots=True, eq=False)
class Template:
    """A template and what it has learnt."""

    number: int
    pages: int = 0
    """Number of pages that it has learnt from. It is halved together with the counts."""
    shortest: int = 0
    """Number of characters in the shortest main content of its pages."""
    longest: int = 0
    """Number of characters in the longest main content of its pages."""
    checks: tuple[float, ...] = ()
    """F1 in the last :data:`CHECKS` checks, the latest one last."""
    centroid: Floats = field(default_factory=lambda: np.zeros(SIZE, dtype=np.float32))
    tally: Tally = field(default_factory=Tally)
    """The places and texts. The sum of each is that of the shares of main text in it, and the time is ``pages``."""

    @property
    def ready(self) -> bool:
        """True if the template answers."""
        return len(self.checks) >= CHECKS and min(self.checks, default=1.0) >= AGREED

    def rules(self) -> TemplateRules:
        """Return the rules of the template, to be sent with a document."""
        known = self.tally.counts >= LEAST_PAGES
        shares = np.rint(self.tally.sums[known] / self.tally.counts[known]).astype(np.uint8)
        centroid = np.rint(self.centroid).astype(np.uint8)
        facts = self.number, self.ready, self.shortest, self.longest
        return TemplateRules(*facts, centroid, self.tally.hashes[known], shares)

    def holds(self, lesson: Lesson) -> bool:
        """Record a check. Return False if the template is so wrong that it has to be forgotten."""
        was_ready = self.ready
        if lesson.outcome.is_check:
            self.checks = (*self.checks, lesson.agreed)[-CHECKS:]
        return not (lesson.outcome.is_check and was_ready and lesson.agreed < FAILED)

    def learn(self, lesson: Lesson) -> None:
        """Learn from a page."""
        self.centroid += (lesson.vector - self.centroid) / (self.pages + 1)
        self.shortest = min(self.shortest, lesson.length) if self.pages else lesson.length
        self.longest = max(self.longest, lesson.length)
        self.pages += 1
        hashes, first = np.unique(lesson.hashes, return_index=True)
        self.tally.add(hashes, lesson.shares[first], self.pages)
        self.tally.limit(MOST_RULES, KEPT_RULES)
        if self.pages >= MOST_PAGES:
            self.pages //= 2
            self.tally.halve()
            self.tally.last -= np.minimum(self.tally.last, np.uint32(self.pages))


class Templates:
    """The templates of hosts, for one thread at a time.

    Their size is limited to :data:`BYTES_PER_HOST` for each of :data:`MOST_HOSTS` hosts. A template answers if it has
    agreed with the model on the last pages on which both were asked. It is forgotten when it is wrong in an audit.
    """

    def __init__(self, most_hosts: int = MOST_HOSTS) -> None:
        self._hosts: OrderedDict[str, list[Template]] = OrderedDict()
        self._packed: dict[str, bytes] = {}
        self._most = most_hosts

    def __len__(self) -> int:
        """Return the number of hosts."""
        return len(self._hosts)

    def __iter__(self) -> Iterator[tuple[str, list[Template]]]:
        """Yield the hosts with their templates, the most recently seen one last."""
        yield from self._hosts.items()

    def known(self, url: str) -> bytes:
        """Return the rules of the templates of a page's host, for :func:`~scrapy_dripper.sites.say`."""
        name = host_of(url)
        if name not in self._packed:
            templates = self._hosts.get(name)
            if not templates:
                return b""
            self._packed[name] = pack_rules([one.rules() for one in templates])
        return self._packed[name]

    def learn(self, url: str, data: bytes) -> int:
        """Learn from a page, and return the number of templates that are forgotten because of it.

        Raise ValueError if ``data`` is not what :meth:`.Said.lesson` returns.
        """
        lesson, name = read_lesson(data), host_of(url)
        if not name:
            return 0
        own = list(self._hosts.get(name, ()))
        number = max((one.number for one in own), default=0) % 0xFFFF + 1  # of a new template
        found = _of_lesson(own, lesson)
        dropped = found is not None and lesson.number == found.number and not found.holds(lesson)
        if found is not None:  # it is now the most recently seen one
            own.remove(found)
        if not lesson.outcome.is_answer:
            if found is None or dropped:
                found, own = Template(number), _with_room(own)
            found.learn(lesson)
        if found is not None:
            own.append(found)
        self.put(name, own, same=lesson.outcome.is_answer)
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


def write_templates(known: Templates, path: Path) -> None:
    """Write templates to a file, as :func:`~scrapy_dripper.sites.write` does."""
    rows = [
        [name, [[one.number, one.pages, one.shortest, one.longest, one.checks] for one in own]] for name, own in known
    ]
    columns = [column for _, own in known for one in own for column in (one.centroid, *one.tally.columns)]
    write_file(path, rows, columns)


def read_templates(path: Path) -> Templates:
    """Return the templates in a file, or none if there is no file. Raise MemoryFileError if the file cannot be used."""
    found = Templates()
    try:
        rows, columns = read_file(path, MOST_HOSTS * BYTES_PER_HOST + LONGEST_HEAD)
        left = iter(columns)
        for name, templates in rows:
            own = []
            for number, pages, shortest, longest, checks in templates:
                centroid, *tally = islice(left, 5)
                facts = int(number), int(pages), int(shortest), int(longest)
                own.append(Template(*facts, tuple(map(float, checks)), centroid, Tally(*tally)))
                if len(centroid) != SIZE or len(tally[0]) > MOST_RULES or len(checks) > CHECKS:
                    raise ValueError("a template exceeds a limit")
            if len(own) > MOST_TEMPLATES:
                raise ValueError("a host exceeds a limit")
            found.put(str(name), own)
    except MemoryFileError:
        raise
    except (ValueError, TypeError, IndexError) as error:
        raise MemoryFileError(f"{path} is not a file of templates of this version ({error})") from None
    return found


def _with_room(own: list[Template]) -> list[Template]:
    """Return the templates of a host. If it has the maximum number, remove one to make room."""
    if len(own) < MOST_TEMPLATES:
        return own
    out = next((one for one in own if not one.ready), own[0])
    return [one for one in own if one is not out]


def _of_lesson(own: list[Template], lesson: Lesson) -> Template | None:
    """Return the template of a page, or None if the page is the first of its kind."""
    for one in own:
        if one.number == lesson.number:
            return one
    if lesson.outcome.is_answer:
        return None
    # There was no template when the page was sent, but there may be one by now.
    best = max(own, key=lambda one: alike(lesson.vector, one.centroid), default=None)
    return best if best is not None and alike(lesson.vector, best.centroid) >= ALIKE else None


def is_audited(url: str) -> bool:
    """Return True for a share of :data:`AUDITED` of all URLs. It only depends on the URL, so the order of pages does
    not matter.
    """
    data = blake2b(url.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(data, "big") < AUDITED * 2**32
