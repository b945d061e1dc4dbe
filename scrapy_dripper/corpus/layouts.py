"""Choose pages with different layouts, as the Dripper paper does for its training data (section 4.1, stage 1).

The pages of a host are clustered by the structure of their DOM, and each cluster is represented by one page. The
features and the similarity are those of the reference implementation. The pairs of parent and child tags at each level
have a weight of 0.7, and the classes and ids of elements at each level a weight of 0.3. Pages with a cosine similarity
of at least 0.95 are alike.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack
from sklearn.cluster import DBSCAN
from sklearn.preprocessing import normalize

if TYPE_CHECKING:
    from lxml.html import HtmlElement

DISTANCE = 0.05
"""Maximum cosine distance of two pages that are neighbours in a cluster."""
TAG_SHARE = 0.7
MOST_PAGES = 10_000
"""Maximum number of pages of a host that are clustered. If there are more, a random sample of this size is clustered,
because the time grows with the square of the number.
"""
LEVELS = 64
"""Maximum number of levels of the tree that are compared."""

_UNSEEN = frozenset(("script", "style", "meta", "link", "noscript", "template", "br", "head"))
_PLAIN = frozenset(("a", "i", "b", "li", "tr", "td", "img", "p", "body"))
"""Elements whose classes and ids are ignored, because they often belong to a single text."""
_HASHED = 2**20
Hashes = npt.NDArray[np.uint32]
_digits = re.compile(r"\d+").sub


class Layout(NamedTuple):
    """The structure of a page, as two sets of hashes."""

    tags: Hashes
    """``LEVEL PARENT CHILD`` for each pair of tags."""
    names: Hashes
    """``LEVEL NAME`` for each class and id, without its digits."""


def layout(root: HtmlElement) -> Layout:
    """Return the structure of a parsed page. It takes linear time."""
    tags: set[str] = set()
    names: set[str] = set()
    body = root if root.tag == "body" else next(root.iter("body"), root)
    level = [body]
    for depth in range(LEVELS):
        below = []
        for element in level:
            for child in element:
                if not isinstance(child.tag, str) or child.tag in _UNSEEN:
                    continue
                tags.add(f"{depth} {element.tag} {child.tag}")
                if child.tag not in _PLAIN:
                    found = f"{child.get('class', '')} {child.get('id', '')}"
                    names.update(f"{depth} {_digits('', name)}" for name in found.split()[:20])
                below.append(child)
        level = below
        if not level:
            break
    return Layout(_hashed(tags), _hashed(names))


def vectors(layouts: Sequence[Layout]) -> csr_matrix:
    """Return the layouts as unit vectors, whose inner products are their similarities.

    The similarity of two pages is 0.7 times the cosine of their tags, plus 0.3 times the cosine of their names. If a
    page has no names, only its tags count.
    """
    tags, names = (_unit([one[field] for one in layouts]) for field in (0, 1))
    return csr_matrix(normalize(hstack([math.sqrt(TAG_SHARE) * tags, math.sqrt(1 - TAG_SHARE) * names])))


def _unit(sets: Sequence[Hashes]) -> csr_matrix:
    ends = np.concatenate([[0], np.cumsum([len(one) for one in sets])])
    places = np.concatenate([*sets, np.empty(0, np.uint32)])
    return normalize(csr_matrix((np.ones(len(places)), places, ends), shape=(len(sets), _HASHED)))


def _hashed(words: set[str]) -> Hashes:
    return np.unique(np.array([crc32(word.encode("utf-8", "replace")) % _HASHED for word in words], dtype=np.uint32))


def clusters(layouts: Sequence[Layout], distance: float = DISTANCE) -> npt.NDArray[np.int64]:
    """Return the number of the cluster of each page, from 0 (DBSCAN). Pages are in one cluster if they are alike, or if
    they are connected by a chain of pages that are alike.

    A page that is like no other is a separate cluster.
    """
    if not layouts:
        return np.empty(0, dtype=np.int64)
    found: npt.NDArray[np.int64] = DBSCAN(eps=distance, min_samples=1, metric="cosine", algorithm="brute").fit_predict(
        vectors(layouts)
    )
    return found


class Representative(NamedTuple):
    """A page that stands for a cluster."""

    page: int
    """Index of the page."""
    pages: int
    """Number of pages in the cluster."""


def representatives(
    hosts: Sequence[str], layouts: Sequence[Layout], distance: float = DISTANCE, most: int = MOST_PAGES, seed: int = 0
) -> list[Representative]:
    """Return a page for each cluster of each host, in the order of the pages.

    It is the page with the greatest mean similarity to the pages of its cluster. If several are equal, it is the first
    of them. Pages without a host are clustered together. If a host has more than ``most`` pages, a random sample of
    that size is clustered.
    """
    pages: dict[str, list[int]] = {}
    for index, host in enumerate(hosts):
        pages.setdefault(host, []).append(index)
    found = []
    for host, some in pages.items():
        drawn = sorted(random.Random(f"{seed} {host}").sample(some, most)) if len(some) > most else some
        own = [layouts[index] for index in drawn]
        labels, matrix = clusters(own, distance), vectors(own)
        for label in range(int(labels.max()) + 1):
            members = np.flatnonzero(labels == label)
            inside = matrix[members]
            similarity = np.asarray(inside @ inside.sum(axis=0).T).ravel()
            best = members[int(np.argmax(similarity.round(9)))]
            found.append(Representative(drawn[int(best)], len(members)))
    return sorted(found)
