"""Scores of labels, and of the DOM nodes below labelled blocks.

DOM nodes are counted as in Alarte and Silva, "Page-Level Main Content Extraction from Heterogeneous Webpages" (2020),
section 4. The nodes of a page are ``<body>`` (Definition 2.1), the elements in it, and its texts that are not blank. If
a subtree has main text and no other text, all of its nodes are main (Definition 2.3). So an image is main if it stands
within the main content.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from scrapy_dripper.learning.metrics import PRF, count_prf
from scrapy_dripper.page import Page

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def labels_prf(found: Bools, wanted: Bools) -> PRF:
    """Compare labels. All values are 1 if both have no main ones."""
    return count_prf(int((found & wanted).sum()), int(found.sum()), int(wanted.sum()))


def node_prf(page: Page, found: Bools, truth: Bools) -> PRF:
    """Compare the main nodes of two labellings of a page's blocks, shape (n,). All values are 1 if both have none."""
    return labels_prf(main_nodes(page, found), main_nodes(page, truth))


def main_nodes(page: Page, main: Bools) -> Bools:
    """Return which nodes are main, given the labels of blocks. The shape is (3m,): the elements, their texts, and their
    tails.
    """
    tree, m = page.tree, len(page.tree.nodes)
    labels = np.append(main.astype(np.int64), -1)  # -1 for texts that are in no block
    text, tail = (labels[np.where(owner >= 0, owner, -1)] for owner in (tree.text_owner, tree.tail_owner))
    parent = np.maximum(tree.parent, 0)

    def whole(label: int) -> Ints:
        """Return the number of texts with a label in each subtree."""
        own = (text == label) + np.bincount(parent[1:], tail[1:] == label, minlength=m).astype(np.int64)
        before: Ints = np.concatenate([[0], np.cumsum(own)])
        return np.asarray(before[tree.end] - before[:-1])

    body = next((i for i, node in enumerate(tree.nodes) if node.tag == "body"), m)
    inside = np.arange(m) >= body
    inside[tree.end[body] if body < m else m :] = False
    roots = np.flatnonzero(inside & (whole(1) > 0) & (whole(0) == 0))
    opened = np.zeros(m + 1, dtype=np.int64)
    np.add.at(opened, roots, 1)
    np.add.at(opened, tree.end[roots], -1)
    elements = np.cumsum(opened[:-1]) > 0
    texts = _filled(node.text for node in tree.nodes) & (elements | (text == 1))
    tails = _filled(node.tail for node in tree.nodes) & (elements[parent] | (tail == 1))
    return np.concatenate([elements, texts, tails])


def _filled(texts: Iterable[str | None]) -> Bools:
    return np.array([bool(text and text.strip()) for text in texts])
