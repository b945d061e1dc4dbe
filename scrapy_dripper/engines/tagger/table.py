"""The pages of a batch as one table of nodes and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from scrapy_dripper.engines.tagger.columns import PRIME, Floats, Ints
from scrapy_dripper.engines.tagger.lexicon import keywords
from scrapy_dripper.page.page import Page


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The concatenated columns of a batch of pages with m nodes and n blocks in total."""

    parent: Ints
    """Number of the parent node. A root is its own parent."""
    tag: Ints
    signature: Ints
    flags: Ints
    near: Ints
    """Bit set of the keyword groups of the node and its two nearest ancestors."""
    far: Ints
    """Bit set of the keyword groups of the node and all its ancestors."""
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


def table(pages: Sequence[Page]) -> Table:
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
    return Table(
        parent=parent,
        tag=tag,
        signature=tree("signature") * len(pages) + page,
        flags=tree("flags"),
        near=near,
        far=far,
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
