"""The pages of a batch as one table of nodes and blocks, and operations on its columns, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.lexicon import CONTENT, keywords
from scrapy_dripper.page.page import Page

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Column = npt.NDArray[np.generic]

GRID = 2.0**30
"""Sums of fractions are exact in units of its inverse."""
PRIME = np.int64(1_000_003)
"""The factor of :func:`pair`."""


FAR_BLOCKS = 40
"""A larger distance in blocks is the same as this one."""


class Columns(dict[str, Column]):
    """Features by name, in insertion order. A column can be replaced, but not one that was added in a matrix."""

    def __init__(self) -> None:
        self._parts: dict[str, Column] = {}  # columns and matrices, by the name of their first feature

    def __setitem__(self, name: str, column: Column) -> None:
        super().__setitem__(name, column)
        self._parts[name] = column

    def add(self, names: Sequence[str], columns: Column) -> None:
        """Add the columns of a matrix of shape (n blocks, n names)."""
        self.update(zip(names, columns.T, strict=True))
        self._parts[names[0]] = columns

    def matrix(self) -> Floats:
        """Return float32 of shape (n blocks, n features)."""
        out = np.empty((len(next(iter(self.values()))), len(self)), dtype=np.float32)
        i = 0
        for part in self._parts.values():  # copying matrices as a whole is faster than column by column
            end = i + (part.shape[1] if part.ndim > 1 else 1)
            out[:, i:end] = part if part.ndim > 1 else part[:, None]
            i = end
        return out


class Sums:
    """The sums of a column over any slices of it, in constant time for each. Several columns are the rows of a matrix.

    One call of numpy for a matrix is faster than one for each column. Values are rounded to multiples of 2 ** -30, and
    totals stay below 2 ** 23. So all sums are exact, and the sum over a slice does not depend on what is before it.
    """

    def __init__(self, values: Column) -> None:
        self._totals = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
        exact = np.rint(np.multiply(values, GRID, dtype=np.float64)) / GRID if values.dtype.kind == "f" else values
        np.cumsum(exact, axis=-1, dtype=np.float64, out=self._totals[..., 1:])

    def over(self, start: Ints, end: Ints) -> Doubles:
        """Return the sum of ``values[..., start:end]`` for each pair of indexes."""
        sums: Doubles = self._totals[..., end] - self._totals[..., start]
        return sums


class Groups:
    """The rows with equal keys."""

    def __init__(self, key: Ints) -> None:
        _, number, size = np.unique(key, return_inverse=True, return_counts=True)
        self.number: Ints = number.astype(np.int64)
        """The group of each row."""
        self.size: Ints = size.astype(np.int64)
        """The number of rows of each group."""

    def sums(self, values: npt.NDArray[Any]) -> Doubles:
        """Return the sum of a column over each group."""
        sums: Doubles = np.bincount(self.number, values).astype(np.float64, copy=False)
        return sums


def ratio(a: Column, b: Column) -> Floats:
    """Return ``a / max(b, 1)``: a ratio that is 0 if both counts are 0."""
    result: Floats = np.divide(a, np.maximum(b, 1), dtype=np.float32)
    return result


def bits(sets: Ints, count: int) -> npt.NDArray[np.uint8]:
    """Return the first bits of each bit set, 0 or 1, as a matrix of shape (n, count)."""
    octets = np.ascontiguousarray(sets, dtype="<i8").view(np.uint8).reshape(len(sets), 8)
    return np.unpackbits(octets, axis=1, count=count, bitorder="little")


def pair(a: Ints, b: Ints) -> Ints:
    """Return a key for each pair of keys."""
    key: Ints = a * PRIME + b
    return key


def starts_of(first: Ints) -> Ints:
    """Return the first block of each page."""
    return np.flatnonzero(first == np.arange(len(first)))  # np.unique would import numpy.ma


def on_page(reduce: np.ufunc, values: npt.NDArray[Any], first: Ints) -> npt.NDArray[Any]:
    """Return for each block the maximum or minimum over its page, whose first block is ``first``."""
    starts = starts_of(first)
    found: npt.NDArray[Any] = np.repeat(reduce.reduceat(values, starts), np.diff(starts, append=len(first)))
    return found


def neighbour(by: int | Ints, first: Ints, last: Ints) -> Ints:
    """Return the number of the block that is ``by`` blocks after each, or -1 beyond the edge of the page.

    Several distances are a column of shape (distances, 1).
    """
    n = np.arange(len(first)) + by
    return np.where((n >= first) & (n < last), n, -1)


def last_chosen(chosen: Bools) -> Ints:
    """Return for each block the last chosen one up to it, or -1 if there is none. Edges of pages are ignored."""
    found: Ints = np.maximum.accumulate(np.where(chosen, np.arange(len(chosen)), -1))
    return found


def distances(chosen: Bools, first: Ints, last: Ints) -> tuple[Doubles, Doubles]:
    """Return the logarithm of 1 + the distance of each block from the last chosen one up to it, and from the first one
    from it on. It is -1 if there is none on the page.
    """
    n = np.arange(len(chosen))
    before, after = last_chosen(chosen), len(n) - 1 - last_chosen(chosen[::-1])[::-1]
    return (
        np.where(before >= first, np.log1p(np.maximum(n - before, 0)), -1),
        np.where(after < last, np.log1p(np.maximum(after - n, 0)), -1),
    )


def signed(distance: Ints) -> Doubles:
    """Return the logarithm of 1 + each distance, with its sign. Larger distances than :data:`FAR_BLOCKS` are equal."""
    return np.sign(distance) * np.log1p(np.minimum(np.abs(distance), FAR_BLOCKS))


def entropy(p: Doubles) -> Doubles:
    """Return the entropy of probabilities, in nats."""
    return -(p * np.log(p + 1e-6) + (1 - p) * np.log(1 - p + 1e-6))


@dataclass(frozen=True, slots=True, eq=False)
class BatchTable:
    """The concatenated columns of a batch of pages with m nodes and n blocks in total."""

    parent: Ints
    """Number of the parent node. A root is its own parent."""
    tag: Ints
    tag_class: Ints
    flags: Ints
    near: Ints
    """Bit set of the keyword groups of the node and its two nearest ancestors."""
    far: Ints
    """Bit set of the keyword groups of the node and all its ancestors."""
    named: Bools
    """True for a node whose class or id names the main content."""
    depth: Ints
    wider: Ints
    """Number of the nearest ancestor with more blocks than the node. This skips wrappers around the same blocks."""
    path: Ints
    """Hash of the tags from the root down."""
    block_start: Ints
    block_end: Ints
    context: Ints
    outer: Ints
    """Number of the innermost node that holds more than the block. If the block is an inline run among other blocks,
    this is ``context``."""
    leaf: Ints
    links: Floats
    link_chars: Floats
    bold_chars: Floats
    images: Floats
    first: Ints
    """Number of the first block of the block's page."""
    last: Ints
    """One past the last block of the block's page."""


def batch_table(pages: Sequence[Page]) -> BatchTable:
    """Concatenate the columns of pages."""
    nodes = np.array([len(page.tree.nodes) for page in pages], dtype=np.int64)
    blocks = np.array([len(page.blocks) for page in pages], dtype=np.int64)
    node_at = np.concatenate([[0], np.cumsum(nodes)])
    block_at = np.concatenate([[0], np.cumsum(blocks)])
    to_node, to_block = np.repeat(node_at[:-1], nodes), np.repeat(block_at[:-1], nodes)
    of_block = np.repeat(node_at[:-1], blocks)

    def tree(name: str) -> Ints:
        return np.concatenate([getattr(page.tree, name) for page in pages]).astype(np.int64)

    def block(name: str) -> Ints:
        return np.concatenate([getattr(page.blocks, name) for page in pages]).astype(np.int64)

    parent = np.maximum(tree("parent"), 0) + to_node
    tag, depth = tree("tag"), tree("depth")
    names = list(chain.from_iterable(page.tree.names for page in pages))
    known = {name: keywords(name[:512]) for name in set(names)}
    own = np.fromiter(map(known.__getitem__, names), dtype=np.int64, count=len(names))
    up = parent
    near = own | own[up] | own[up[up]]
    start, end = tree("block_start") + to_block, tree("block_end") + to_block
    same = (start == start[parent]) & (end == end[parent])
    far, path, top = own, tag, np.where(same, parent, np.arange(len(parent)))
    # Each step doubles the number of ancestors that the columns cover.
    reach, factor = 1, np.array([PRIME])
    while reach <= depth.max(initial=0):
        far = far | far[up]
        path = np.where(depth >= reach, path[up] * factor + path, path)
        top, up = top[top], up[up]
        reach, factor = 2 * reach, factor * factor
    page = np.repeat(np.arange(len(pages)), nodes)
    context = block("context") + of_block
    alone = end[context] - start[context] <= 1
    return BatchTable(
        parent=parent,
        tag=tag,
        tag_class=tree("tag_class") * len(pages) + page,
        flags=tree("flags"),
        near=near,
        far=far,
        named=own & CONTENT != 0,
        depth=depth,
        wider=parent[top],
        path=path * len(pages) + page,
        block_start=start,
        block_end=end,
        context=context,
        outer=np.where(alone, parent[top[context]], context),
        leaf=block("leaf") + of_block,
        links=block("links").astype(np.float32),
        link_chars=block("link_chars").astype(np.float32),
        bold_chars=block("bold_chars").astype(np.float32),
        images=block("images").astype(np.float32),
        first=np.repeat(block_at[:-1], blocks),
        last=np.repeat(block_at[1:], blocks),
    )
