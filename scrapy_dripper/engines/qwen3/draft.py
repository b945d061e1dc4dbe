"""Draft the labels of pages with the tagger, as a guess for the Qwen3 loop.

The tagger reads native blocks. For a page in another profile, it gets a native copy, and its labels are transferred to
the blocks that share text.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.base import Engine, Labels
from scrapy_dripper.page import NATIVE
from scrapy_dripper.page.page import NOBODY, Ints, Page, by_owner

_NODE_WEIGHT = 1e-3  # the weight of an image in characters, which matters only without text


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """The tagger's answer for a page."""

    labels: Labels
    """The labels of the page's blocks, in the page's own profile."""
    confidence: float
    """Mean probability, 0 to 1, that the tagger's labels are right; -1 if it could not label the page."""


def drafts(tagger: Engine, pages: Sequence[Page], profile: str) -> list[Draft]:
    """Return the tagger's labels for pages cut by a profile. If it cannot label a page, all blocks are other."""
    copies = [(page, None) if profile == NATIVE.name else native_copy(page) for page in pages]
    found = []
    for page, (copy, nodes), labels in zip(pages, copies, tagger.label([copy for copy, _ in copies]), strict=True):
        if not isinstance(labels, Labels):
            n = len(page.blocks)
            found.append(Draft(Labels(np.zeros(n, dtype=np.float32), np.zeros(n, dtype=np.bool_)), -1.0))
            continue
        confidence = _confidence(labels)
        if nodes is not None:
            probabilities = carry(labels.probabilities, copy, page, nodes)
            labels = replace(labels, probabilities=probabilities, main=carry(labels.main, copy, page, nodes) > 0.5)
        found.append(Draft(labels, confidence))
    return found


def _confidence(labels: Labels) -> float:
    p: npt.NDArray[np.float32] = np.where(labels.main, labels.probabilities, 1 - labels.probabilities)
    return float(p.mean()) if len(p) else 0.0


def native_copy(page: Page) -> tuple[Page, Ints]:
    """Return a copy of the page cut by the profile ``native``, and the index in ``page`` of each node of the copy.

    The tree of ``page`` is not changed. It must be complete, so ``page`` cannot be cut by ``native`` itself.
    """
    root = deepcopy(page.tree.nodes[0])
    number = {node: i for i, node in zip(range(len(page.tree.nodes)), root.iter(), strict=False)}
    copy = replace(NATIVE.cut(root, page.url), wishes=page.wishes)
    # On an oversize page, the copy can reach nodes that the page does not have, because it removes others.
    nodes = np.array([number[node] for node in copy.tree.nodes if node in number], dtype=np.int32)
    while number:  # inner nodes first: otherwise, lxml takes quadratic time to free the elements that cut() removed
        number.popitem()
    return copy, nodes


def carry(values: npt.NDArray[Any], from_page: Page, to_page: Page, nodes: Ints) -> npt.NDArray[np.float32]:
    """Transfer the values of the blocks of one page to the blocks of another page of the same document.

    ``values`` are labels or probabilities of shape (n,) for the n blocks of ``from_page``. The result is float32 of
    shape (m,) for the m blocks of ``to_page``. Each value is the mean over the blocks of ``from_page`` that share text
    with the block, weighted by characters. Anything in a gap of ``from_page``, such as an image, has the lower of the
    values around the gap. So does a block that shares no text.

    ``nodes`` holds the index in ``to_page`` of each node of ``from_page``, as returned by :func:`native_copy`.
    """
    source, target = from_page.tree, to_page.tree
    size = len(target.nodes)
    text, tail, own = (np.full(size, NOBODY, dtype=np.int32) for _ in range(3))
    k = len(nodes)
    text[nodes], tail[nodes], own[nodes] = source.text_owner[:k], source.tail_owner[:k], source.self_owner[:k]
    _resolve_tails(text, tail, nodes, target.parent, target.end)

    chars = [len(t.strip()) if t else 0 for node in target.nodes for t in (node.text, node.tail)]
    weight = np.array([*chars[::2], *chars[1::2], *([_NODE_WEIGHT] * size)])
    owner = np.concatenate([target.text_owner, target.tail_owner, target.self_owner])
    value = _values_by_owner(values)[np.concatenate([text, tail, own])]
    used = (owner >= 0) & (weight > 0) & ~np.isnan(value)
    n = len(to_page.blocks)
    total = np.bincount(owner[used], weight[used], minlength=n)
    mean = np.bincount(owner[used], (weight * value)[used], minlength=n) / np.where(total > 0, total, 1)
    return _filled(mean, total > 0).astype(np.float32)


def _resolve_tails(text: Ints, tail: Ints, nodes: Ints, parent: Ints, end: Ints) -> None:
    """Set the owners of the tails of removed nodes. Each such tail was joined with the text before it."""
    size = len(parent)
    gone = np.ones(size, dtype=np.bool_)
    gone[nodes] = False
    above = np.maximum(parent, 0)
    gone[0] = False
    previous = np.full(size + 1, -1, dtype=np.int64)
    has_next = (end < end[above]) & (parent >= 0)
    previous[end[has_next]] = np.flatnonzero(has_next)
    for i in np.flatnonzero(gone & ~gone[above]).tolist():
        before = previous[i]
        tail[i] = tail[before] if before >= 0 else text[parent[i]]


def _values_by_owner(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the values of all owners, to be indexed with the owner columns."""
    blocks = values.astype(np.float64)
    gaps = np.full(len(blocks) + 1, blocks.min() if len(blocks) else np.nan)
    gaps[1:-1] = np.minimum(blocks[:-1], blocks[1:])
    return by_owner(blocks, gaps, nobody=np.nan)


def _filled(values: npt.NDArray[np.float64], known: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Replace each unknown value by the lower of the known values on both sides, or by 0 if none is known."""
    if not known.any():
        return np.zeros(len(values))
    at = np.flatnonzero(known)
    place = np.searchsorted(at, np.arange(len(values)), side="right")
    left, right = at[np.maximum(place - 1, 0)], at[np.minimum(place, len(at) - 1)]
    return np.where(known, values, np.minimum(values[left], values[right]))
