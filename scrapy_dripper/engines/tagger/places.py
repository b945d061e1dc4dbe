"""Describe the places of blocks by the names of the elements around them, and sum up weights of names.

The names of an element are its tag, classes and ids. A block has the names of three places: its own element, the
innermost element around its first text, and all elements that it is inside, where each name counts once. Sums over all
these elements are differences of running sums over the nodes in document order, in which a subtree is a slice. So they
take linear time at any depth.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Page

PLACES = ("inside", "element", "innermost")
"""The places for which a name has a weight, in this order."""
MAX_NAMES = 12
"""Maximum number of classes and ids of an element to consider, besides its tag."""
MAX_CHARS = 60
"""Maximum length of a name, in characters. Longer names are cut off."""

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Vocabulary = dict[str, int]
"""Numbers of names, from 0."""

_digits = re.compile(r"\d+").sub


def names(tag: str, attributes: str) -> list[str]:
    """Return the distinct names of an element, such as ``p`` and ``.price``.

    ``attributes`` are its classes and ids, separated by white space. Numbers in them become 0, because many of them
    identify a single post or product.
    """
    found = attributes[: MAX_NAMES * (MAX_CHARS + 1)].split()[:MAX_NAMES]
    return [tag[:MAX_CHARS], *dict.fromkeys("." + _digits("0", name)[:MAX_CHARS] for name in found)]


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The n blocks of pages in their m elements, and the pairs of an element and one of its names.

    Weights are a flat column: for each of :data:`PLACES`, a weight for each name; then a weight for all blocks.
    """

    node: Ints
    """The element of each pair."""
    name: Ints
    """The name of each pair."""
    around: Doubles
    """1 for each pair whose name counts for all blocks inside the element. 0 if the name already counts for an element
    around it, or if it is a tag, because tags around a block say little."""
    end: Ints
    """One past the last element of each element's subtree, shape (m,)."""
    context: Ints
    """The element of each block, shape (n,)."""
    leaf: Ints
    """The innermost element around each block's first text, shape (n,)."""

    @classmethod
    def of(cls, page: Page, vocabulary: Vocabulary, *, grow: bool = False) -> Places:
        """Return the places of a page. With ``grow``, new names are added to the vocabulary; otherwise, they are left
        out."""
        known: dict[tuple[str, str], list[int]] = {}
        node: list[int] = []
        name: list[int] = []
        around: list[bool] = []
        end = page.tree.end.tolist()
        inside: list[tuple[int, list[int]]] = []  # the end and the names of each element around the current one
        counts: dict[int, int] = {}
        for i, (element, attributes) in enumerate(zip(page.tree.nodes, page.tree.names, strict=True)):
            key = (str(element.tag), attributes)
            numbers = known.get(key)
            if numbers is None:
                if grow:
                    numbers = [vocabulary.setdefault(one, len(vocabulary)) for one in names(*key)]
                else:
                    numbers = [vocabulary[one] for one in names(*key) if one in vocabulary]
                known[key] = numbers
            while inside and inside[-1][0] <= i:
                for number in inside.pop()[1]:
                    counts[number] -= 1
            for number in numbers:
                around.append(not counts.get(number))
                counts[number] = counts.get(number, 0) + 1
            inside.append((end[i], numbers))
            node.extend([i] * len(numbers))
            name.extend(numbers)
        words = np.fromiter((one[0] == "." for one in vocabulary), dtype=np.bool_, count=len(vocabulary))
        column = np.array(name, dtype=np.int64)
        return cls(
            node=np.array(node, dtype=np.int64),
            name=column,
            around=(words[column] & np.array(around, dtype=np.bool_)).astype(np.float64),
            end=page.tree.end.astype(np.int64),
            context=page.blocks.context.astype(np.int64),
            leaf=page.blocks.leaf.astype(np.int64),
        )

    @classmethod
    def joined(cls, pages: Sequence[Places]) -> Places:
        """Return the places of several pages, in order."""
        starts = np.cumsum([0, *(len(one.end) for one in pages)])[:-1]

        def shifted(column: str) -> Ints:
            return np.concatenate([getattr(one, column) + start for one, start in zip(pages, starts, strict=True)])

        return cls(
            node=shifted("node"),
            name=np.concatenate([one.name for one in pages]),
            around=np.concatenate([one.around for one in pages]),
            end=shifted("end"),
            context=shifted("context"),
            leaf=shifted("leaf"),
        )

    def odds(self, weights: Doubles) -> Doubles:
        """Return the sum of the weights of each block's names, of shape (n,)."""
        m, size = len(self.end), len(weights) // len(PLACES)
        inside, element, innermost = weights[:-1].reshape(len(PLACES), size)
        own = np.bincount(self.node, inside[self.name] * self.around, m)
        around = np.cumsum(own - np.bincount(self.end, own, m + 1)[:m])
        here = np.bincount(self.node, element[self.name], m)
        first = np.bincount(self.node, innermost[self.name], m)
        sums: Doubles = around[self.leaf] + here[self.context] + first[self.leaf] + weights[-1]
        return sums

    def gathered(self, values: Doubles, size: int) -> Doubles:
        """Return for each weight the sum of the values of the blocks that it counts for: the transpose of :meth:`odds`.

        ``values`` has shape (n,), and ``size`` is the number of names.
        """
        m = len(self.end)
        first, here = np.bincount(self.leaf, values, m), np.bincount(self.context, values, m)
        total = np.concatenate([[0.0], np.cumsum(first)])
        around = total[self.end] - total[:-1]
        columns = (around[self.node] * self.around, here[self.node], first[self.node])
        return np.concatenate([*(np.bincount(self.name, column, size) for column in columns), [values.sum()]])
