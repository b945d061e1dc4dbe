"""What a template says about a page: the labels of its blocks, or the reason why the model has to label them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.sites.columns import HASH, Bools, Floats, Hashes, pack, unpack
from scrapy_dripper.sites.places import SIZE, Layout, Vector, alike, layout, places

Shares = npt.NDArray[np.uint8]
"""Shares of main text, from 0 to :data:`ALL`."""

ALL = 255
ALIKE = 0.7
"""Minimum cosine of a page and its template."""
PURE = 0.85
"""Minimum share of main text, or of other text, in a place with which the place decides about a block."""
COVERED = 0.95
"""Minimum share of a page's text about which the template must decide."""
LENGTH = 4.0
"""Maximum factor by which the main content may be longer than the longest, or shorter than the shortest, of the pages
from which the template was learnt.
"""
TEXT = np.uint64(1)
"""The bit of a hash that is 1 for texts and 0 for paths."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio (Fibonacci hashing)
MOST_PATHS = 512
"""Maximum number of paths in a lesson."""
MOST_TEXTS = 256
"""Maximum number of texts in a lesson."""


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
    def is_refusal(self) -> bool:
        """True if there is a template that does not fit the page."""
        return self in (Outcome.UNCOVERED, Outcome.LENGTH)

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
        texts, first = texts[:MOST_TEXTS], first[:MOST_TEXTS]
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
    if types != ["|u1", "<u8", "|u1"] or len(vector) != SIZE or len(shares) != n or n > MOST_PATHS + MOST_TEXTS:
        raise ValueError(f"expected the lesson of a page (got {len(data):,} bytes)")
    return found


def say(page: Page, known: Sequence[TemplateRules], *, audit: bool) -> Said:
    """Return what the template that is most like a page says about it. With ``audit``, the template does not answer, so
    that the model can check it.
    """
    own = layout(page)
    # The hashes of texts in one place begin with the same bits. A lesson takes the lowest hashes, which must not all be
    # of a few places.
    texts = places(page) * _SPREAD | TEXT
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
    elif not max(1.0, best.shortest / LENGTH) <= length <= LENGTH * best.longest:
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
    known, shares = _looked_up(own.paths & ~TEXT, rules)
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
    hashes, which = np.unique(own.paths[nodes] & ~TEXT, return_inverse=True)
    whole, part = (
        np.bincount(which, weights=sums[end] - sums[start], minlength=len(hashes)) for sums in (of_all, of_main)
    )
    shares = np.rint(ALL * part / np.maximum(whole, 1)).astype(np.uint8)
    hashes, shares = hashes[whole > 0], shares[whole > 0]
    return hashes[:MOST_PATHS], shares[:MOST_PATHS]


def _places_of(page: Page) -> npt.NDArray[np.int32]:
    """Return the innermost node around the beginning of each block that holds all of a block."""
    tree, blocks = page.tree, page.blocks
    holds = tree.block_end[blocks.leaf] > tree.block_start[blocks.leaf]
    at: npt.NDArray[np.int32] = np.where(holds, blocks.leaf, blocks.context)
    return at


def _sizes(page: Page) -> npt.NDArray[np.int64]:
    return np.fromiter(map(len, page.blocks.text), dtype=np.int64, count=len(page.blocks))
