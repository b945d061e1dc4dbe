"""The nodes of a tree in document order, as lists for both cutters."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from scrapy_dripper.page.page import Flag
from scrapy_dripper.page.tags import CELLS, KINDS, TAG_FLAGS, Kind

if TYPE_CHECKING:
    from lxml.html import HtmlElement

BREAK = "\0"
"""Marks a line break while text is collected. The parser never returns NUL itself."""


class Nodes:
    """The first ``limit`` nodes of a tree in document order, so that a subtree is a slice."""

    def __init__(self, root: HtmlElement, limit: int) -> None:
        self.node: list[HtmlElement] = list(islice(root.iter(), limit + 1))
        self.truncated = len(self.node) > limit
        del self.node[limit:]
        m = len(self.node)
        number = {node: i for i, node in enumerate(self.node)}
        self.parent = [-1, *(number[node.getparent()] for node in self.node[1:])]
        self.end = end = list(range(1, m + 1))
        for i in range(m - 1, 0, -1):
            p = self.parent[i]
            if end[i] > end[p]:
                end[p] = end[i]
        self.tag = [str(node.tag) for node in self.node]
        self.text: list[str | None] = [node.text for node in self.node]
        self.tail: list[str | None] = [node.tail for node in self.node]

    def __len__(self) -> int:
        return len(self.node)

    def children(self, first: int, last: int) -> list[int]:
        """Return the root nodes of a slice of whole subtrees."""
        children = []
        while first < last:
            children.append(first)
            first = self.end[first]
        return children


class DescribedNodes(Nodes):
    """Nodes with columns for their tags, classes and ids."""

    def __init__(self, root: HtmlElement, limit: int) -> None:
        super().__init__(root, limit)
        self.kind = [KINDS.get(tag, Kind.BLOCK if "-" in tag else Kind.INLINE) for tag in self.tag]
        self.name: list[str] = [node.get("class", "") for node in self.node]
        self.id: list[str] = [node.get("id", "") for node in self.node]
        pairs: dict[tuple[str, str], int] = {}
        self.signature = [pairs.setdefault(pair, len(pairs)) for pair in zip(self.tag, self.name, strict=True)]
        self.depth = [0] * len(self)
        self.flags = [int(TAG_FLAGS.get(tag, 0)) for tag in self.tag]
        """Flags from tags, without those from roles or attributes."""
        for i, p in enumerate(self.parent):
            if p >= 0:
                self.depth[i] = self.depth[p] + 1
                self.flags[i] |= self.flags[p]

    def read(self, around: int, lead: str | None, first: int, last: int, seen: list[bool]) -> tuple[str, int]:
        """Return the text of a slice of whole subtrees, and the innermost node around its first word.

        ``lead`` is the text before the slice, directly in node ``around``. Nodes that are not ``seen`` are left out,
        but their tails are not. White space is collapsed as in a browser, and each line break becomes a newline.
        """
        pieces: list[str] = []
        leaf = -1

        def add(text: str | None, where: int) -> None:
            nonlocal leaf
            if text and seen[where]:
                pieces.append(text)
                if leaf < 0 and not text.isspace():
                    leaf = where

        add(lead, around)
        open_nodes: list[int] = []
        i = first
        while i < last or open_nodes:
            if open_nodes and self.end[open_nodes[-1]] <= i:
                done = open_nodes.pop()
                pieces += self._edge(done)
                add(self.tail[done], self.parent[done])
            elif seen[i]:
                pieces += [BREAK] if self.kind[i] == Kind.BREAK else self._edge(i)
                add(self.text[i], i)
                open_nodes.append(i)
                i += 1
            else:
                add(self.tail[i], self.parent[i])
                i = self.end[i]
        leaf = leaf if leaf >= 0 else around
        return collapsed("".join(pieces), bool(self.flags[leaf] & Flag.PREFORMATTED)), leaf

    def _edge(self, i: int) -> list[str]:
        """Return the separator at the beginning or the end of an element."""
        if self.kind[i] != Kind.BLOCK:
            return []
        return [" " if self.tag[i] in CELLS else BREAK]


def collapsed(text: str, preformatted: bool) -> str:
    """Return a text with white space collapsed as in a browser, and a newline for each :data:`BREAK`."""
    if preformatted:
        return text.replace(BREAK, "\n").strip("\n").rstrip()
    if BREAK not in text:
        return " ".join(text.split())
    lines = (" ".join(line.split()) for line in text.split(BREAK))
    return "\n".join(line for line in lines if line)
