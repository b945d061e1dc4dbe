"""The vocabulary for features: operations on columns of all blocks of a batch, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Column = npt.NDArray[np.generic]

GRID = 2.0**30
"""Sums of fractions are exact in units of its inverse."""
PRIME = np.int64(1_000_003)
"""The factor of :func:`pair`."""


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


def most_on_page(values: npt.NDArray[Any], first: Ints) -> npt.NDArray[Any]:
    """Return for each block the maximum over its page, whose first block is ``first``."""
    return _on_page(np.maximum, values, first)


def least_on_page(values: npt.NDArray[Any], first: Ints) -> npt.NDArray[Any]:
    """Return for each block the minimum over its page, whose first block is ``first``."""
    return _on_page(np.minimum, values, first)


def _on_page(reduce: np.ufunc, values: npt.NDArray[Any], first: Ints) -> npt.NDArray[Any]:
    starts = np.unique(first)
    found: npt.NDArray[Any] = np.repeat(reduce.reduceat(values, starts), np.diff(starts, append=len(first)))
    return found


def neighbour(by: int, first: Ints, last: Ints) -> Ints:
    """Return the number of the block that is ``by`` blocks after each, or -1 beyond the edge of the page."""
    n = np.arange(len(first)) + by
    return np.where((n >= first) & (n < last), n, -1)


def last_chosen(chosen: Bools) -> Ints:
    """Return for each block the last chosen one up to it, or -1 if there is none. Edges of pages are ignored."""
    found: Ints = np.maximum.accumulate(np.where(chosen, np.arange(len(chosen)), -1))
    return found


def next_chosen(chosen: Bools) -> Ints:
    """Return for each block the first chosen one from it on, or n if there is none. Edges of pages are ignored."""
    n = len(chosen)
    found: Ints = np.minimum.accumulate(np.where(chosen, np.arange(n), n)[::-1])[::-1]
    return found


def entropy(p: Doubles) -> Doubles:
    """Return the entropy of probabilities, in nats."""
    return -(p * np.log(p + 1e-6) + (1 - p) * np.log(1 - p + 1e-6))
