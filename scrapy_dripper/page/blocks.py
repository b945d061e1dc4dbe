"""Cut a tree into blocks, in one pass over its nodes: the profile ``native``.

A block is an inline run, a leaf block element, a whole data table or a whole short list (Dripper paper, 3.2). Every
visible text with a word character is in exactly one block. Navigation, footers and hidden parts are flagged but not
dropped, because dropping them would cost a perfect model 2 to 17 points.

Other structures are not joined here. That was measured and dropped (docs/internals/results.md, "Measured, and
left out"): their blocks get the same label in :mod:`scrapy_dripper.choose.structures`.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate, chain
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from scrapy_dripper.characters import xml_text
from scrapy_dripper.declared import Declared, read_declared
from scrapy_dripper.declared.elements import LOOSE
from scrapy_dripper.declared.schema_org import declared_facts
from scrapy_dripper.page.nodes import (
    BREAK,
    Nodes,
    collapsed,
    drawn,
    ints,
    is_silent_content,
    kinds_in_text,
    may_be_hidden,
)
from scrapy_dripper.page.page import NOBODY, Blocks, Flag, Page, Styles, gap_before
from scrapy_dripper.page.tags import (
    CELLS,
    LONGEST_CLASS,
    OWNED,
    SILENT,
    TABLE_PARTS,
    UNSEEN,
    Kind,
)

if TYPE_CHECKING:
    from lxml.html import HtmlElement

CUT = 1
"""Version of the rules in this module. The manifest of a model names the version that it was trained with. Increase it
with any change of the blocks that makes trained models unusable. ``tests/page/test_cut.py`` detects such changes."""

MAX_CELL_CHARS = 400
"""A table with a longer cell, or a list with a longer item, counts as layout and is split into several blocks."""

_WHOLE = frozenset({"table", "ul", "ol"})
_PARTS = TABLE_PARTS | {"li"}
_WRAPPERS = frozenset({"p", "div"})
_PLAYERS = frozenset({"video", "audio"})
_SPACED = CELLS | _WRAPPERS
_BLOCK, _BR, _MEDIA = Kind.BLOCK, Kind.BREAK, Kind.MEDIA
_LINK, _STRONG, _PRE, _CODE = Flag.LINK, Flag.STRONG, Flag.PREFORMATTED, Flag.CODE
_MARKED = _LINK | _STRONG
_word = re.compile(r"\w").search
BANNER = "banners"
"""The id of the banner that Google Docs adds to a published document."""


def cut(root: HtmlElement, url: str = "", declared: Declared | None = None) -> Page:
    """Cut a parsed document into a page, which takes ownership of the tree and removes invisible elements from it.

    ``declared`` is what the page says of itself, if that has been read.
    """
    declared = declared or read_declared(root, url)
    special = list(root.iter(*UNSEEN, *_PLAYERS))  # each walk over the tree takes as long as its elements are many
    unseen = [element for element in special if element.tag not in _PLAYERS]
    styles = class_styles(unseen)
    kept = drawn(unseen)
    _drop([element for element in unseen if not (element in kept or is_silent_content(element))])
    for element in unseen:
        if element.tag == "iframe":  # its content is for browsers without frames
            element.text = None
    for player in special:
        if player.tag not in _PLAYERS:
            continue
        player.text = None  # other content is for browsers that cannot play it
        for child in list(player):
            child.tail = None
            if child.tag not in ("source", "track"):
                player.remove(child)
    if any(
        "font-" in rule for rule in styles.values()
    ):  # of a word processor: Google Docs adds a banner to what is published
        _drop([element for element in root.iter("div") if element.get("id") == BANNER])
    page, declaring = _Cutter(root).page(url, declared)
    facts = declared_facts(declared.linked.roots, chain(unseen, declaring))
    return replace(page, facts=facts, styles=styles)


def _drop(elements: list[HtmlElement]) -> None:
    """Remove elements, given in document order, from their tree. Their tails are joined with the text before them."""
    # Tails that stay in the tree would be separate text nodes, and lxml takes quadratic time to read many in a row.
    inside: dict[HtmlElement, list[str]] = {}
    behind: dict[HtmlElement, list[str]] = {}
    for element in reversed(elements):  # inner ones first, because lxml walks through the subtrees that it moves
        texts = behind.pop(element, [])
        parent = element.getparent()
        tail = element.tail
        if tail:
            texts.append(tail)
        if texts:
            before = element.getprevious()
            if before is None:
                inside[parent] = texts
            else:
                behind[before] = texts
        parent.remove(element)
    for parent, texts in inside.items():
        parent.text = xml_text("".join((parent.text or "", *reversed(texts))))
    for before, texts in behind.items():
        before.tail = xml_text("".join((before.tail or "", *reversed(texts))))


class _Cutter:
    """The state of the pass: the columns of the tree and of the blocks, and the current run."""

    run_leaf: int
    run_links: int
    run_link_chars: int
    run_bold_chars: int

    # With this many attributes, access to them without slots takes longer.
    __slots__ = (
        "block_contexts", "block_end", "block_leaves", "block_start", "block_texts", "columns", "counts", "elements",
        "end", "flags", "glue", "itself", "kinds", "node_texts", "open_blocks", "owner", "parent", "pictures", "run",
        "run_bold_chars", "run_leaf", "run_link_chars", "run_links", "run_self", "run_silent", "run_slots", "tags",
        "tail", "tails", "whole", "whole_end", "whole_start",
    )  # fmt: skip

    def __init__(self, root: HtmlElement) -> None:
        self.columns = columns = Nodes(root, attributes=True)
        m = len(columns.node)
        self.elements, self.parent, self.end = columns.node, columns.parent, columns.end
        self.tags, self.tails, self.flags = columns.tag, columns.tail, columns.flags
        self.node_texts = columns.text
        if "script" in columns.tag:
            texts = zip(columns.tag, columns.text, strict=True)
            self.node_texts = [text if tag != "script" else None for tag, text in texts]
        self.kinds = kinds_in_text(columns)
        self.block_start = array("i", [0]) * m
        self.block_end = array("i", [0]) * m
        # The owners of the texts of all nodes, then of their tails, then of the nodes themselves.
        self.owner = array("i", [NOBODY]) * (3 * m)
        self.tail, self.itself = m, 2 * m
        self.whole = self._whole()

        self.block_texts: list[str] = []
        self.block_contexts: list[int] = []
        self.block_leaves: list[int] = []
        self.counts = array("i")
        self.pictures = 0  # since the last block
        self.open_blocks: list[int] = []
        self.whole_start = self.whole_end = 0
        self._start_run()

    def page(self, url: str, declared: Declared) -> tuple[Page, list[HtmlElement]]:
        """Return the page, and its elements with a property of schema.org."""
        self._walk()
        counts = np.frombuffer(self.counts, dtype=np.int32).reshape(-1, 4).T
        blocks = Blocks(self.block_texts, ints(self.block_contexts), ints(self.block_leaves), *counts)
        text, tail, itself = np.frombuffer(self.owner, dtype=np.int32).reshape(3, -1)
        tree = self.columns.tree(
            block_start=np.frombuffer(self.block_start, dtype=np.int32),
            block_end=np.frombuffer(self.block_end, dtype=np.int32),
            text_owner=text,
            tail_owner=tail,
            self_owner=itself,
        )
        page = Page(url=url, declared=declared, tree=tree, blocks=blocks)
        return page, [self.elements[i] for i in self.columns.declares]

    # ------------------------------------------------------------------ shape of the tree
    def _whole(self) -> list[bool]:
        """Return for each node whether it is a table or list that is a single block.

        Such an element has no blocks inside, and only short cells or items. In a table with two or more rows, a ``<p>``
        or ``<div>`` that wraps the whole content of a cell does not count as a block, because page builders and word
        processors write cells that way. In a single row, it does: that is a layout with a column for the menu.
        """
        tags, end = self.tags, self.end
        whole = [False] * len(tags)
        lists = [i for i, tag in enumerate(tags) if tag in _WHOLE]
        if not lists:
            return whole
        wrapper = self._wrappers() if any(tags[i] == "table" for i in lists) else whole.copy()
        blocks = [i for i, kind in enumerate(self.kinds) if kind == _BLOCK and tags[i] not in _PARTS]
        others = [i for i in blocks if not wrapper[i]]
        for i in lists:
            # The element itself is the one "other" block. So these elements are not nested, and are read only once.
            if bisect_left(others, end[i]) - bisect_left(others, i) == 1:
                is_row = any(wrapper[i : end[i]]) and self._rows(i) < 2
                whole[i] = not is_row and self._has_short_parts(i)
        return whole

    def _rows(self, i: int) -> int:
        """Return the number of elements with two or more cells in a table."""
        cells = Counter(self.parent[j] for j in range(i, self.end[i]) if self.tags[j] in ("td", "th"))
        return sum(n > 1 for n in cells.values())

    def _has_short_parts(self, i: int) -> bool:
        """Return True if no cell of a table and no item of a list is longer than :data:`MAX_CELL_CHARS`."""
        e = self.end[i]
        texts = [len(text.strip()) if text else 0 for text in self.node_texts[i:e]]
        tails = [len(text.strip()) if text else 0 for text in self.tails[i:e]]
        before = list(accumulate(map(add, texts, tails), initial=0))
        return before[-1] <= MAX_CELL_CHARS or not any(
            before[self.end[j] - i] - before[j - i] - tails[j - i] > MAX_CELL_CHARS
            for j in range(i, e)
            if self.tags[j] in ("td", "th", "li", "caption")
        )

    def _wrappers(self) -> list[bool]:
        """Return for each node whether it is a visible ``<p>`` or ``<div>`` that wraps the whole content of a cell."""
        children = np.bincount(np.maximum(self.parent, 0), minlength=len(self.elements)).tolist()
        wrapper = [False] * len(self.elements)
        for i, tag in enumerate(self.tags):
            if tag in _WRAPPERS:
                p = self.parent[i]
                if (wrapper[p] or self.tags[p] in ("td", "th")) and children[p] == 1:
                    alone = not (self.node_texts[p] or "").strip() and not (self.tails[i] or "").strip()
                    wrapper[i] = alone and not may_be_hidden(self.elements[i])
        return wrapper

    # ------------------------------------------------------------------ the pass
    def _walk(self) -> None:
        end, kinds, tags, texts, tails, flags = self.end, self.kinds, self.tags, self.node_texts, self.tails, self.flags
        block_start, block_end, block_texts = self.block_start, self.block_end, self.block_texts
        last = len(self.elements)
        open_nodes: list[int] = []
        for i in range(last + 1):
            while open_nodes and end[open_nodes[-1]] <= i:
                node = open_nodes.pop()
                inside = self.whole_start < node < self.whole_end
                if kinds[node] == _BLOCK:
                    self._close_block(node, inside)
                block_end[node] = len(block_texts) + inside
                tail = tails[node]
                if tail:
                    self._add(tail, self.tail + node, self.parent[node] if node else 0)
                elif tags[node] not in SILENT:
                    self.glue = tags[node] in LOOSE
            if i == last:
                break
            kind = kinds[i]
            if kind == _BLOCK:
                self._open_block(i)
            elif kind == _BR:
                self._line_break(i)
            elif kind == _MEDIA or tags[i] in OWNED:  # a drawn formula inside a sentence has no text
                (self.run_silent if tags[i] in SILENT else self.run_self).append(self.itself + i)
                self.pictures += tags[i] == "img"
            else:
                self.run_links += tags[i] == "a"
                if self.glue and self.run and not flags[i] & _CODE:
                    self.run.append(" ")
            block_start[i] = len(block_texts)
            text = texts[i]
            if text:
                self._add(text, i, i)
            open_nodes.append(i)

    def _open_block(self, i: int) -> None:
        tag = self.tags[i]
        if i < self.whole_end:
            self.run.append(" " if tag in _SPACED else BREAK)
            return
        if self.run or self.run_self or self.run_silent:
            self._flush()
        self.open_blocks.append(i)
        if self.whole[i]:
            self.whole_start, self.whole_end = i, self.end[i]
        if tag in OWNED:
            self.owner[self.itself + i] = gap_before(len(self.block_texts))

    def _close_block(self, i: int, inside: bool) -> None:
        if inside:
            self.run.append(" " if self.tags[i] in _SPACED else BREAK)
            return
        before = len(self.block_texts)
        if self.run or self.run_self or self.run_silent:
            self._flush()
        self.open_blocks.pop()
        if i == self.whole_start and self.whole_end and len(self.block_texts) == before:
            self._no_block(i)

    def _no_block(self, i: int) -> None:
        """Undo the block of a whole list or table that turned out to hold no word."""
        for j in range(i + 1, self.end[i]):
            self.block_end[j] = len(self.block_texts)

    def _add(self, text: str, slot: int, where: int) -> None:
        """Add a text or tail to the run. It is directly in node ``where``."""
        self.glue = False
        flags = self.flags[where]
        if text.isspace():
            if not self.run and not flags & _PRE:  # in code, an element may hold just the space between two words
                return
        elif self.run_leaf < 0:
            self.run_leaf = where
        self.run.append(text)
        self.run_slots.append(slot)
        if flags & _MARKED:
            n = len(text.strip())
            if flags & _LINK:
                self.run_link_chars += n
            if flags & _STRONG:
                self.run_bold_chars += n

    def _line_break(self, i: int) -> None:
        run = self.run
        blank = len(run) - 1
        while blank >= 0 and run[blank] != BREAK and run[blank].isspace():
            blank -= 1
        self.run_self.append(self.itself + i)
        if blank >= 0 and run[blank] == BREAK and i >= self.whole_end and not self.flags[i] & _PRE:
            self._flush()
        else:
            run.append(BREAK)
        self.glue = False

    # ------------------------------------------------------------------ runs
    def _start_run(self) -> None:
        self.run: list[str] = []
        self.run_slots: list[int] = []  # the texts and tails in the run, as indexes of the owners
        self.run_self: list[int] = []
        self.run_silent: list[int] = []
        self.run_leaf = -1
        self.run_links = self.run_link_chars = self.run_bold_chars = 0
        self.glue = False

    def _flush(self) -> None:
        """End the run. It becomes a block if it has a word, and part of the gap before the next block otherwise."""
        run = self.run
        if run or self.run_self:
            owner = gap_before(len(self.block_texts))
            text = collapsed("".join(run), bool(self.flags[self.run_leaf] & _PRE)) if self.run_leaf >= 0 else ""
            if text and _word(text):
                owner = len(self.block_texts)
                self.block_texts.append(text)
                self.block_contexts.append(self.open_blocks[-1])
                self.block_leaves.append(self.run_leaf)
                self.counts.extend((self.run_links, self.run_link_chars, self.run_bold_chars, self.pictures))
                self.pictures = 0
            for slot in chain(self.run_slots, self.run_self, self.run_silent):
                self.owner[slot] = owner
            self._start_run()
        elif self.run_silent:
            for slot in self.run_silent:
                self.owner[slot] = gap_before(len(self.block_texts))
            self.run_silent = []


# ---------------------------------------------------------------------- style sheets
# What hides, and what keeps lines. The names that word processors make up, such as c7, T12 or ff3, have fonts as well.
# Those of others may mean anything, such as a price.
_telling = re.compile(
    r"white-space[\w-]{0,20}\s{0,9}:[^;]{1,99}|display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden"
).findall
_spacing = re.compile(r"white-space[\w-]{0,20}\s{0,9}:[^;]{1,99}").findall
_made_up = re.compile(r"[A-Za-z]{1,2}\d{1,4}").fullmatch
_names_made_up = re.compile(r"\.[A-Za-z]{1,2}\d{1,4}(?![\w-])").search
_class = re.compile(
    r"\s*((?:[^\s:>]{1,99}[\s>]{1,9}){0,4})[A-Za-z]{0,10}(#|\.)([\w-]{1,99})(?:\[[^\]]{1,99}\])?"
    r"(?:[\s>]{1,9}(?:p|div|span|li|td))?\s*"
).fullmatch
"""Matches a selector that a class or an id decides: ``.poem``, ``p.poem``, ``.post .poem``, ``.poem p``."""


def class_styles(elements: Iterable[HtmlElement]) -> Styles:
    """Return the declarations for classes that set white space or hide, and those for numbered classes that set fonts,
    from the style sheets among some elements. Those for some media, such as print, are left out.

    An id (``#poem``), and a class below several others, only set white space: what they hide is a state of the page.
    """
    found: dict[str, str] = {}
    for element in elements:
        if element.tag != "style":
            continue
        depth = 0
        for part in (element.text or "").split("}"):
            opened = part.count("{")
            if opened != 1:
                depth = max(0, depth + opened - 1)
            before, _, rule = part.rpartition("{")
            rule = rule.lower()  # what a style sheet says of a property, but not a class, is the same in any case
            tells = "none" in rule or "white-space" in rule or "hidden" in rule
            has_fonts = "font-" in rule and _names_made_up(before) is not None
            if depth or not (tells or has_fonts) or len(part) > 2 * LONGEST_CLASS:
                continue
            told = ";".join(_telling(rule)) if tells else ""
            if not (told or has_fonts):
                continue
            for selector in before.rpartition(";")[2].rpartition("/")[2].split(","):
                match = _class(selector) if "." in selector or "#" in selector else None
                if match is None:
                    continue
                around, kind, name = match.groups()
                declared = rule if _made_up(name) else told
                if kind == "#" or len(around.replace(">", " ").split()) > 1:
                    declared = ";".join(_spacing(rule))
                if declared:
                    found[name] = f"{found.get(name, '')};{declared}"[-LONGEST_CLASS:]
    return found
