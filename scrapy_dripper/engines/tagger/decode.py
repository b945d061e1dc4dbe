"""Probabilities to labels, for a page as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]


_FARTHEST = 100
"""Blocks over which near copies are looked for at most, whatever a manifest says."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """How probabilities become labels; tuned on held folds and kept in the model's manifest."""

    recall_weight: float = 0.8
    """Weight of the words expected to be main in the denominator of the expected F1: the more, the more is kept."""
    min_words: float = 10.0
    """A page on which fewer words than this are expected to be main has no main content."""
    copy_words: float = 6.0
    """Of blocks with the same text and at least so many words, only one can be main."""
    copy_margin: float = 0.1
    """The first of them is, unless another is likelier by more than this."""
    near: float = 6.0
    """Of two blocks at most so many apart, one of them a link, the text of one in the other's, only one can be main."""
    near_words: float = 2.0
    """A block with fewer words than this is no copy of one near it."""
    near_share: float = 0.5
    """Nor is one with less than this share of the other's words."""


def decode(
    probabilities: npt.NDArray[np.float32],
    size: npt.NDArray[np.float32],
    texts: Sequence[str],
    linked: Bools,
    decoding: Decoding,
) -> Bools:
    """Return which blocks of a page are main: the cut that maximises the expected word F1.

    All arrays have shape (n,); ``size`` is in words, ``linked`` says which blocks are links. The blocks are ranked by
    probability, and for every cut the expected F1 is ``2 S(p w) / (S(w) + recall_weight * T)`` with the sums over the
    blocks above it and T the sum of ``p w`` over the page (the optimal decision under F1 takes this form: Nan et al.
    2012).
    """
    n = len(probabilities)
    candidate, p = _without_copies(probabilities, size, texts, linked, decoding)
    main: Bools = np.zeros(n, dtype=np.bool_)
    weight = np.where(candidate, size, 0.0).astype(np.float64)
    expected = float(np.dot(p, weight))
    if expected < decoding.min_words:
        return main
    order = np.argsort(-p, kind="stable")
    order = order[candidate[order]]
    gained, taken = np.cumsum((p * weight)[order]), np.cumsum(weight[order])
    best = int(np.argmax(gained / (taken + decoding.recall_weight * expected)))
    main[order[: best + 1]] = True
    return main


def _without_copies(
    probabilities: npt.NDArray[np.float32],
    size: npt.NDArray[np.float32],
    texts: Sequence[str],
    linked: Bools,
    decoding: Decoding,
) -> tuple[Bools, npt.NDArray[np.float64]]:
    """Return which blocks are no copies, and the probabilities, where a block has the highest of its copies.

    Pages say things twice, for narrow and for wide screens, and grids of products and articles link each of them twice
    or more: by its picture, by its title, with and without its price. The true text has them once.
    """
    # Lists: to read one element of an array takes longer than all else that is done with it.
    own, words, links = probabilities.tolist(), size.tolist(), linked.tolist()
    p = list(own)
    candidate = [True] * len(words)
    for copy, original in _same(own, words, texts, decoding):
        candidate[copy] = False
        p[original] = max(p[original], p[copy])
    for copy, original in _near(own, words, texts, links, candidate, decoding):
        candidate[copy] = False
        p[original] = max(p[original], p[copy])
    return np.array(candidate), np.array(p, dtype=np.float64)


def _same(own: list[float], words: list[float], texts: Sequence[str], decoding: Decoding) -> Iterator[tuple[int, int]]:
    """Yield each block whose text stands elsewhere on the page, and the block that stands for it.

    That is the first of them, so that a page that is there twice is not mixed of both, unless another is much likelier,
    as a heading is than its line in the table of contents.
    """
    kept: dict[str, int] = {}
    for i, text in enumerate(texts):
        if words[i] < decoding.copy_words:
            continue
        original = kept.setdefault(text, i)
        if original == i:
            continue
        if own[i] > own[original] + decoding.copy_margin:
            kept[text] = i
            yield original, i
        else:
            yield i, original


def _near(
    own: list[float],
    words: list[float],
    texts: Sequence[str],
    links: list[bool],
    candidate: list[bool],
    decoding: Decoding,
) -> Iterator[tuple[int, int]]:
    """Yield each candidate whose text stands, linked, in that of one near it, or the other way round, and that one.

    The likelier of the two stands for both, so that a heading is not lost to the menu beside it. What is repeated close
    by without a link, such as the values of a table, is no copy. The caller takes those yielded out of the candidates.
    """
    near, least, share = min(int(decoding.near), _FARTHEST), decoding.near_words, decoding.near_share
    last_link = -near - 1
    for i, text in enumerate(texts):
        if not candidate[i]:
            continue
        n = words[i]
        if links[i]:
            last_link = i
        if n < least or i - last_link > near:
            continue
        for j in range(i - 1, max(-1, i - near - 1), -1):
            m = words[j]
            if m < share * n or n < share * m or m < least or not candidate[j] or not (links[i] or links[j]):
                continue
            if not (_within(text, texts[j]) if n <= m else _within(texts[j], text)):
                continue
            if own[i] <= own[j]:
                yield i, j
                break
            yield j, i


def _within(part: str, whole: str) -> bool:
    """Return True if a text stands in another, from word to word."""
    return f" {part} " in f" {whole} "
