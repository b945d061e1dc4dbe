"""The data model of a page: an HTML document, parsed once and cut into blocks, as columns of nodes and blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate, compress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.data import FallbackReason, Metadata
from scrapy_dripper.declared import Declared
from scrapy_dripper.declared.schema_org import Fact

if TYPE_CHECKING:
    from lxml.html import HtmlElement

Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Styles: TypeAlias = Mapping[str, str]
"""Declarations of style sheets by class name."""


class Over(NamedTuple):
    """A limit that a page exceeds."""

    problem: str
    """What the page has, and the limit, in words."""
    setting: str | None = None
    """The setting with the limit, as it is written in settings; None for a limit that no setting changes."""


class PageError(Exception):
    """The document cannot be processed by the model. ``reason`` classifies the error and the message explains it.

    ``limit`` is the setting whose limit the document exceeds, if there is one.
    """

    def __init__(self, reason: FallbackReason, message: str, limit: str | None = None) -> None:
        super().__init__(message)
        self.reason, self.limit = reason, limit


NOT_A_PAGE = (FallbackReason.EMPTY_BODY, FallbackReason.NOT_HTML)
"""Reasons for which a document has nothing that could be extracted in any way."""

NOBODY = -1
"""Owner of parts of the page that are never in the output."""

T = TypeVar("T", int, Ints)


def gap_before(block: T) -> T:
    """Return the owner number of the gap before a block. The gap after the last of n blocks is the one before block n.

    Blocks have the owner numbers 0 and up, so gaps have -2 and down.
    """
    return -2 - block


def block_behind(gap: T) -> T:
    """Return the block after a gap: the inverse of :func:`gap_before`."""
    return -2 - gap


def is_gap(owner: Ints) -> npt.NDArray[np.bool_]:
    """Return True for each owner number that is that of a gap."""
    return owner < NOBODY


def by_owner(blocks: npt.NDArray[Any], gaps: npt.NDArray[Any], nobody: object) -> npt.NDArray[Any]:
    """Return the values of all owners as an array that can be indexed with the owner columns.

    ``blocks`` has shape (n,) and ``gaps`` shape (n + 1,); ``nobody`` is the value for :data:`NOBODY`. The result has
    shape (2n + 2,). Gaps are at its end, since negative owner numbers index from the end.
    """
    return np.concatenate([blocks, gaps[::-1], np.array([nobody], dtype=blocks.dtype)])


class Flag:
    """The context of a node, from the tag, ARIA role or attributes of the node or one of its ancestors.

    The bits are plain integers: with a member of an enum, one ``&`` of NumPy takes as long as 40.
    """

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


FLAGS: Mapping[str, int] = {name: bit for name, bit in vars(Flag).items() if name.isupper()}
"""The flags by name, in the order of their bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The nodes of a page in document order, as columns of length m.

    ``end[i]`` is one past the last node of the subtree of node i, so a subtree is a slice. The owner columns give the
    owner of a node's text, of its tail and of the node itself (an image, a line break). An owner is a block number, the
    gap before a block (:func:`gap_before`), or :data:`NOBODY`.
    """

    nodes: list[HtmlElement]
    parent: Ints
    end: Ints
    tag: Ints
    """The tag's number in :data:`scrapy_dripper.page.tags.TAGS`; 0 for other tags."""
    tag_class: Ints
    """A number for each distinct pair of tag and class attribute on the page."""
    names: list[str]
    """Class and id attributes of the node, separated by a space."""
    flags: Ints
    """Bit set of :class:`Flag`, inherited from ancestors."""
    may_hide: list[int]
    """The nodes whose attributes may hide them: with a style, or ``hidden``."""
    refers: list[int]
    """The nodes that may refer to the id of another node: with one of
    :data:`~scrapy_dripper.page.tags.REFERENCES`, or with a link within the page."""
    tabs: list[int]
    """The nodes with a role of tabs: ``tab``, ``tablist``, ``tabpanel``."""
    typed: list[int]
    """The nodes with an ``itemtype``."""
    tells: list[int]
    """The nodes that may tell a date or an author: with ``href``, ``datetime``, ``title``, ``itemprop`` or ``rel``."""
    depth: Ints
    block_start: Ints
    """The node's first block: the number of blocks before it."""
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
    """The element that holds the block's inline run, or whose whole content the block is."""
    leaf: Ints
    """The innermost node around the block's first text."""
    links: Ints
    link_chars: Ints
    bold_chars: Ints
    images: Ints
    """Number of images in the block, or between it and the previous block."""

    def __len__(self) -> int:
        return len(self.text)

    def chars(self) -> npt.NDArray[np.int64]:
        """Return the number of characters of each block."""
        return np.fromiter(map(len, self.text), dtype=np.int64, count=len(self.text))

    def words_before(self) -> list[int]:
        """Return the number of words before each block, and before the end: n + 1 numbers."""
        return [0, *accumulate(len(text.split()) for text in self.text)]


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """What is written of a page of m nodes, as columns of shape (m,)."""

    nodes: Bools
    """The elements."""
    text: Bools
    """The elements whose text before their first child is written."""
    tail: Bools
    """The elements, written or not, behind which text is written."""


_DEFAULTS = Config()


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """A parsed HTML document, cut into blocks."""

    url: str
    declared: Declared
    """What the page says of itself."""
    tree: Tree
    blocks: Blocks
    over: Over | None = None
    """The limit that an oversize page exceeds, of which this is only the first part; None for a whole page."""
    config: Config = _DEFAULTS
    """The options of the document."""
    metadata: Metadata | None = None
    """What the page says about itself; None unless the configuration asks for it, or if it cannot be read."""
    facts: tuple[Fact, ...] = ()
    """The facts that the page declares about itself."""
    styles: Styles = field(default_factory=dict)
    """What its own style sheets declare for classes: fonts, white space, and what is not shown."""

    def text_of(self, main: Bools) -> str:
        """Return the text of the main blocks, each on one or more lines. Outside preformatted text, white space
        collapses."""
        return "\n".join(compress(self.blocks.text, main.tolist()))

    @property
    def base_url(self) -> str:
        """The URL that relative links resolve against: that of ``<base href>``, or ``url``."""
        return self.declared.base_url

    @property
    def title(self) -> str | None:
        """The text of ``<title>``, which often has the name of the site as well."""
        return self.declared.document_title or None

    @property
    def headline(self) -> str | None:
        """What the page is called: the title of its metadata."""
        return self.declared.title

    def holder(self, block: int) -> int:
        """Return the innermost element that holds more than a block, or -1 if there is none."""
        return self.around(int(self.blocks.context[block]), block, block + 1)

    def around(self, node: int, a: int, b: int) -> int:
        """Return the innermost element, from a node up, that holds more than the blocks a to b - 1, or -1."""
        tree = self.tree
        while node >= 0 and tree.block_start[node] >= a and tree.block_end[node] <= b:
            node = int(tree.parent[node])
        return node

    def within(self, nodes: Sequence[int]) -> Bools:
        """Return for each of the n blocks whether it is inside one of the nodes, shape (n,)."""
        change = np.zeros(len(self.blocks) + 1, dtype=np.int64)
        np.add.at(change, self.tree.block_start[[*nodes]], 1)
        np.add.at(change, self.tree.block_end[[*nodes]], -1)
        inside: Bools = np.cumsum(change[:-1]) > 0
        return inside

    def first_blocks(self, n: int) -> Page:
        """Return the page with only its first n blocks. The rest of the tree stays, with the owner :data:`NOBODY`."""
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
            blocks=Blocks(*(getattr(blocks, column.name)[:n] for column in fields(blocks))),
        )
