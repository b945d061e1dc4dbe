"""Scores of block labels and of the DOM nodes below them, and the calibration of probabilities.

DOM nodes are counted as in Alarte and Silva, "Page-Level Main Content Extraction from Heterogeneous Webpages" (2020),
section 4. The nodes of a page are its elements and its texts that are not blank. If a subtree has main text and no
other text, all of its nodes are main (Definition 2.3). So an image is main if it stands within the main content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page import Page
from scrapy_dripper.workshop.dataset.metrics import PRF

BINS = 10
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BlockResult:
    """The labels and the ground truth of the n blocks of a page.

    The ground truth comes from :func:`~scrapy_dripper.workshop.dataset.alignment.align`.
    """

    main: tuple[bool, ...]
    truth: tuple[bool, ...]
    copies: tuple[bool, ...]
    """True if the block is not in the truth but another block with the same words is. Such blocks do not count."""
    words: tuple[int, ...]
    probabilities: tuple[float, ...] | None = None
    """None if there are only labels."""
    inferred: bool = False
    """True if ``main`` was inferred from the extracted text."""

    def prf(self) -> PRF:
        """Return precision, recall and F1 of main over the blocks that count; 1 if no block is main in either."""
        return block_prf(*self.counts())

    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of true positives, false positives and false negatives."""
        pairs = [(m, t) for m, t, copy in zip(self.main, self.truth, self.copies, strict=True) if not copy]
        return pairs.count((True, True)), pairs.count((True, False)), pairs.count((False, True))


@dataclass(frozen=True, slots=True)
class Reliability:
    """A reliability diagram: probabilities in equal-width bins, and the actual shares."""

    error: float
    """Expected calibration error: the weighted mean of abs(share - probability) over the bins; NaN without blocks."""
    weight: tuple[float, ...]
    """Number of blocks, or words, in each bin."""
    probability: tuple[float, ...]
    """Mean probability in each bin, or NaN if it is empty."""
    share: tuple[float, ...]
    """Share of each bin that is actually main, or NaN if it is empty."""


def block_prf(hits: int, wrong: int, missed: int) -> PRF:
    """Return precision, recall and F1 from counts. All are 1 if there is nothing to find and nothing was found."""
    if hits + wrong + missed == 0:
        return PRF(1.0, 1.0, 1.0)
    return PRF(hits / max(hits + wrong, 1), hits / max(hits + missed, 1), 2 * hits / (2 * hits + wrong + missed))


def reliability(probabilities: Floats, truth: Bools, weights: Floats | None = None, bins: int = BINS) -> Reliability:
    """Return the reliability of n probabilities in equal-width bins. The last bin includes 1."""
    weight = np.ones(len(probabilities)) if weights is None else weights
    place = np.minimum((probabilities * bins).astype(int), bins - 1)
    total, predicted, found = (
        np.bincount(place, column, minlength=bins) for column in (weight, weight * probabilities, weight * truth)
    )
    with np.errstate(invalid="ignore"):
        error = float(np.abs(found - predicted).sum() / total.sum()) if total.sum() else float("nan")
        columns = total, predicted / total, found / total
    return Reliability(error, *(tuple(column.tolist()) for column in columns))


def pooled(results: Sequence[BlockResult]) -> tuple[Floats, Bools, Floats]:
    """Return probability, truth and words of all blocks that count, over the pages with probabilities."""
    pages = [result for result in results if result.probabilities is not None]
    keep = _column([p.copies for p in pages], np.bool_) == 0
    return (
        _column([p.probabilities or () for p in pages], np.float64)[keep],
        _column([p.truth for p in pages], np.bool_)[keep],
        _column([p.words for p in pages], np.float64)[keep],
    )


def _column(parts: Sequence[Sequence[float]], kind: type) -> npt.NDArray[np.generic]:
    return np.array([value for part in parts for value in part], dtype=kind)


Ints = npt.NDArray[np.int64]


def node_prf(page: Page, found: Bools, truth: Bools) -> PRF:
    """Compare the main nodes of two labellings of a page's blocks, shape (n,). All values are 1 if both have none."""
    predicted, wanted = main_nodes(page, found), main_nodes(page, truth)
    hits = int((predicted & wanted).sum())
    return block_prf(hits, int(predicted.sum()) - hits, int(wanted.sum()) - hits)


def main_nodes(page: Page, main: Bools) -> Bools:
    """Return which nodes are main, given the labels of blocks. The shape is (3m,): the elements, their texts, and their
    tails.
    """
    tree, m = page.tree, len(page.tree.nodes)
    labels = np.append(main.astype(np.int64), -1)  # -1 for texts that are in no block
    text, tail = (labels[np.where(owner >= 0, owner, -1)] for owner in (tree.text_owner, tree.tail_owner))
    parent = np.maximum(tree.parent, 0)

    def whole(label: int) -> Ints:
        """Return the number of texts with a label in each subtree."""
        own = (text == label) + np.bincount(parent[1:], tail[1:] == label, minlength=m).astype(np.int64)
        before: Ints = np.concatenate([[0], np.cumsum(own)])
        return np.asarray(before[tree.end] - before[:-1])

    roots = np.flatnonzero((whole(1) > 0) & (whole(0) == 0))
    opened = np.zeros(m + 1, dtype=np.int64)
    np.add.at(opened, roots, 1)
    np.add.at(opened, tree.end[roots], -1)
    elements = np.cumsum(opened[:-1]) > 0
    texts = _filled(node.text for node in tree.nodes) & (elements | (text == 1))
    tails = _filled(node.tail for node in tree.nodes) & (elements[parent] | (tail == 1))
    return np.concatenate([elements, texts, tails])


def _filled(texts: Iterable[str | None]) -> Bools:
    return np.array([bool(text and text.strip()) for text in texts])
