"""Weights that were learnt from a user's corrections. On pages of these sites, they are added to a block's log-odds.

The graphs of the model do not change. Pages of other sites have bit for bit the same probabilities as with the original
model.

Weights are those of names: the tag, classes and ids of an element. A block has the names of three places: its own
element, the innermost element around its first text, and all elements that it is inside, where each name counts once.
Sums over all these elements are differences of running sums over the nodes in document order, in which a subtree is a
slice. So they take linear time at any depth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines import files
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.tagger.columns import Doubles, Floats, Ints
from scrapy_dripper.page.page import Page
from scrapy_dripper.paths import replace_file
from scrapy_dripper.rules import hosts_of

PLACES = ("inside", "element", "innermost")
"""The places for which a name has a weight, in this order."""
MAX_NAMES = 12
"""Maximum number of classes and ids of an element to consider, besides its tag."""
MAX_CHARS = 60
"""Maximum length of a name, in characters. Longer names are cut off."""

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


LEARNT = files.LEARNT
FORMAT = 1
DIGITS = 3
"""Number of decimals of a stored weight. Smaller weights become 0."""
EDGE = 1e-5
"""Probabilities of the model are first clipped to this distance from 0 and 1."""
TRUST = 0.6
"""Factor for the model's log-odds on a corrected site, where the model is too confident."""
_RESTORE = "restore the model folder, or learn again"


def trusted(probabilities: Floats) -> Doubles:
    """Return the model's probabilities as log-odds, reduced by :data:`TRUST`, for a corrected site."""
    p = np.clip(probabilities.astype(np.float64), EDGE, 1 - EDGE)
    odds: Doubles = TRUST * np.log(p / (1 - p))
    return odds


@dataclass(frozen=True, slots=True, eq=False)
class SiteWeights:
    """The weights that were learnt for the pages of a site."""

    vocabulary: Vocabulary
    weights: Doubles
    """A flat column, as described in :class:`Places`."""

    @classmethod
    def of(cls, value: Any) -> SiteWeights:
        """Read a site from a JSON value. Raise KeyError, TypeError, ValueError or AttributeError if it is damaged."""
        names = value["names"]
        rows = [[files.finite(weight) for weight in row] for row in names.values()]
        if any(len(row) != len(PLACES) for row in rows):
            raise ValueError(f"expected {len(PLACES)} weights for each name")
        columns = np.array(rows, dtype=np.float64).reshape(len(rows), len(PLACES)).T
        weights = np.append(columns.ravel(), files.finite(value["all"]))
        return cls({name: i for i, name in enumerate(names)}, weights)

    def written(self) -> dict[str, Any]:
        """Return the site as a JSON value. Names whose weights are too small to matter are left out."""
        rounded = np.round(self.weights, DIGITS) + 0.0  # no negative zero
        rows = rounded[:-1].reshape(len(PLACES), -1).T
        return {
            "all": rounded[-1],
            "names": {name: rows[i].tolist() for name, i in sorted(self.vocabulary.items()) if rows[i].any()},
        }

    def corrected(self, page: Page, probabilities: Floats) -> Floats:
        """Return the corrected probabilities of the n blocks of a page, of shape (n,)."""
        odds = trusted(probabilities) + Places.of(page, self.vocabulary).odds(self.weights)
        corrected: Floats = np.reciprocal(1 + np.exp(-np.clip(odds, -500, 500))).astype(np.float32)
        return corrected


class Learnt:
    """The learnt weights of sites, by host. A host includes its subdomains."""

    def __init__(self, sites: Mapping[str, SiteWeights]) -> None:
        self.sites = dict(sites)

    @classmethod
    def read(cls, folder: Path) -> Learnt:
        """Read the file of a model folder. Raise ModelError if it is damaged or has another format."""
        value = files.read_json(folder, LEARNT, _RESTORE)
        try:
            if value["format"] != FORMAT:
                raise ValueError(f"expected format {FORMAT} (got {value['format']!r})")
            return cls({str(host): SiteWeights.of(site) for host, site in value["sites"].items()})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            path = folder / LEARNT
            raise ModelError(f"{path} is damaged ({type(error).__name__}: {error}): {_RESTORE}") from None

    def write(self, folder: Path) -> None:
        """Write the file of a model folder. The same weights give the same bytes."""
        sites = {host: site.written() for host, site in sorted(self.sites.items())}
        text = json.dumps({"format": FORMAT, "places": PLACES, "sites": sites}, separators=(",", ":"))
        replace_file(folder / LEARNT, text + "\n")

    def site_of(self, url: str) -> SiteWeights | None:
        """Return the weights for the site of a URL, or None if there are none."""
        return next((site for host in hosts_of(url) if (site := self.sites.get(host))), None)

    def corrected(self, pages: Sequence[Page], probabilities: Floats, edges: npt.NDArray[np.int64]) -> Floats:
        """Return the corrected probabilities of the n blocks of a batch, of shape (n,).

        ``edges`` are the first block of each page, followed by n.
        """
        found = [self.site_of(page.url) for page in pages]
        if not any(found):
            return probabilities
        result: Floats = probabilities.copy()
        for page, site, (a, b) in zip(pages, found, pairwise(edges.tolist()), strict=True):
            if site is not None:
                result[a:b] = site.corrected(page, probabilities[a:b])
        return result
