"""Cut a tree into leaves and runs. The profiles of MinerU-HTML share this module.

A block element that holds no other is a leaf, and the text and inline elements between two blocks are a run. The
profiles differ in which elements are blocks, which nodes they remove, and what a model sees of a block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.blocks import MAX_NODES
from scrapy_dripper.page.head import about, math_settings, title_and_base
from scrapy_dripper.page.nodes import Nodes, ints, is_silent_content
from scrapy_dripper.page.page import NOBODY, Blocks, Flag, Ints, Tree, block_behind, is_gap
from scrapy_dripper.page.tags import KINDS, PLAYERS, TAGS, UNSEEN, Kind

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_NOBODY = np.int32(NOBODY)
_THEMSELVES = frozenset(tag for tag, kind in KINDS.items() if kind in (Kind.MEDIA, Kind.BREAK)) | PLAYERS | {"hr"}


class _Container:
    """An open element that holds blocks: its next child and its current run."""

    __slots__ = ("after", "first", "last", "lead", "next", "node")

    def __init__(self, node: int, lead: str | None) -> None:
        self.node = node
        self.next = node + 1
        self.begin(lead, -1)

    def begin(self, lead: str | None, after: int) -> None:
        """Begin a run with the text at the start of the container, or with the tail of node ``after``."""
        self.lead = lead.strip() if lead else ""
        self.after = after
        self.first = self.last = self.next


class RunCutter(ABC):
    """The state of the pass: properties of the nodes, and the columns being filled.

    A profile fills in ``dropped``, ``divides`` and ``holds``, and numbers the blocks.
    """

    ends_run = ""
    """A tag that divides, but belongs to the run before it."""
    dropped: list[bool]
    """For each node, whether the profile removes it."""
    divides: list[bool]
    """For each node, whether it ends the run before it."""
    holds: list[bool]
    """For each node that divides, whether it is cut into several blocks. If not, it is a leaf."""

    def __init__(self, root: HtmlElement) -> None:
        self.nodes = nodes = Nodes(root, MAX_NODES, attributes=False)
        m = len(nodes)
        self.block_start, self.block_end = [0] * m, [0] * m
        self.text_owner, self.tail_owner, self.self_owner = [NOBODY] * m, [NOBODY] * m, [NOBODY] * m
        self.numbers: dict[tuple[int, str], int] = {}  # numbers of text-only blocks by container and text
        self.text: list[str] = []
        self.context: list[int] = []
        self.leaf: list[int] = []

    @abstractmethod
    def number(self, node: int, lead: str, first: int, last: int) -> int:
        """Return the owner number of a leaf or run: that of a new or repeated block, or that of the gap if it is empty.

        The leaf or run is an element like ``node``, with the text ``lead`` and the nodes from ``first`` up to ``last``.
        """

    @abstractmethod
    def drops(self, i: int) -> bool:
        """Return True if the profile removes a node, whatever is around it."""

    def fields(self, url: str) -> dict[str, Any]:
        """Cut the tree, and return the fields of its page."""
        self.walk()
        nodes = self.nodes
        title, base_url = title_and_base(nodes.node[0], url)
        tree = self._tree()
        return {
            "url": url,
            "base_url": base_url,
            "title": title,
            "tree": tree,
            "blocks": self._columns(tree),
            "truncated": nodes.truncated,
            "scripts": math_settings([node for node in nodes.node if node.tag == "script"]),
            "about": about([node for node in nodes.node if node.tag in ("script", "meta")]),
        }

    def look(self) -> None:
        """Fill in which nodes the profile removes, and the text of which nodes is visible."""
        nodes = self.nodes
        self.dropped, self.seen = dropped, seen = [False] * len(nodes), [True] * len(nodes)
        for i, (tag, p) in enumerate(zip(nodes.tag, nodes.parent, strict=True)):
            if p < 0:
                continue
            dropped[i] = dropped[p] or self.drops(i)
            seen[i] = seen[p] and not dropped[i] and tag not in UNSEEN and nodes.tag[p] not in ("video", "audio")

    def add(self, node: int, lead: str, first: int, last: int, context: int) -> None:
        """Add a block."""
        ended = last > first and self.nodes.tag[last - 1] == self.ends_run  # its tail begins the next run
        text, leaf = self.nodes.read(node, lead, first, last, self.seen, last - 1 if ended else -1)
        self.text.append(text)
        self.leaf.append(leaf)
        self.context.append(context)

    def _tree(self) -> Tree:
        nodes = self.nodes
        seen = np.array(self.seen)
        around = seen[np.maximum(ints(nodes.parent), 0)]
        silent = np.array([is_silent_content(node) for node in nodes.node])
        itself = (seen & np.array([tag in _THEMSELVES for tag in nodes.tag])) | (around & silent)
        return nodes.tree(
            block_start=ints(self.block_start),
            block_end=ints(self.block_end),
            text_owner=np.where(seen, ints(self.text_owner), _NOBODY),
            tail_owner=np.where(around, ints(self.tail_owner), _NOBODY),
            self_owner=np.where(itself, ints(self.self_owner), _NOBODY),
        )

    def _columns(self, tree: Tree) -> Blocks:
        n = len(self.text)
        owner = np.concatenate([tree.text_owner, tree.tail_owner])
        chars = np.array([len(text.strip()) if text else 0 for text in (*self.nodes.text, *self.nodes.tail)])
        flags = np.concatenate([tree.flags, tree.flags[np.maximum(tree.parent, 0)]])

        def count(owners: Ints, mask: npt.NDArray[np.bool_], weights: npt.NDArray[np.int64] | None = None) -> Ints:
            mask &= (owners >= 0) & (owners < n)
            return np.bincount(owners[mask], None if weights is None else weights[mask], minlength=n).astype(np.int32)

        # Nodes in a gap count towards the next block.
        behind = np.where(is_gap(tree.self_owner), block_behind(tree.self_owner), tree.self_owner)
        return Blocks(
            text=self.text,
            context=ints(self.context),
            leaf=ints(self.leaf),
            links=count(tree.text_owner, tree.tag == TAGS["a"]),
            link_chars=count(owner, flags & Flag.LINK != 0, chars),
            bold_chars=count(owner, flags & Flag.STRONG != 0, chars),
            images=count(behind, tree.tag == TAGS["img"]),
        )

    # ------------------------------------------------------------------ the pass
    def walk(self) -> None:
        """Number all blocks, and fill in the owners of their nodes."""
        nodes = self.nodes
        open_containers = [_Container(0, nodes.text[0])]
        while open_containers:
            here = open_containers[-1]
            child = here.next
            if child >= nodes.end[here.node]:
                self._flush(here)
                self.block_end[here.node] = len(self.text)
                open_containers.pop()
                continue
            here.next = nodes.end[child]
            ends = nodes.tag[child] == self.ends_run
            if self.dropped[child] or not self.divides[child] or ends:
                here.last = here.next
                if not ends or self.dropped[child]:
                    continue
            self._flush(here)
            here.begin(nodes.tail[child], child)
            if ends:
                continue
            if self.holds[child]:
                self.block_start[child] = len(self.text)
                open_containers.append(_Container(child, nodes.text[child]))
            else:
                owner = self.number(child, nodes.text[child] or "", child + 1, nodes.end[child])
                self._own(owner, child, nodes.end[child])
                self.block_end[child] = len(self.text)

    def _flush(self, run: _Container) -> None:
        if run.lead or run.last > run.first:
            owner = self.number(run.node, run.lead, run.first, run.last)
            self._own(owner, run.first, run.last)
            if run.after < 0:
                self.text_owner[run.node] = owner
            else:
                self.tail_owner[run.after] = owner

    def _own(self, owner: int, first: int, last: int) -> None:
        size = last - first
        before = owner if owner >= 0 else block_behind(owner)
        self.block_start[first:last] = self.block_end[first:last] = [before] * size  # these nodes hold no blocks
        for column in (self.text_owner, self.tail_owner, self.self_owner):
            column[first:last] = [owner] * size
