"""Hash the texts of a page with their places, to compare the pages of a site."""

from __future__ import annotations

import re
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Page
from scrapy_dripper.page.tags import LONGEST_CLASS

Bools = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]

HASH = np.dtype("<u8")
"""The data type of a hash, in the memory, in its file and in messages to worker processes."""
AROUND = 3
"""Number of elements that define a place: that of the block and the nearest ones around it."""
PLACE = np.uint64(32)
"""Number of the lower bits of a hash, which identify the text. The upper bits identify the place."""
MOST_TEXTS = 1_000
"""Maximum number of distinct texts in the digest of a page. Most pages have a few hundred."""

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
                    names[signature] = name_of(tree.nodes[node].tag, tree.nodes[node].get("class") or "")
                parts.append(names[signature])
                node = parents[node]
            of_context[context] = _half(b"".join(parts))
        # A hash is little-endian, so the lower half comes first.
        found += [_half(text.encode("utf-8", "surrogatepass")), of_context[context]]
    return np.frombuffer(b"".join(found), dtype=HASH)


def _half(data: bytes) -> bytes:
    """Return a hash of half the size."""
    return blake2b(data, digest_size=HASH.itemsize // 2).digest()


def name_of(tag: object, classes: str) -> bytes:
    own = (name for name in classes[:LONGEST_CLASS].split() if not _digit(name))
    return f"{tag} {' '.join(own)}\n".encode("utf-8", "surrogatepass")


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
