"""A page: one HTML document, parsed once and cut into blocks, as columns over its nodes and its blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntFlag
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from lxml.html import HtmlElement

Ints = npt.NDArray[np.int32]

NOBODY = -1
"""Owner of a piece of the page that is never part of the output."""

T = TypeVar("T", int, Ints)


def gap_before(block: T) -> T:
    """Return the owner of what stands in the gap before a block; the gap behind the last of n is that before block n.

    A block owns what is its own by its number, from 0 on, so gaps have the numbers from -2 down.
    """
    return -2 - block


def block_behind(gap: T) -> T:
    """Return the block behind a gap: the inverse of :func:`gap_before`."""
    return -2 - gap


def by_owner(blocks: npt.NDArray[Any], gaps: npt.NDArray[Any], nobody: object) -> npt.NDArray[Any]:
    """Return the values of all owners as an array that the columns of owners are indexes into.

    ``blocks`` has shape (n,) and ``gaps`` shape (n + 1,); ``nobody`` is the value of :data:`NOBODY`. The result has
    shape (2n + 2,): negative numbers of owners count from its end.
    """
    return np.concatenate([blocks, gaps[::-1], np.array([nobody], dtype=blocks.dtype)])


class Flag(IntFlag):
    """Where a node stands, by its own or an ancestor's tag, ARIA role or attributes."""

    NAV = 1 << 0
    HEADER = 1 << 1
    FOOTER = 1 << 2
    ASIDE = 1 << 3
    MAIN = 1 << 4
    ARTICLE = 1 << 5
    SECTION = 1 << 6
    FORM = 1 << 7
    HIDDEN = 1 << 8
    NOSCRIPT = 1 << 9
    DIALOG = 1 << 10
    TABLE = 1 << 11
    LIST = 1 << 12
    LINK = 1 << 13
    BUTTON = 1 << 14
    FIGURE = 1 << 15
    HEADING = 1 << 16
    PARAGRAPH = 1 << 17
    PREFORMATTED = 1 << 18
    QUOTE = 1 << 19
    DEFINITION = 1 << 20
    ARIA = 1 << 21
    DETAILS = 1 << 22
    STRONG = 1 << 23
    CODE = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The nodes of a page in document order, as columns of length m.

    ``end[i]`` is one past the last node of the subtree of node i, so a subtree is a slice. The owner columns say which
    block a node's own text, its tail and the node itself (an image, a line break) belong to: a block number, the gap
    before a block (:func:`gap_before`), or :data:`NOBODY`.
    """

    nodes: list[HtmlElement]
    parent: Ints
    end: Ints
    tag: Ints
    """Index into :data:`scrapy_dripper.page.tags.TAGS`, 0 for a tag that is not there."""
    signature: Ints
    """Number of the pair of tag and class attribute, equal for equal pairs of a page."""
    names: list[str]
    """Class and id attributes of the node, separated by a space."""
    flags: Ints
    """Bit set of :class:`Flag`, inherited from ancestors."""
    depth: Ints
    block_start: Ints
    """Number of blocks before the node's first block."""
    block_end: Ints
    """One past the node's last block."""
    text_owner: Ints
    tail_owner: Ints
    self_owner: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The blocks of a page in document order, as columns of length n."""

    text: list[str]
    context: Ints
    """The node whose run, or whole content, the block is."""
    leaf: Ints
    """The innermost node around the block's first text."""
    links: Ints
    link_chars: Ints
    bold_chars: Ints
    images: Ints
    """Images in the block or between it and the block before."""

    def __len__(self) -> int:
        return len(self.text)


@dataclass(frozen=True, slots=True)
class About:
    """What the head and the scripts of a page say of it."""

    kind: str = ""
    """``og:type`` of the Open Graph protocol, in lower case."""
    types: frozenset[str] = frozenset()
    """Types of schema.org that its JSON-LD names, in lower case."""
    description: int = 0
    """Characters of its longest description."""
    dated: bool = False
    """True if it says when it was published."""
    script_chars: int = 0
    """Characters of scripts other than JSON-LD."""
    headlines: tuple[str, ...] = ()
    """What it calls itself: ``og:title``, ``twitter:title`` and the headlines in its JSON-LD."""
    site: str = ""
    """``og:site_name``."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the configuration of a page asks of whoever labels it."""

    favor: str = "balanced"
    """Answer to ``DRIPPER_FAVOR``."""
    comments: str = "auto"
    """Answer to ``DRIPPER_COMMENTS``."""
    min_quality: float | None = None
    """Answer to ``DRIPPER_MIN_QUALITY``."""


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """One parsed document."""

    url: str
    base_url: str
    """The URL that relative links resolve against: ``url``, or what ``<base href>`` makes of it."""
    title: str | None
    tree: Tree
    blocks: Blocks
    truncated: bool = False
    """True for the first part of an oversize page."""
    scripts: tuple[str, ...] = ()
    """Scripts that say how the page writes formulas: their text, or their URL."""
    about: About = About()
    """What its head and scripts say of it."""
    oversize: str = "fallback"
    """What an engine does if the page is too long for it: an answer to ``DRIPPER_OVERSIZE``."""
    wishes: Wishes = Wishes()

    def first_blocks(self, n: int) -> Page:
        """Return the page with its first n blocks only; the rest of the tree stays, owned by nobody."""
        if n >= len(self.blocks):
            return self
        tree, blocks = self.tree, self.blocks

        def keep(owner: Ints) -> Ints:
            return np.where((owner >= n) | (owner < gap_before(n)), NOBODY, owner).astype(np.int32)

        return replace(
            self,
            tree=replace(
                tree,
                block_start=np.minimum(tree.block_start, n),
                block_end=np.minimum(tree.block_end, n),
                text_owner=keep(tree.text_owner),
                tail_owner=keep(tree.tail_owner),
                self_owner=keep(tree.self_owner),
            ),
            blocks=Blocks(
                text=blocks.text[:n],
                context=blocks.context[:n],
                leaf=blocks.leaf[:n],
                links=blocks.links[:n],
                link_chars=blocks.link_chars[:n],
                bold_chars=blocks.bold_chars[:n],
                images=blocks.images[:n],
            ),
            truncated=True,
        )
