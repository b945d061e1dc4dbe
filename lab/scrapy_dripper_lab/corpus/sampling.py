"""Choose pages for annotation, as the Dripper paper does for its training data (section 4.1).

**Stage 1: layouts.** The pages of a host are clustered by the structure of their DOM, and each cluster is represented
by one page. The features and the similarity are those of the reference implementation. The pairs of parent and child
tags at each level have a weight of 0.7, and the classes and ids of elements at each level a weight of 0.3. Pages with a
cosine similarity of at least 0.95 are alike.

**Stage 2: balance** by language and format.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack, vstack
from sklearn.cluster import DBSCAN
from sklearn.feature_extraction import FeatureHasher
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
OTHER = "other"
"""The entry of the weights that is shared by all languages without a weight of their own."""

_UNSEEN = frozenset(("script", "style", "meta", "link", "noscript", "template", "br", "head"))
_PLAIN = frozenset(("a", "i", "b", "li", "tr", "td", "img", "p", "body"))
"""Elements whose classes and ids are ignored, because they often belong to a single text."""
_digits = re.compile(r"\d+").sub
_hasher = FeatureHasher(input_type="string", alternate_sign=False)

T = TypeVar("T", bound=Hashable)


def layout(root: HtmlElement) -> csr_matrix:
    """Return the structure of a parsed page as a unit row, in linear time. The inner product of two is their
    similarity.

    It is 0.7 times the cosine of their tags, plus 0.3 times the cosine of their names. If a page has no names, only its
    tags count.
    """
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
    parts = (normalize(_hasher.transform([sorted(words)])) for words in (tags, names))
    weights = (math.sqrt(TAG_SHARE), math.sqrt(1 - TAG_SHARE))
    return csr_matrix(normalize(hstack([weight * part for weight, part in zip(weights, parts, strict=True)])))


def clusters(layouts: Sequence[csr_matrix]) -> npt.NDArray[np.int64]:
    """Return the number of the cluster of each page, from 0 (DBSCAN). There has to be a page.

    Pages are in one cluster if they are alike, or if they are connected by a chain of pages that are alike. A page that
    is like no other is a separate cluster.
    """
    dbscan = DBSCAN(eps=DISTANCE, min_samples=1, metric="cosine", algorithm="brute")
    found: npt.NDArray[np.int64] = dbscan.fit_predict(csr_matrix(vstack(layouts)))
    return found


def representatives(hosts: Sequence[str], layouts: Sequence[csr_matrix]) -> dict[int, int]:
    """Return the index of a page for each cluster of each host, in order, with the number of pages in the cluster.

    It is the page with the greatest mean similarity to the pages of its cluster. If several are equal, it is the first
    of them. Pages without a host are clustered together. If a host has more than :data:`MOST_PAGES` pages, a random
    sample of that size is clustered.
    """
    pages: dict[str, list[int]] = {}
    for index, host in enumerate(hosts):
        pages.setdefault(host, []).append(index)
    found = {}
    for host, some in pages.items():
        drawn = sorted(random.Random(host).sample(some, MOST_PAGES)) if len(some) > MOST_PAGES else some
        own = [layouts[index] for index in drawn]
        labels, matrix = clusters(own), csr_matrix(vstack(own))
        for label in range(int(labels.max()) + 1):
            members = np.flatnonzero(labels == label)
            inside = matrix[members]
            similarity = np.asarray(inside @ inside.sum(axis=0).T).ravel()
            best = members[int(np.argmax(similarity.round(9)))]
            found[drawn[int(best)]] = len(members)
    return dict(sorted(found.items()))


def shares(counts: Mapping[T, int], n: int, weights: Mapping[T, float] | None = None) -> dict[T, int]:
    """Divide n among groups in proportion to their weights, but give no group more than its count.

    The rest of a group that is too small is divided among the others. By default, all weights are equal. If all counts
    add up to less than n, each group gets its count.
    """
    given = dict.fromkeys(counts, 0)
    weight = {name: 1.0 if weights is None else weights.get(name, 0.0) for name in counts}
    for _ in range(n):
        open_ = [name for name, count in counts.items() if given[name] < count and weight[name] > 0]
        if not open_:
            break
        given[min(open_, key=lambda name: (given[name] + 0.5) / weight[name])] += 1  # Sainte-Laguë
    return given


def balanced(
    languages: Sequence[str],
    formats: Sequence[str],
    hosts: Sequence[str],
    n: int,
    weights: Mapping[str, float] | None = None,
) -> list[int]:
    """Return the indexes of n pages in order, or of all pages if there are fewer.

    Each language has a weight in ``weights``; languages that are not in it share the weight of :data:`OTHER`. By
    default, all languages have the same weight. Within a language, all formats have the same weight. Within a format,
    no host gets a second page before every host has one.
    """
    groups: dict[str, dict[str, list[int]]] = {}
    for index, (language, kind) in enumerate(zip(languages, formats, strict=True)):
        name = language if weights is None or language in weights else OTHER
        groups.setdefault(name, {}).setdefault(kind, []).append(index)
    ordered = {name: dict(sorted(kinds.items())) for name, kinds in sorted(groups.items())}
    by_language = shares({name: sum(map(len, kinds.values())) for name, kinds in ordered.items()}, n, weights)
    chosen = []
    for name, kinds in ordered.items():
        by_format = shares({kind: len(some) for kind, some in kinds.items()}, by_language[name])
        for kind, some in kinds.items():
            rng = random.Random(f"{name} {kind}")
            chosen += _by_host(some, hosts, rng)[: by_format[kind]]
    return sorted(chosen)


def _by_host(some: Sequence[int], hosts: Sequence[str], rng: random.Random) -> list[int]:
    """Return the pages in random order, first one of each host, then the second of each, and so on."""
    order = list(some)
    rng.shuffle(order)
    seen: dict[str, int] = {}
    rounds = {}
    for index in order:
        rounds[index] = seen[hosts[index]] = seen.get(hosts[index], 0) + 1
    return sorted(order, key=rounds.__getitem__)
