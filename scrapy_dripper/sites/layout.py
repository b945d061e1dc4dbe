"""The layout of a page: hashes of the paths to its elements, and a vector that is similar for pages of one template."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Ints, Page
from scrapy_dripper.sites.places import HASH, Bools, Hashes, name_of

Vector = npt.NDArray[np.uint8]

SIZE = 1_024
"""Length of the vector of a page. The names of elements at each depth, and the pairs of parent and child, are hashed
into this many slots and counted.
"""
DEPTH = 12
"""Maximum depth of the elements that are counted. Deeper elements belong to the content, which differs from page to
page.
"""

_BOXES = frozenset("div section article aside nav header footer main form fieldset details summary dialog".split())
_SCALE = 16.0
_UP, _DEPTH, _EDGE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_SHIFT = np.uint64(64 - SIZE.bit_length() + 1)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The layout of a page with m nodes."""

    paths: Hashes
    """Hash of the tags and classes on the path from the root to each node, shape (m,)."""
    levels: list[npt.NDArray[np.intp]]
    """The nodes at each depth, from the root down."""
    boxes: Bools
    """True for elements with which a theme divides a page, such as ``div``, and False for those that authors use. Shape
    (m,).
    """
    vector: Vector
    """Logarithms of the counts in each slot, shape (:data:`SIZE`,)."""


def layout(page: Page) -> Layout:
    """Return the layout of a page. Class names with digits are left out, because many of them identify a single
    page.
    """
    tree = page.tree
    _, first, which = np.unique(tree.signature, return_index=True, return_inverse=True)
    kinds = [tree.nodes[node] for node in first.tolist()]
    names = np.array([_hash(kind.tag, kind.get("class") or "") for kind in kinds], dtype=np.uint64)[which]
    boxes = np.array([_is_box(str(kind.tag)) for kind in kinds], dtype=np.bool_)[which]
    levels = _levels(tree.depth)
    paths = names.copy()
    for nodes in levels[1:]:
        paths[nodes] = paths[tree.parent[nodes]] * _UP + names[nodes]
    high = np.flatnonzero(tree.depth <= DEPTH)
    inner = high[tree.parent[high] >= 0]
    at = names[high] + tree.depth[high].astype(np.uint64) * _DEPTH
    edges = names[tree.parent[inner]] * _EDGE + names[inner]
    slots = ((np.concatenate([at, edges]) * _UP) >> _SHIFT).astype(np.intp)
    counts = np.bincount(slots, minlength=SIZE)
    vector = np.where(counts > 0, _SCALE * (1 + np.log(np.maximum(counts, 1))), 0)
    return Layout(paths, levels, boxes, np.minimum(vector, 255).astype(np.uint8))


def alike(one: npt.NDArray[np.number], other: npt.NDArray[np.number]) -> float:
    """Return the cosine of two vectors; 0 if one of them is zero."""
    a, b = one.astype(np.float32), other.astype(np.float32)
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size else 0.0


def _levels(depth: Ints) -> list[npt.NDArray[np.intp]]:
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)


def _hash(tag: object, classes: str) -> int:
    digest = blake2b(name_of(tag, classes), digest_size=HASH.itemsize).digest()
    return int(np.frombuffer(digest, dtype=HASH)[0])


def _is_box(tag: str) -> bool:
    return tag in _BOXES or "-" in tag  # custom elements
