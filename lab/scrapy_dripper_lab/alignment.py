"""Align the blocks of a page with its ground truth, to get the labels for training the tagger.

The ground truth is plain text without positions, so every block is searched in it. Pages repeat text in menus, teasers
and copies for small screens. So blocks are first matched as a chain that has the same order in the page and in the
ground truth. The remaining blocks are then placed out of order, and finally by their words alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_dripper.learning.metrics import TITLE_SHARE, is_title
from scrapy_dripper.page.page import Flag, Page

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

MAIN_COVERAGE = 0.5
"""A block is main if the ground truth holds at least this share of its words."""
DUPLICATE_WEIGHT = 0.1
"""Weight of a block that is not main while another block with the same words is."""

# Scripts without spaces between words: kana, Han, Thai, Lao, Burmese and Khmer.
_UNSPACED = (
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u1000-\u102a\u103f\u1050-\u1055"
    "\u1780-\u17b3\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")

_GRAM = 3  # longer blocks are found by their 3-grams, shorter ones by all their words
_MAX_HITS = 60  # places to consider for a 3-gram, or for a short block
_MAX_RUNS = 12  # places to consider for a longer block
_DIAGONAL_GAP = 8  # words that may be missing or added between two parts of a run
_NEAR_CHAIN = 6  # maximum distance from the chain, in blocks, of a short block placed out of order
_NEAR_BAG = 2  # the same for a block placed by its words alone
_BAG_WORDS = 6  # a block with at least this many words may be anywhere
_CONTINUES = 0.8  # bonus for starting exactly where a recent block ended
_PASSES = 4  # several passes, because a block placed out of order allows its neighbours to be placed


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """The labels of a page of n blocks."""

    main: Bools
    """True if the block is in the ground truth."""
    coverage: Floats
    """Share of the block's words that were found in the ground truth, or 0 if the block was not placed."""
    duplicate: Bools
    """True if the block is not main but another block with the same words is. Either could have been chosen."""
    words: Longs
    """Number of words of the block. Each Han or kana character counts as a word."""

    @property
    def weight(self) -> Floats:
        """Weight of each label: 1, or :data:`DUPLICATE_WEIGHT` for a duplicate."""
        return np.where(self.duplicate, DUPLICATE_WEIGHT, 1.0)


def tokens(text: str) -> list[str]:
    """Return the lower-case words of a text. Each character of a script without spaces is a word."""
    return _TOKEN.findall(text.lower())


def align(block_texts: Sequence[str], truth: str) -> Alignment:
    """Return which blocks, given in document order, are in the ground truth.

    The result only depends on words, and not on case, white space or punctuation.
    """
    words = [tokens(text) for text in block_texts]
    match = _Match(words, tokens(truth))
    if len(match.truth):
        match.claim_chain()
        match.claim_leftovers()
        match.claim_by_words()
    coverage = match.found / np.maximum(match.sizes, 1)
    main = coverage >= MAIN_COVERAGE
    chosen = {tuple(block) for block, is_main in zip(words, main, strict=True) if is_main}
    twice = np.array([tuple(block) in chosen for block in words], dtype=np.bool_) & ~main
    return Alignment(main=main, coverage=coverage, duplicate=twice, words=match.sizes)


class _Run(NamedTuple):
    """A candidate place of a block in the ground truth. ``matched`` of its words are in ``start:end``."""

    block: int
    start: int
    end: int
    matched: int
    hits: slice


class _Hits(NamedTuple):
    """Columns of matches: ``size`` words from word ``at`` of a block equal those from ``place`` of the ground truth."""

    block: Longs
    at: Longs
    place: Longs
    size: Longs

    def take(self, which: Longs | slice) -> _Hits:
        return _Hits(*(column[which] for column in self))

    def pairs(self, which: slice) -> list[tuple[int, int, int]]:
        """Return ``(at, place, size)`` of some hits."""
        columns = (self.at[which], self.place[which], self.size[which])
        return list(zip(*(column.tolist() for column in columns), strict=True))


class _Match:
    """The state of an alignment: the blocks placed so far, and the words of the ground truth that they claim."""

    def __init__(self, blocks: list[list[str]], truth: list[str]) -> None:
        vocabulary = {word: i for i, word in enumerate(dict.fromkeys(truth))}
        self.vocabulary = len(vocabulary)
        self.truth = np.array([vocabulary[word] for word in truth], dtype=np.int64)
        self.blocks = [np.array([vocabulary.get(w, -1) for w in block], dtype=np.int64) for block in blocks]
        self.sizes = np.array([len(block) for block in blocks], dtype=np.int64)
        self.found = np.zeros(len(blocks), dtype=np.int64)
        self.free = np.ones(len(truth), dtype=np.bool_)
        self.hits = self._find_hits() if blocks else _Hits(*np.zeros((4, 0), dtype=np.int64))
        self.runs = self._find_runs()

    # ------------------------------------------------------------------ candidate places
    def _find_hits(self) -> _Hits:
        flat = np.concatenate(self.blocks)
        block = np.repeat(np.arange(len(self.blocks)), self.sizes)
        size = self.sizes[block]
        at = np.arange(len(flat)) - (np.cumsum(self.sizes) - self.sizes)[block]
        parts = []
        for n in range(1, _GRAM + 1):
            first = np.flatnonzero((size == n) & (at == 0) if n < _GRAM else size - at >= n)
            known = np.arange(len(self.truth) - n + 1)
            which, place = _occurrences(
                _codes(flat, first, n, self.vocabulary), _codes(self.truth, known, n, self.vocabulary)
            )
            parts.append(_Hits(block[first[which]], at[first[which]], place, np.full(len(place), n)))
        return _Hits(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _find_runs(self) -> list[list[_Run]]:
        """Return the candidate places of each block, those with the most words first."""
        runs: list[list[_Run]] = [[] for _ in self.blocks]
        if not len(self.hits.block):
            return runs
        diagonal = self.hits.place - self.hits.at
        order = np.lexsort((self.hits.at, diagonal, self.hits.block))
        self.hits = self.hits.take(order)
        first, last = _groups(self.hits.block, diagonal[order], self.sizes[self.hits.block])
        index, run = _spread(first, last)
        hits = self.hits.take(index)
        bounds = np.cumsum(last - first) - (last - first)
        start = np.minimum.reduceat(hits.place, bounds)
        end = np.maximum.reduceat(hits.place + hits.size, bounds)
        matched = _covered(run, hits.at, hits.size, len(first))
        owner = self.hits.block[first]
        good = np.flatnonzero((matched >= 0.2 * self.sizes[owner]) | (matched >= 8))
        good = good[np.lexsort((start[good], -matched[good], owner[good]))]
        columns = (owner[good], start[good], end[good], matched[good], first[good], last[good])
        for b, s, e, m, i, j in zip(*(column.tolist() for column in columns), strict=True):
            if len(runs[b]) < (_MAX_HITS if self.sizes[b] <= _GRAM else _MAX_RUNS):
                runs[b].append(_Run(b, s, e, m, slice(i, j)))
        return runs

    # ------------------------------------------------------------------ placing
    def claim_chain(self) -> None:
        """Place the heaviest chain of blocks that have the same order in the page and in the ground truth."""
        chain = _heaviest_chain(self.runs, self.sizes.tolist())
        for run in chain:
            self._claim(run)
        for i, run in enumerate(chain):
            low = chain[i - 1].end if i else 0
            high = chain[i + 1].start if i + 1 < len(chain) else len(self.truth)
            self._complete(run, low, high)

    def claim_leftovers(self) -> None:
        """Place further blocks out of order, the longest first, in unclaimed parts of the ground truth."""
        for _ in range(_PASSES):
            placed = np.flatnonzero(self.found)
            again = False
            for block in sorted(np.flatnonzero(self.found == 0).tolist(), key=lambda b: -self.sizes[b]):
                size = self.sizes[block]
                if not self.runs[block] or (size <= _GRAM and _distance(placed, block) > _NEAR_CHAIN):
                    continue
                for run in self.runs[block]:
                    if run.matched >= 0.6 * size and self.free[run.start : run.end].mean() >= 0.6:
                        self._claim(run)
                        again = True
                        break
            if not again:
                return

    def claim_by_words(self) -> None:
        """Place blocks whose words are among the unclaimed ones of the ground truth, in any order."""
        bag = np.bincount(self.truth[self.free], minlength=self.vocabulary)
        placed = np.flatnonzero(self.found)
        for block in np.flatnonzero((self.found == 0) & (self.sizes > 0)).tolist():
            size = self.sizes[block]
            known = self.blocks[block][self.blocks[block] >= 0]
            if len(known) < 0.8 * size or (size < _BAG_WORDS and _distance(placed, block) > _NEAR_BAG):
                continue
            word, count = np.unique(known, return_counts=True)
            taken = np.minimum(count, bag[word])
            if taken.sum() >= 0.8 * size:
                bag[word] -= taken
                self.found[block] = taken.sum()

    def _claim(self, run: _Run) -> None:
        self.found[run.block] = run.matched
        for _, place, size in self.hits.pairs(run.hits):
            self.free[place : place + size] = False

    def _complete(self, run: _Run, low: int, high: int) -> None:
        """Claim further words of a placed block nearby in the ground truth, between the neighbouring blocks."""
        block = self.blocks[run.block]
        if run.matched == len(block):
            return
        rest = block >= 0
        for at, _, size in self.hits.pairs(run.hits):
            rest[at : at + size] = False
        wanted = Counter(block[rest].tolist())
        low, high = max(low, run.start - len(block)), min(high, run.end + len(block))
        for place in (low + np.flatnonzero(self.free[low:high])).tolist():
            word = int(self.truth[place])
            if wanted[word]:
                wanted[word] -= 1
                self.free[place] = False
                self.found[run.block] += 1


def _groups(block: Longs, diagonal: Longs, size: Longs) -> tuple[Longs, Longs]:
    """Group hits, sorted by block and diagonal, to runs. Return the first and one past the last hit of each run.

    Hits of a block on nearly the same diagonal belong to the same run, because an added or missing word shifts the
    rest. If rows repeat, many diagonals form a single run; its strongest parts are then returned as runs as well.
    """
    gap = np.where(size <= _GRAM, -1, np.clip(size // 3, 1, _DIAGONAL_GAP))
    new = np.ones(len(block), dtype=np.bool_)
    new[1:] = (np.diff(block) != 0) | (np.diff(diagonal) > gap[1:])
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(new))
    parts: list[tuple[int, int]] = []
    for i in np.flatnonzero(diagonal[last - 1] - diagonal[first] > 2 * np.maximum(gap[first], 1)).tolist():
        inside = diagonal[first[i] : last[i]]
        width = gap[first[i]]
        peaks, counts = np.unique(inside, return_counts=True)
        chosen: list[int] = []
        for peak in peaks[np.argsort(-counts, kind="stable")].tolist():
            if all(abs(peak - other) > width for other in chosen):
                chosen.append(peak)
                low, high = np.searchsorted(inside, [peak - width, peak + width + 1])
                parts.append((first[i] + low, first[i] + high))
                if len(chosen) == _MAX_RUNS:
                    break
    extra = np.array(parts, dtype=np.int64).reshape(-1, 2)
    return np.concatenate([first, extra[:, 0]]), np.concatenate([last, extra[:, 1]])


def _spread(first: Longs, last: Longs) -> tuple[Longs, Longs]:
    """Return the indices in all slices, concatenated, and the slice number of each index."""
    size = last - first
    owner = np.repeat(np.arange(len(first)), size)
    return np.arange(len(owner)) - np.repeat(np.cumsum(size) - size - first, size), owner


def _codes(flat: Longs, first: Longs, n: int, base: int) -> Longs:
    """Return a number for each n-gram of ``flat`` that starts at ``first``, or -1 if it has an unknown word."""
    code = np.zeros(len(first), dtype=np.int64)
    known = np.ones(len(first), dtype=np.bool_)
    for i in range(n):
        word = flat[first + i]
        known &= word >= 0
        code = code * base + word
    return np.where(known, code, -1)


def _occurrences(wanted: Longs, codes: Longs) -> tuple[Longs, Longs]:
    """Return the pairs (i, j) with ``wanted[i] == codes[j]``, at most :data:`_MAX_HITS` for each i.

    If there are more, the most likely ones are used: of 300 equal blocks on a page, the middle one is matched near the
    middle one of 500 in the ground truth.
    """
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    low = np.searchsorted(ordered, wanted, "left")
    count = np.searchsorted(ordered, wanted, "right") - low
    _, kind, equal = np.unique(wanted, return_inverse=True, return_counts=True)
    by_kind = np.argsort(kind, kind="stable")
    rank = np.empty_like(by_kind)
    rank[by_kind] = np.arange(len(kind)) - (np.cumsum(equal) - equal)[kind[by_kind]]
    middle = rank * count // np.maximum(equal[kind], 1)
    low += np.clip(middle - _MAX_HITS // 2, 0, np.maximum(count - _MAX_HITS, 0))
    count = np.minimum(count, _MAX_HITS)
    index, which = _spread(low, low + count)
    return which, order[index]


def _covered(run: Longs, at: Longs, size: Longs, n: int) -> Longs:
    """Return for each run how many different words of its block the hits cover."""
    order = np.lexsort((at, run))
    run, at, size = run[order], at[order], size[order]
    gain = size.copy()
    same = run[1:] == run[:-1]
    gain[:-1] = np.where(same, np.minimum(np.diff(at), size[:-1]), size[:-1])
    return np.bincount(run, weights=gain, minlength=n).astype(np.int64)


def _distance(anchors: Longs, block: int) -> int:
    """Return the distance to the nearest anchor, in blocks."""
    return int(np.abs(anchors - block).min()) if len(anchors) else 1 << 30


def _weight(run: _Run, size: int) -> float:
    if size <= 2:
        return 0.6 * size - 0.2
    missed = size - run.matched
    return run.matched - (0.5 * missed if run.matched < 0.6 * size else 0.0) - 0.3


def _heaviest_chain(runs: Iterable[Sequence[_Run]], sizes: Sequence[int]) -> list[_Run]:
    """Return the runs with the maximum total weight that neither cross nor overlap, at most one per block.

    A run gets a bonus if it starts exactly where one of the three previous blocks ended.
    """
    # The best chain for each end in the ground truth, kept only if it beats all chains with an earlier end.
    ends: list[int] = []
    scores: list[float] = []
    best: list[int] = []
    chain: list[tuple[_Run, int]] = []  # (run, index of the previous one or -1)
    recent: dict[int, tuple[int, float, int]] = {}  # end to (block, score, index) of the latest block
    for block, candidates in enumerate(runs):
        found = []
        for run in candidates:
            i = bisect_right(ends, run.start) - 1
            score, before = (scores[i], best[i]) if i >= 0 else (0.0, -1)
            last = recent.get(run.start)
            if last is not None and block - last[0] <= 3 and last[1] + _CONTINUES > score:
                score, before = last[1] + _CONTINUES, last[2]
            found.append((score + _weight(run, sizes[block]), run, before))
        for score, run, before in found:
            index = len(chain)
            chain.append((run, before))
            last = recent.get(run.end)
            if last is None or block - last[0] > 3 or last[1] <= score:
                recent[run.end] = (block, score, index)
            i = bisect_right(ends, run.end) - 1
            if i >= 0 and scores[i] >= score:
                continue
            low = bisect_left(ends, run.end)
            high = low
            while high < len(ends) and scores[high] <= score:
                high += 1
            ends[low:high], scores[low:high], best[low:high] = [run.end], [score], [index]
    picked = []
    index = best[-1] if best else -1
    while index >= 0:
        run, index = chain[index]
        picked.append(run)
    return picked[::-1]


SITE_TITLE_SHARE = 1 / 3
"""A heading with at least this share of ``<title>`` is the headline. The rest is the name of the site."""


def headlines(page: Page, title: str) -> list[int]:
    """Return the blocks that are headings with the words of the title.

    If the title is unknown, ``<title>`` is used, which may have other words in addition to the headline.
    """
    want = Counter(tokens(title or page.title or ""))
    found = []
    for i, text in enumerate(page.blocks.text):
        if page.tree.flags[page.blocks.context[i]] & Flag.HEADING:
            have = Counter(tokens(text))
            if is_title(have, want, TITLE_SHARE if title else SITE_TITLE_SHARE):
                found.append(i)
    return found
