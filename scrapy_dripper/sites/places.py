"""Hash the texts of a page with their places, and the paths to its elements, to compare the pages of a site."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Page
from scrapy_dripper.page.tags import LONGEST_CLASS
from scrapy_dripper.sites.columns import HASH, Bools, Hashes

if TYPE_CHECKING:
    from lxml.html import HtmlElement

Vector = npt.NDArray[np.uint8]

AROUND = 3
"""Number of elements that define a place: that of the block and the nearest ones around it."""
PLACE = np.uint64(32)
"""Number of the lower bits of a hash, which identify the text. The upper bits identify the place."""
MOST_TEXTS = 1_000
"""Maximum number of distinct texts in the digest of a page. Most pages have a few hundred."""

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
_digit = re.compile(r"\d").search


def places(page: Page) -> Hashes:
    """Return a hash of the place and the text of each of a page's n blocks, of shape (n,).

    The place consists of the tags and classes of the block's element and the two elements around it. A headline is thus
    in another place than a link to it in a list. Class names with digits are left out, because many of them identify
    the page. The upper half of the bits identifies the place (:data:`PLACE`), so the texts of one place can be found.
    """
    tree = page.tree
    parents, signatures = tree.parent.tolist(), tree.signature.tolist()
    names: dict[int, bytes] = {}
    of_context: dict[int, bytes] = {}
    found = []
    for text, context in zip(page.blocks.text, page.blocks.context.tolist(), strict=True):
        if context not in of_context:
            parts, node = [], context
            for _ in range(AROUND):
                if node < 0:
                    break
                signature = signatures[node]
                if signature not in names:
                    names[signature] = _name_of(tree.nodes[node])
                parts.append(names[signature])
                node = parents[node]
            of_context[context] = _half(b"".join(parts))
        # A hash is little-endian, so the lower half comes first.
        found += [_half(text.encode("utf-8", "surrogatepass")), of_context[context]]
    return np.frombuffer(b"".join(found), dtype=HASH)


def _half(data: bytes) -> bytes:
    """Return a hash of half the size."""
    return blake2b(data, digest_size=HASH.itemsize // 2).digest()


def _name_of(node: HtmlElement) -> bytes:
    own = (name for name in (node.get("class") or "")[:LONGEST_CLASS].split() if not _digit(name))
    return f"{node.tag} {' '.join(own)}\n".encode("utf-8", "surrogatepass")


def digest(found: Hashes, main: Bools) -> bytes:
    """Return what :meth:`SiteMemory.learn` needs: the number of main hashes, the main hashes, and the others.

    Both arrays have shape (n,). The digest holds each hash once.
    """
    own = set(found[main].tolist())  # a few hundred, for which sets are faster than arrays
    kept = sorted(own)[:MOST_TEXTS]
    others = sorted(set(found.tolist()) - own)[: MOST_TEXTS - len(kept)]
    return np.array([len(kept), *kept, *others], dtype=HASH).tobytes()


def hashes(data: bytes) -> Hashes:
    """Return the hashes that bytes hold. Raise ValueError for an invalid size."""
    return np.frombuffer(data, dtype=HASH)


def parts_of(data: bytes) -> tuple[Hashes, Hashes]:
    """Return the main hashes of a digest, and the others. Raise ValueError if the digest is invalid."""
    values = hashes(data)
    if not len(values) or not int(values[0]) < len(values) <= MOST_TEXTS + 1:
        raise ValueError(f"expected the digest of a page (got {len(data):,} bytes)")
    main = int(values[0])
    return values[1 : 1 + main], values[1 + main :]


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
    named = (blake2b(_name_of(kind), digest_size=HASH.itemsize).digest() for kind in kinds)
    names = np.frombuffer(b"".join(named), dtype=HASH)[which]
    tags = [str(kind.tag) for kind in kinds]
    boxes = np.array([tag in _BOXES or "-" in tag for tag in tags], dtype=np.bool_)[which]  # or a custom element
    order = np.argsort(tree.depth, kind="stable")
    levels = np.split(order, np.flatnonzero(np.diff(tree.depth[order])) + 1)
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
